// SPDX-License-Identifier: Apache-2.0
#include "base/fork_page.hpp"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/clock.hpp"

namespace cutwater {
namespace {

constexpr std::uint64_t kSeeded = std::uint64_t{1} << 63;
constexpr std::uint32_t kNonceMask = 0xffffff;
constexpr std::size_t kPageBytes = 4096;

/// Numbers given to lives. Not emptied by a fork: a child goes on from its parent's count, so it
/// never gets the number of an ancestor. Siblings may share one; nothing of one sibling is ever
/// seen by another.
std::atomic<std::uint64_t> lives_named{0};

ForkPage spare_page{};

void wipe_in_child() noexcept {
  ForkPage* const page = detail::the_fork_page.load(std::memory_order_relaxed);
  if (page == nullptr) return;
  // relaxed: a child has one thread.
  page->life.store(0, std::memory_order_relaxed);
  page->nonce.store(0, std::memory_order_relaxed);
}

/// A page the kernel empties in children, or nullptr.
ForkPage* map_wiped_page() noexcept {
  void* const place =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  if (madvise(place, kPageBytes, MADV_WIPEONFORK) != 0) {
    munmap(place, kPageBytes);
    return nullptr;
  }
  return new (place) ForkPage{};
}

/// 16 random bytes the kernel gave this program at its start, mixed with what differs in a child:
/// its life and the time.
std::uint64_t draw_start() noexcept {
  std::uint64_t given[2] = {};
  const auto* random = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
  if (random != nullptr) std::memcpy(given, random, sizeof given);
  std::uint64_t x = given[0] ^ static_cast<std::uint64_t>(boottime_ns());
  x += process_life() * 0x9E3779B97F4A7C15ULL;
  for (const std::uint64_t factor : {0xBF58476D1CE4E5B9ULL, 0x94D049BB133111EBULL}) {
    x = (x ^ (x >> 30) ^ given[1]) * factor;
  }
  return (x ^ (x >> 31)) & kNonceMask;
}

}  // namespace

std::uint32_t next_claim_nonce() noexcept {
  ForkPage& page = fork_page();
  // relaxed, all three: the number carries its whole meaning.
  if (page.nonce.load(std::memory_order_relaxed) == 0) {
    std::uint64_t none = 0;      // lost: another thread has drawn
    page.nonce.compare_exchange_strong(none, kSeeded | draw_start(), std::memory_order_relaxed);
  }
  const std::uint64_t drawn = page.nonce.fetch_add(1, std::memory_order_relaxed);
  return static_cast<std::uint32_t>(drawn) & kNonceMask;
}

namespace detail {

std::atomic<ForkPage*> the_fork_page{nullptr};

ForkPage& make_fork_page() noexcept {
  ForkPage* fresh = map_wiped_page();
  const bool mapped = fresh != nullptr;
  if (!mapped) fresh = &spare_page;
  ForkPage* seen = nullptr;
  // release: pairs with the acquire in fork_page(). Lost: another thread was first, its page is the
  // one.
  if (the_fork_page.compare_exchange_strong(seen, fresh, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
    if (!mapped) pthread_atfork(nullptr, nullptr, wipe_in_child);
    return *fresh;
  }
  if (mapped) munmap(fresh, kPageBytes);
  return *seen;
}

std::uint64_t name_this_life(ForkPage& page) noexcept {
  const std::uint64_t fresh = lives_named.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t seen = 0;
  return page.life.compare_exchange_strong(seen, fresh, std::memory_order_relaxed) ? fresh : seen;
}

}  // namespace detail
}  // namespace cutwater
