// SPDX-License-Identifier: Apache-2.0
// NamedRecord: what the library keeps of one breaker or bulkhead a program asked for by name, and
// its spots: where it lies in one memory each. Made at the first ask, never moved, freed with the
// Client, so a Call or a Place may point to them from any thread. Memory that was superseded keeps
// its spots: what was taken there ends in its successor (src/give_back.hpp).
//
// A Spot has, besides what is below: static shm ref find(view, name); resolve(name), which reads
// anew what depends on the rules. A Record has words for what it is, and says as what the daemon
// knows it (kKind).
// Thread safety: as marked at each member; every function from any thread.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/client.hpp>

#include "base/fork_page.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/view.hpp"
#include "src/child_rows.hpp"
#include "src/hold_keeper.hpp"
#include "src/limit_state.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::client {
class AskSocket;
class DaemonLink;
}

namespace cutwater::detail {

class AskWatcher;

/// Why a name has no spot in shared memory.
enum class Nowhere : std::uint8_t {
  Gone,      ///< the rules in force do not name it
  Absent,    ///< no daemon, no memory
  Off,       ///< CUTWATER_ENABLED=false
  NoRow,     ///< a forked child without a row of its own cannot hold anything
};

/// Where a name lies in one memory: what breakers and bulkheads share.
struct NamedSpot {
  // Set before it is published, never changed.
  const shm::View* view = nullptr;
  const ClientRow* row = nullptr;
  ChildRows* child_rows = nullptr;
  HoldKeeper* keeper = nullptr;                  ///< in memory only
  std::uint64_t client = 0;                      ///< number of the Client, for counters
  const std::atomic<std::uint64_t>* life = nullptr;
  // Single words that racing threads store alike.
  std::atomic<std::uint64_t> ref{0};             ///< incarnation:32 | index:32
  std::atomic<std::uint64_t> seen_current{kNoCurrent};   ///< rules under which `ref` was found
  std::atomic<bool> plain{false};                ///< there, and its short way is enough

  std::uint32_t index() const noexcept {
    return static_cast<std::uint32_t>(ref.load(std::memory_order_relaxed));
  }
  /// False: the rules changed, and the name is to be resolved anew before it is entered.
  [[gnu::always_inline]] bool is_resolved() const noexcept {
    // acquire: pairs with the release in resolve(); whoever finds these rules finds its ref.
    return seen_current.load(std::memory_order_acquire) == view->current();
  }
  /// What was taken under this ref is of where the name is asked now.
  bool is_asked_now(std::uint64_t taken) const noexcept {
    return is_resolved() && ref.load(std::memory_order_relaxed) == taken;
  }
  /// The row of this process, none in a forked child that has not needed one yet, and the calling
  /// thread's counters. `now`: process_life().
  [[gnu::always_inline]] shm::BreakerCaller row_caller(std::uint64_t now) const noexcept {
    shm::BreakerCaller out;
    if (row->life == now) [[likely]] {
      out.row = row->index;
      out.generation = row->generation;
    } else {
      fill_child(now, out);
    }
    out.stripe = counter_for(*this).stripe;
    return out;
  }
  shm::BreakerCaller row_caller() const noexcept { return row_caller(process_life()); }
  void fill_child(std::uint64_t now, shm::BreakerCaller& out) const noexcept;
  /// For a caller without a row that is about to hold something: asks the daemon for one. True:
  /// row_caller() has it.
  bool need_row() const noexcept;
};

template <class Record, class Spot>
struct NamedRecord {
  using SpotType = Spot;
  char name[64] = {};
  std::string_view name_view;
  client::DaemonLink* link = nullptr;            ///< nullptr: in memory
  std::atomic<Spot*> at{nullptr};                ///< where it is asked now; nullptr: nowhere
  std::atomic<Spot*> spots{nullptr};             ///< all of them, newest first
  Record* next = nullptr;
  AskWatcher* watcher = nullptr;                 ///< of a watched Client; set before published

  NamedRecord() = default;
  NamedRecord(const NamedRecord&) = delete;
  NamedRecord& operator=(const NamedRecord&) = delete;
  ~NamedRecord() {
    Spot* spot = spots.load(std::memory_order_acquire);
    while (spot != nullptr) {
      Spot* const following = spot->next;
      delete spot;
      spot = following;
    }
  }
};

template <class Spot>
struct Found {
  Spot* spot = nullptr;                          ///< nullptr: nowhere, grants_nowhere() answers
  Nowhere why = Nowhere::Gone;                   ///< of no spot, and of a degraded one
  bool degraded = false;                         ///< in IfAbsent::InProcess's own memory
  client::AskSocket* socket = nullptr;           ///< ask there; nothing else is told then
};
/// Looks the name up again: other rules, another memory. May attach, as DaemonLink::place().
/// For BreakerRecord and BulkheadRecord.
template <class Record>
Found<typename Record::SpotType> find_spot(Record& record) noexcept;
/// What answers while no daemon does. For the same.
template <class Record>
Found<typename Record::SpotType> absent_spot(Record& record) noexcept;

/// Segment time by which a call that may take `time` from now will have ended; 0: nobody said. One
/// beyond all time, as kNever, lies behind the horizon of the clock, where nothing waits for it.
inline std::int64_t deadline_in(const shm::View& view, Nanos time) noexcept {
  if (time <= Nanos{0}) return 0;
  return view.clock.now() + std::min<std::int64_t>(time.count(), shm::kHorizonNs);
}

/// What a name without a spot answers: true = every call is granted and nothing is kept.
bool grants_nowhere(const client::DaemonLink* link, Nowhere why) noexcept;
/// How long a refused caller does well to wait.
std::int64_t retry_nowhere_ns(const client::DaemonLink* link) noexcept;
/// The same in words: what is answered, by whose choice, why, and the remedy. Allocates.
template <class Record>
std::string nowhere_text(const Record& record, Nowhere why);

/// A record of the list by name, made when needed. `what` of `core`: which memory to look in.
template <class Record>
Result<Record*> named_record(std::atomic<Record*>& list, std::string_view name, Client::Core& core,
                             client::DaemonLink* link, AskWatcher* watcher);

template <class Record>
void delete_records(std::atomic<Record*>& list) noexcept {
  Record* record = list.load(std::memory_order_acquire);
  while (record != nullptr) {
    Record* const next = record->next;
    delete record;
    record = next;
  }
}

}  // namespace cutwater::detail
