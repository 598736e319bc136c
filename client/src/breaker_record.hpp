// SPDX-License-Identifier: Apache-2.0
// BreakerRecord: what the library keeps of one breaker a program asked for by name; BreakerPlace:
// where it lies in one memory. Made at the first ask, never moved, freed with the Client, so a Call
// may point to them from any thread. Memory that was superseded keeps its places: calls under way
// end there.
// Thread safety: as marked at each member.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/breaker.hpp>
#include <cutwater/client.hpp>

#include "shm/breaker.hpp"
#include "src/limit_state.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::client {
class DaemonLink;
}

namespace cutwater::detail {

/// Why a breaker has no place in shared memory.
enum class BreakerNowhere : std::uint8_t {
  Gone,      ///< the rules in force do not name it
  Socket,    ///< its client asks over the socket, where breakers are not asked
  Absent,    ///< no daemon, no memory
  Off,       ///< CUTWATER_ENABLED=false
};

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

struct BreakerFound {
  BreakerPlace* place = nullptr;                 ///< nullptr: nowhere, grants_nowhere() answers
  BreakerNowhere why = BreakerNowhere::Gone;     ///< of no place, and of a degraded one
  bool degraded = false;                         ///< in IfAbsent::InProcess's own memory
};
/// Looks the name up again: other rules, another memory. May attach, as DaemonLink::place().
BreakerFound find_place(BreakerRecord& record) noexcept;
/// What a breaker without a place answers: true = every call is granted and nothing is recorded.
bool grants_nowhere(const BreakerRecord& record, BreakerNowhere why) noexcept;
/// The same in words: what is answered, by whose choice, why, and the remedy. Allocates.
std::string nowhere_text(const BreakerRecord& record, BreakerNowhere why);
/// A place of this record in the memory of `core`, made when needed; nullptr: no such breaker.
BreakerPlace* place_in(BreakerRecord& record, Client::Core& core) noexcept;

/// Class of the exception being handled, its causes included, to a depth of 16.
Outcome outcome_of_current_exception() noexcept;

}  // namespace cutwater::detail
