// SPDX-License-Identifier: Apache-2.0
// Entry: one call admitted by a breaker, a bulkhead and limits in one step, all or none.
//
//   auto e = client.enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{api, "alice"}},
//                          .max_wait = 200ms, .deadline = 2s});
//   if (!e) return busy(e.text(), e.retry_after());        // e.refused_by(): which part, by name
//   ask();
//   e.call().succeeded();                                  // the place ends with the Entry
//
// Any part may be left out. First all parts are only looked at, in this order: the breaker, the
// bulkhead (when the call may not wait), every limit. The first that would refuse answers, and
// nothing was written: an open breaker costs no token and joins no line. Then they are taken: the
// place first, which is the only thing anybody waits for, and while waiting nothing else is held;
// then breaker and deadline are looked at again, the limits are charged, the probe is taken last.
// If somebody else was faster on the way, everything taken is given back, the last first.
// A breaker that opens while the call stands in line ends the wait at once: refused `open`. So does
// the deadline: Reason::Expired, which is no failure of the dependency.
// Killed on the way, a process loses at most the cost in what it had charged, which refills; place
// and probe come back as the place and the probe of any dead process do.
// Thread safety: an Entry from one thread at a time; it may end on another than it began. Names
// stay valid as long as the Client. fork(): inert in a child, as a Call and a Place are.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <cutwater/admission.hpp>
#include <cutwater/breaker.hpp>
#include <cutwater/bulkhead.hpp>
#include <cutwater/decision.hpp>
#include <cutwater/export.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

/// The limits of one admission, in braces or from a list of the program's own: copied, so an ask
/// may be a variable, copied and asked again. The keys are views of the caller's text, which must
/// stay while it is asked. At most kMaxLimitsAtOnce; of more it keeps one more, which enter()
/// answers as InvalidArgument.
class LimitList {
 public:
  LimitList() = default;
  LimitList(std::initializer_list<LimitAsk> asks) noexcept { keep({asks.begin(), asks.size()}); }
  /// A span, a vector, an array of them.
  template <class List>
    requires(!std::same_as<List, LimitList> &&
             std::convertible_to<const List&, std::span<const LimitAsk>>)
  LimitList(const List& asks) noexcept { keep(asks); }
  LimitList(const LimitList& other) noexcept { keep(other.asks()); }
  LimitList& operator=(const LimitList& other) noexcept {
    if (this != &other) keep(other.asks());
    return *this;
  }
  ~LimitList() = default;
  /// As long as this list, and until something else is assigned to it.
  std::span<const LimitAsk> asks() const noexcept { return {room_.asks, count_}; }

 private:
  static constexpr std::size_t kRoom = kMaxLimitsAtOnce + 1;

  void keep(std::span<const LimitAsk> asks) noexcept {
    count_ = std::min(asks.size(), kRoom);
    // A Limit means nothing before a Client made it, so the room is filled as far as needed.
    for (std::size_t i = 0; i < count_; ++i) std::construct_at(&room_.asks[i], asks[i]);
  }
  static_assert(std::is_trivially_destructible_v<LimitAsk>);

  union Room {
    Room() noexcept {}
    LimitAsk asks[kRoom];
  };
  Room room_;
  std::size_t count_ = 0;
};

struct EnterAsk {
  Breaker* breaker = nullptr;
  Bulkhead* bulkhead = nullptr;
  LimitList limits{};
  /// Longest time in line for a place; nothing: the bulkhead's `max-wait-duration`, which bounds it
  /// always. 0 or less: never in line.
  std::optional<Nanos> max_wait{};
  /// How long from now the call makes sense, waiting included; 0 = no end. A probe is held until
  /// then.
  Nanos deadline{0};
};

/// Which part of an admission refused. Numbers are those of the protocol.
enum class EnterPart : std::uint8_t {
  None = 0,      ///< it was granted; or no part: the deadline passed, a bad argument
  Limit = 1,
  Bulkhead = 2,
  Breaker = 3,
};
/// "limit", "bulkhead", "breaker", "" for None.
CUTWATER_EXPORT std::string_view name_of(EnterPart part) noexcept;

class CUTWATER_EXPORT Entry {
 public:
  Entry() = default;
  Entry(Entry&&) noexcept = default;
  Entry& operator=(Entry&&) noexcept = default;
  /// The call ends as ~Call() says, then the place is given back. Tokens stay spent.
  ~Entry() = default;

  explicit operator bool() const noexcept { return granted(); }
  bool granted() const noexcept { return reason_ == Reason::Allowed; }
  /// A part was answered without the memory all processes share.
  bool degraded() const noexcept { return degraded_; }

  /// What was granted. Empty where the part was left out or nothing is held.
  Call& call() noexcept { return call_; }
  Place& place() noexcept { return place_; }
  /// What the limits answered, receipts in it. Refused by another part: it means nothing.
  Admission& limits() noexcept { return limits_; }
  const Admission& limits() const noexcept { return limits_; }

  /// Open, Probing; Full; Limit, Never, Banned; Expired: the deadline passed, nobody's fault;
  /// Degraded; KeyTooLong, InvalidArgument: more than kMaxLimitsAtOnce limits, parts of another
  /// client. Allowed when granted.
  Reason reason() const noexcept { return reason_; }
  EnterPart refused_by() const noexcept { return part_; }
  /// Name of the breaker, bulkhead or limit that refused; empty when none did.
  std::string_view refused_name() const noexcept;
  /// 0 when granted, never 0 while refused. Exact unless is_hint(); kNever: no wait helps.
  Nanos retry_after() const noexcept { return retry_after_; }
  bool is_hint() const noexcept { return hint_; }
  /// How long it stood in line for its place.
  Nanos waited() const noexcept { return waited_; }
  /// Why, in words; empty when granted. Allocates.
  std::string text() const;
  /// More of it, when refused_by() says so.
  const BreakerRefusal& breaker_refusal() const noexcept { return breaker_refusal_; }
  const BulkheadRefusal& bulkhead_refusal() const noexcept { return bulkhead_refusal_; }

  /// The call will not be made: probe, tokens and place go back, in this order, as far as they can
  /// (a charge that somebody charged after stays). Nothing is recorded.
  void give_up() noexcept;

 private:
  friend struct detail::EnterParts;
  Reason reason_ = Reason::Degraded;
  EnterPart part_ = EnterPart::None;
  bool degraded_ = false;
  bool hint_ = true;
  Nanos retry_after_{1};
  Nanos waited_{0};
  Admission limits_;
  BreakerRefusal breaker_refusal_;
  BulkheadRefusal bulkhead_refusal_;
  Place place_;                      // before the call: given back after it
  Call call_;
};

}  // namespace cutwater
