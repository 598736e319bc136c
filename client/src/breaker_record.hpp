// SPDX-License-Identifier: Apache-2.0
// BreakerRecord: what the library keeps of one breaker a program asked for by name; BreakerPlace:
// where it lies in one memory. Made at the first ask, never moved, freed with the Client, so a Call
// may point to them from any thread. Memory that was superseded keeps its places: calls under way
// end there.
// Thread safety: as marked at each member.
#pragma once
#include <atomic>
#include <cstdint>

#include <cutwater/breaker.hpp>
#include <cutwater/client.hpp>

#include "shm/breaker.hpp"
#include "src/limit_state.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::client {
class DaemonLink;
}

namespace cutwater::detail {

struct BreakerPlace {
  // Set before it is published, never changed.
  const shm::View* view = nullptr;
  const ClientRow* row = nullptr;
  std::uint64_t client = 0;                      ///< number of the Client, for counters
  const std::atomic<std::uint64_t>* life = nullptr;
  BreakerPlace* next = nullptr;
  // Single words that racing threads store alike.
  std::atomic<std::uint64_t> ref{0};             ///< incarnation:32 | index:32
  std::atomic<std::uint64_t> seen_current{kNoCurrent};   ///< rules under which `ref` was found
  std::atomic<bool> plain{false};                ///< CLOSED grants without another look
  std::atomic<bool> measures{false};             ///< the settings need durations
  mutable shm::BreakerLocal local;

  shm::BreakerRef breaker() const noexcept {
    const std::uint64_t word = ref.load(std::memory_order_relaxed);
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  shm::BreakerCaller caller() const noexcept;
};

struct BreakerRecord {
  char name[64] = {};
  std::string_view name_view;
  client::DaemonLink* link = nullptr;            ///< nullptr: in memory
  std::atomic<BreakerPlace*> at{nullptr};        ///< where it is asked now; nullptr: nowhere
  std::atomic<BreakerPlace*> places{nullptr};    ///< all of them, newest first
  BreakerRecord* next = nullptr;
  ~BreakerRecord();
};

/// Looks the name up again: other rules, another memory. nullptr: nowhere to be found.
BreakerPlace* find_place(BreakerRecord& record) noexcept;
/// A place of this record in the memory of `core`, made when needed; nullptr: no such breaker.
BreakerPlace* place_in(BreakerRecord& record, Client::Core& core) noexcept;

/// Class of the exception being handled, its causes included, to a depth of 16.
Outcome outcome_of_current_exception() noexcept;

}  // namespace cutwater::detail
