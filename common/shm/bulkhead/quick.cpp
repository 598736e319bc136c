// SPDX-License-Identifier: Apache-2.0
#include "shm/bulkhead/quick.hpp"

#include <atomic>

#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm::detail {

thread_local constinit ThreadPlaces thread_places;

void draw_takes(ThreadPlaces& places) noexcept {
  // Begins at a number of the clock: a daemon that takes over a row of its predecessor does not
  // repeat what that one wrote. 2^32 takes of one process until a number comes back.
  static std::atomic<std::uint32_t> next{
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(boottime_ns()) >> 10)};
  // relaxed: only that no two threads get one number.
  places.number = next.fetch_add(kTakeBlock, std::memory_order_relaxed);
  places.left = kTakeBlock;
}

std::uint32_t count_all(const std::uint64_t* cells, std::uint32_t all) noexcept {
  std::uint32_t occupied = 0;
  for (std::uint32_t i = 0; i < all; ++i) occupied += load_cell(cells + i) != 0;
  return occupied;
}

void serve_slowly(const View& view, std::uint64_t ref, StripeHandle stripe) noexcept {
  BulkheadParts parts;
  const BulkheadRef of{static_cast<std::uint32_t>(ref), static_cast<std::uint32_t>(ref >> 32)};
  if (read_parts(view, of, parts)) serve_line(parts, stripe);
}

}  // namespace cutwater::shm::detail
