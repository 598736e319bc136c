// SPDX-License-Identifier: Apache-2.0
// Bulkhead and Place: how many calls to one dependency may run at once, over all processes of the
// host.
//
//   auto gate = client.bulkhead("fraudCheck").value();
//   if (auto place = gate.try_enter()) { ask(); }          // given back at the end of the block
//   else return busy(place.refusal().retry_after());
//
//   auto place = gate.enter(200ms);                        // may wait its turn, no longer
//   auto verdict = gate.run([&] { return ask(); });        // the same around a function
//
// A Place is one of `max-concurrent-calls` cells in shared memory, held by this process until it is
// given back: by leave(), by the end of its Place, by the death of the process (within a tick of
// the daemon), by `max-hold` where that is set. It moves and is never copied, and it may end on
// another thread than it began. A place that was given back twice, or revoked before, changes
// nothing and is counted. A call that takes too long keeps its place: it still runs.
//
// try_enter() never waits: no system call, no allocation, one swap when a place is free. While
// anybody waits in line it refuses: a newcomer never passes those who came before it. enter() joins
// the line where no place is free and the bulkhead has a `max-wait-duration`: first come, first
// served over all processes, each asleep on a word of its own, at most 50 ms at a time, so nobody
// depends on the one who should wake him. A waiter that gives up, dies or is late swallows no
// place. While a call waits it holds nothing else.
//
// How long places are held is told by the last tick of the kernel (1 to 10 ms), exactly where
// `max-hold` is set; of the places a thread takes within one tick the first is measured exactly.
//
// Thread safety: Bulkhead from any thread at once; a Place from one thread at a time. Lifetime:
// neither outlives the Client. fork(): Places a child inherited are its parent's and do nothing
// there. A child that first enters gets a row of its own from the daemon, by which its death is
// noticed, within ClientOptions::ask_timeout; without one it is refused, Degraded.
// A client that asks over the socket asks its daemon, each ask within ClientOptions::ask_timeout,
// a wait in line as long as it may take. Places are told back at once and not waited for; that is
// repeated until the daemon has it. After a restart of the daemon, which keeps places while this
// process lives, whoever asks, or leaves, next presents them.
// Without memory to ask - no daemon, CUTWATER_ENABLED=false -
// nothing is held and the program's choice answers, degraded(), as for breakers: Off and
// IfAbsent::Allow grant; Fail and Deny refuse, Reason::Degraded with a hint; InProcess asks the
// bulkhead of ClientOptions::in_process, which holds for this process alone.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <cutwater/decision.hpp>
#include <cutwater/export.hpp>
#include <cutwater/outcome.hpp>
#include <cutwater/ran.hpp>
#include <cutwater/refusal_room.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

namespace detail {
struct BulkheadRecord;
struct BulkheadSpot;
struct EnterParts;
}
namespace shm {
struct BulkheadEntry;
struct PlaceTicket;
struct QuickPlace;
}

/// Why a call got no place, and when to come back.
class CUTWATER_EXPORT BulkheadRefusal {
 public:
  /// Full: no place was free, or none came in time, or the line is full. Expired: the call's own
  /// deadline passed in line; no fault of the dependency. Degraded: no memory to ask, or the
  /// bulkhead is gone; text() says which and what to do.
  Reason reason() const noexcept { return reason_; }
  /// Places held, places there are, and callers in line when it refused.
  std::uint32_t in_use() const noexcept { return in_use_; }
  std::uint32_t limit() const noexcept { return limit_; }
  std::uint32_t waiting() const noexcept { return waiting_; }
  /// How long the oldest holder has held its place; 0 = unknown.
  Nanos oldest_held() const noexcept { return oldest_held_; }
  /// How long it had waited in line before it was refused; 0: it never was in line.
  Nanos waited() const noexcept { return waited_; }
  /// The wait that was asked for, where `max-wait-duration` ended it before; else 0.
  Nanos cut_wait() const noexcept { return cut_wait_; }
  /// The median holding time of late, 1 s when unknown: always a hint, never 0.
  Nanos retry_after() const noexcept { return retry_after_; }
  bool is_hint() const noexcept { return true; }
  std::string_view bulkhead_name() const noexcept;
  /// "bulkhead 'fraudCheck' is full: 10 of 10 places are held, the oldest for 3.2 s, 2 wait in
  /// line; retry after about 40 ms". Allocates.
  std::string text() const;

 private:
  friend class Bulkhead;
  friend struct detail::EnterParts;
  void share(std::string_view own) noexcept;
  Reason reason_ = Reason::Degraded;
  std::uint8_t nowhere_ = 0;         // detail::Nowhere
  std::uint32_t in_use_ = 0;
  std::uint32_t limit_ = 0;
  std::uint32_t waiting_ = 0;
  Nanos oldest_held_{0};
  Nanos waited_{0};
  Nanos cut_wait_{0};
  Nanos retry_after_{1};
  const detail::BulkheadRecord* record_ = nullptr;
  char shared_[64] = {};             // the pattern whose own places refused; "": its own
};

/// One held place. Moves, is never copied; a moved-from Place is empty.
class CUTWATER_EXPORT Place {
 public:
  Place() = default;
  Place(Place&& other) noexcept { *this = std::move(other); }
  Place& operator=(Place&& other) noexcept;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { if (held_) leave(); }

  /// Gives it back; whoever waits first gets it. A second time: counted, no effect.
  void leave() noexcept;
  /// True while there is something to give back: not empty, not given back, not granted without
  /// memory, and not inherited over a fork. It does not look into the memory: of a place that
  /// `max-hold` took back it stays true until leave(), which is counted as stale then.
  bool holds() const noexcept;

 private:
  friend class Bulkhead;
  friend class Placed;
  friend struct detail::EnterParts;
  void leave_slowly(shm::PlaceTicket place, bool moved) noexcept;
  detail::BulkheadSpot* spot_ = nullptr;
  std::uint64_t ref_ = 0;            // whose cell it is: the name may have moved since
  std::uint64_t cell_value_ = 0;
  std::int64_t start_ns_ = 0;
  std::uint64_t life_ = 0;           // process_life() of the grant
  std::uint32_t cell_ = 0;
  bool held_ = false;
  bool coarse_ = false;              // start_ns_ is of the last tick of the kernel
};

/// What try_enter() and enter() answer: a Place, or why not.
class CUTWATER_EXPORT Placed {
 public:
  Placed() noexcept {}
  Placed(Placed&& other) noexcept { *this = std::move(other); }
  Placed& operator=(Placed&& other) noexcept {
    granted_ = other.granted_;
    degraded_ = other.degraded_;
    place_ = std::move(other.place_);
    refusal_ = other.refusal_;
    return *this;
  }
  ~Placed() = default;

  explicit operator bool() const noexcept { return granted_; }
  bool granted() const noexcept { return granted_; }
  /// Answered without the memory all processes share: by IfAbsent or CUTWATER_ENABLED=false.
  bool degraded() const noexcept { return degraded_; }
  Place* operator->() noexcept { return &place_; }
  Place& operator*() noexcept { return place_; }
  Place&& take() noexcept { return std::move(place_); }
  /// Of a refused one; of a granted one it means nothing.
  const BulkheadRefusal& refusal() const noexcept { return refusal_.get(); }

 private:
  friend class Bulkhead;
  /// A place just taken.
  Placed(detail::BulkheadSpot* spot, std::uint64_t ref, std::uint64_t life,
         const shm::QuickPlace& taken) noexcept;
  bool granted_ = false;
  bool degraded_ = false;
  Place place_;
  detail::RefusalRoom<BulkheadRefusal> refusal_;
};

/// How enter() may wait.
struct PlaceAsk {
  /// Longest time in line; nothing: the bulkhead's `max-wait-duration`, which bounds it always (0,
  /// its default, lets nobody wait, and a refusal says so). 0 or less: as try_enter().
  std::optional<Nanos> max_wait{};
  /// How long from now the call makes sense at all; 0 = no end. Passed in line: Reason::Expired.
  Nanos deadline{0};
};

/// What of a bulkhead is in use, at one moment.
struct BulkheadUse {
  std::uint32_t in_use = 0;
  std::uint32_t limit = 0;
  std::uint32_t over = 0;            ///< held beyond the limit after it was lowered
  std::uint32_t waiting = 0;
  Nanos oldest_held{0};              ///< 0 = unknown, or nobody holds
};

class CUTWATER_EXPORT Bulkhead {
 public:
  std::string_view name() const noexcept;

  /// Takes a place or refuses, at once.
  Placed try_enter() noexcept;

  /// Takes a place, in line where that is allowed. The only call here that may sleep.
  Placed enter(const PlaceAsk& ask = {}) noexcept;
  Placed enter(Nanos max_wait) noexcept { return enter(PlaceAsk{.max_wait = max_wait}); }

  /// What try_enter() would answer; nothing is written, nothing is held.
  bool would_enter() const noexcept;
  /// Without memory to ask: all 0.
  BulkheadUse use() const noexcept;

  /// Calls while a place is held, which is given back when the function returns or throws. Waits as
  /// enter(ask).
  template <class Fn>
  auto run(Fn&& fn, const PlaceAsk& ask = {})
      -> Ran<std::invoke_result_t<Fn>, BulkheadRefusal> {
    using T = std::invoke_result_t<Fn>;
    static_assert(!detail::kIsLater<T>,
                  "this function returns a future or an awaitable: the place would be given back "
                  "before its work is done. Keep a Place with the work");
    const Placed placed = enter(ask);
    if (!placed) return Ran<T, BulkheadRefusal>(placed.refusal());
    if constexpr (std::is_void_v<T>) {
      std::forward<Fn>(fn)();
      return Ran<void, BulkheadRefusal>();
    } else {
      return Ran<T, BulkheadRefusal>(std::forward<Fn>(fn)());
    }
  }

 private:
  friend class Client;
  friend struct detail::EnterParts;
  explicit Bulkhead(detail::BulkheadRecord* record) noexcept : record_(record) {}
  detail::BulkheadSpot* find(const PlaceAsk& ask, Placed& out) noexcept;
  Placed take() noexcept;
  Placed wait_for(const PlaceAsk& ask) noexcept;
  Placed wait_once(const PlaceAsk& ask) noexcept;
  Placed take_slowly() noexcept;
  Placed judge(detail::BulkheadSpot& spot, std::uint64_t ref, shm::QuickPlace taken) noexcept;
  Placed watched(const PlaceAsk& ask) noexcept;
  struct Waited { Nanos in_line{0}, asked{0}; };
  /// `ref`: of what was asked at that spot.
  void answer(detail::BulkheadSpot& spot, std::uint64_t ref, const shm::BulkheadEntry& entry,
              const Waited& waited, Placed& out) noexcept;

  detail::BulkheadRecord* record_;
};

}  // namespace cutwater
