// SPDX-License-Identifier: Apache-2.0
// EnterParts: how the library reads and fills the public classes of breakers, bulkheads and
// admissions in one step. The friend of all of them. Thread safety: as the classes.
#pragma once
#include <algorithm>
#include <optional>

#include <cutwater/client.hpp>
#include <cutwater/enter.hpp>

#include "shm/enter.hpp"
#include "src/breaker_record.hpp"
#include "src/bulkhead_record.hpp"
#include "src/limit_list.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::client {
struct AdmissionTold;
struct AskedCall;
}

namespace cutwater::detail {

struct MergedAsks;

struct EnterParts {
  static BreakerRecord& record(const Breaker& breaker) noexcept { return *breaker.record_; }
  static BulkheadRecord& record(const Bulkhead& bulkhead) noexcept { return *bulkhead.record_; }

  /// A granted call; `start_ns`: a reading of the clock of the grant, 0 = none was needed.
  /// `ref`, both: of what was asked at that spot.
  static void fill(Call& call, BreakerPlace& place, std::uint64_t ref,
                   const shm::BreakerCall& granted, std::int64_t start_ns) noexcept;
  static void fill(Place& place, BulkheadSpot& spot, std::uint64_t ref,
                   const shm::PlaceTicket& granted) noexcept;
  static void fill(BreakerRefusal& refusal, const BreakerRecord& record, const BreakerPlace* place,
                   const shm::BreakerEntry& said) noexcept;
  static void fill(BulkheadRefusal& refusal, const BulkheadRecord& record,
                   const BulkheadSpot* spot, const shm::BulkheadEntry& said,
                   std::int64_t waited_ns, Nanos asked_wait) noexcept;
  static void fill(Admission& admission, const PreparedLimits& list,
                   const shm::AdmitAnswer& answer) noexcept;
  /// Over the socket: a place whose cell_value_ is an AskedCall; and what was told.
  static void fill(Place& place, client::AskedCall* held) noexcept;
  static void fill(BulkheadRefusal& refusal, const BulkheadRecord& record,
                   const wire::Admission& told, Nanos asked_wait) noexcept;
  static void leave_asked(Place& place) noexcept;
  static void fill(Call& call, client::AskedCall* held, const wire::Admission& told) noexcept;
  static void fill(BreakerRefusal& refusal, const BreakerRecord& record,
                   const wire::Admission& told) noexcept;
  /// There is no memory to ask.
  static void nowhere(BulkheadRefusal& refusal, const BulkheadRecord& record,
                      Nowhere why) noexcept;
  static void nowhere(BreakerRefusal& refusal, const BreakerRecord& record, Nowhere why,
                      bool granted) noexcept;

  static void enter(const EnterAsk& ask, Entry& out) noexcept;

 private:
  struct Found;
  static bool find(const EnterAsk& ask, Found& found) noexcept;
  static void in_memory(const EnterAsk& ask, Found& found, Entry& out) noexcept;
  static void part_by_part(const EnterAsk& ask, Entry& out) noexcept;
  static client::DaemonLink* asked_of_all(const EnterAsk& ask) noexcept;
  static bool over_socket(const EnterAsk& ask, Entry& out) noexcept;
  static void fill(Entry& out, const EnterAsk& ask, client::DaemonLink& link,
                   const MergedAsks& sent, const client::AdmissionTold& told) noexcept;
  static void absent(const EnterAsk& ask, client::DaemonLink& link, Entry& out) noexcept;
  static bool in_process(const EnterAsk& ask, Client::Core& own, Entry& out) noexcept;
  static void refuse(Entry& out, EnterPart part, Reason reason, Nanos wait, bool hint) noexcept;
  static void refuse_by_limits(Entry& out) noexcept;
};

/// ENTER of a bulkhead over the socket, asleep while it waits in line there. True: `told` is the
/// answer and `held` its ticket, nullptr when nothing is held. False: `found` answers instead.
bool enter_asked(BulkheadRecord& record, const PlaceAsk& ask, wire::Admission& told,
                 client::AskedCall*& held, Found<BulkheadSpot>& found) noexcept;
/// The wait a caller asked for in so many words; 0 = none.
inline Nanos wait_asked(const std::optional<Nanos>& max_wait) noexcept {
  return std::max(max_wait.value_or(Nanos{0}), Nanos{0});
}
/// BulkheadRefusal::cut_wait(). `nobody_waits`: max-wait-duration is 0.
inline Nanos cut_of(Reason reason, bool nobody_waits, Nanos waited, Nanos asked) noexcept {
  const bool cut = nobody_waits || (waited > Nanos{0} && waited < asked);
  return reason == Reason::Full && cut ? asked : Nanos{0};
}
/// How much longer than a usual ask one may take that may stand in line.
Nanos patience_of(const PlaceAsk& ask) noexcept;
/// RESOLVE of a bulkhead: how it stands.
std::optional<BulkheadUse> use_asked(BulkheadRecord& record, Found<BulkheadSpot>& found) noexcept;

/// Memories one wait may go through before it is given up.
inline constexpr int kMostMoves = 4;
/// True: this memory was superseded; whoever attached moves to the next one.
inline bool is_left(const shm::View& view) noexcept {
  return (view.current() & shm::kCurrentSupersededBit) != 0;
}
/// Asks `entering` to its end, asleep while it waits. Reason::Degraded when the memory is left
/// meanwhile: to be asked again in the next one. `keeper`: of a memory without a daemon, which
/// looks each time somebody wakes.
void finish_entering(const shm::View& view, HoldKeeper* keeper, const shm::EnterCaller& caller,
                     shm::Entering& entering, shm::EnterAnswer& out) noexcept;

}  // namespace cutwater::detail
