// SPDX-License-Identifier: Apache-2.0
// ENTER: several limits, a bulkhead and a breaker in one operation, all or none, with one answer;
// OUTCOME, which ends its ticket; PRESENT, which takes tickets over after a daemon restart.
// `acquire_all`, a breaker's try_enter, a bulkhead's enter and the combined admission are all
// ENTER with parts left out, because they are one operation.
// Rules of reading and writing: message.hpp; items, reasons and flags: ask_message.hpp.
// Thread safety: values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/ask_message.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kMaxEnterItems = 8;
inline constexpr std::size_t kMaxTicket = 48;    ///< bytes; opaque; empty = none
inline constexpr std::size_t kMaxOutcomes = 256;  ///< OUTCOME, PRESENT
inline constexpr std::size_t kMaxClass = 64;     ///< outcome class, bytes of UTF-8
inline constexpr std::size_t kMaxOtherClasses = 15;   ///< OutcomeReport::others

struct Enter {
  static constexpr MessageType kType = MessageType::Enter;
  std::uint64_t ttl_ns = 0;             ///< as in Acquire
  std::uint64_t max_wait_ns = 0;        ///< for tokens and for a place
  std::vector<Item> items;              ///< 0..kMaxEnterItems
  std::optional<std::string> bulkhead;  ///< a name
  std::optional<std::string> breaker;   ///< a name
  std::uint64_t call_ns = 0;            ///< how long the call may take; 0 = unknown. A probe is
                                        ///< held so long, else for its breaker's probe-timeout
  bool apart = false;                   ///< of breaker and bulkhead: call and place end apart, the
                                        ///< place by Admission::place_ticket
  bool operator==(const Enter&) const = default;
};

/// What refused. An unknown number of a newer daemon is kept as it is.
enum class Part : std::uint8_t { None = 0, Limit = 1, Bulkhead = 2, Breaker = 3 };

/// A breaker's state as it is told. An unknown number is kept as it is.
enum class BreakerWord : std::uint8_t {
  None = 0, Closed = 1, Open = 2, HalfOpen = 3, Disabled = 4, ForcedOpen = 5, MetricsOnly = 6,
};

/// In an admission's flags: the time that the granted call takes is to be told with its outcome.
/// Without it only a duration that the program gave is.
inline constexpr std::uint16_t kAnswerTimed = 2048;

/// One answer for all parts, or an item error in its place (then `text`, and nothing else).
struct Admission {
  std::uint16_t reason = kReasonAllowed;
  Part part = Part::None;
  std::uint8_t index = 0;            ///< part Limit: of the item
  std::uint64_t remaining = 0;
  std::uint64_t retry_after_ns = 0;
  std::uint64_t reset_after_ns = 0;
  std::uint64_t wait_ns = 0;         ///< largest over the items; act no earlier than receipt + this
  std::uint8_t window = 0;
  std::uint16_t flags = 0;           ///< kAnswer*
  BreakerWord state = BreakerWord::None;
  std::uint64_t epoch = 0;
  std::string ticket;                ///< for OUTCOME; kAnswerHolds: it holds a place or a probe
  std::uint64_t deadline_ns = kNever;  ///< life of the probe
  std::uint32_t holding = 0;         ///< places taken in the bulkhead
  std::uint64_t oldest_ns = 0;       ///< age of the oldest of them
  std::uint32_t waiting = 0;         ///< calls in line
  std::uint64_t since_ns = 0;        ///< age of the breaker's state
  std::string why;                   ///< what brought it there; "" when nothing refused
  std::uint32_t places = 0;          ///< refused by the bulkhead: how many there are
  std::uint64_t waited_ns = 0;       ///< time in line for a place
  std::uint64_t clock_ns = 0;        ///< as in DecisionAnswer
  std::vector<DecisionAnswer> each;  ///< where limits decided: what each item says
  std::string place_ticket;          ///< Enter::apart: of the place, which holds it; else empty
  /// The pattern whose own breaker refused, for a name beyond its max-instances; else empty.
  std::string pattern;
  std::string text;                  ///< item errors only

  bool allowed() const noexcept { return reason == kReasonAllowed; }
  bool is_error() const noexcept { return reason >= kFirstItemError; }
  static Admission error(ItemError code, std::string text);
  bool operator==(const Admission&) const = default;
};

struct EnterAnswer {
  static constexpr MessageType kType = MessageType::EnterAnswer;
  Admission admission;
  bool operator==(const EnterAnswer&) const = default;
};

enum class OutcomeKind : std::uint8_t {
  Succeeded = 0, Failed = 1, Ignored = 2, Cancelled = 3, TimedOut = 4,
};

struct OutcomeReport {
  std::string ticket;                 ///< 0..kMaxTicket bytes
  OutcomeKind outcome = OutcomeKind::Succeeded;
  std::uint64_t duration_ns = kNever;  ///< never = not measured
  std::uint64_t open_for_ns = 0;      ///< > 0: open at once for so long; never = as configured
  std::string outcome_class;          ///< 0..kMaxClass bytes
  std::uint64_t retry_after_ns = kNever;  ///< a Retry-After that came with a failure; never = none
  /// Further names of the failure, 0..kMaxOtherClasses, in the order of a program's own; the last
  /// is the built-in one. The breaker's lists say which of all decides (rule::deciding_class).
  std::vector<std::string> others;
  bool operator==(const OutcomeReport&) const = default;
};

/// Ends tickets: place back, probe settled, outcome recorded. With kFlagQuiet (only for tickets
/// that hold nothing) there is no answer.
struct Outcome {
  static constexpr MessageType kType = MessageType::Outcome;
  std::vector<OutcomeReport> reports;  ///< 1..kMaxOutcomes
  bool operator==(const Outcome&) const = default;
};

/// Codes: 0 recorded, Stale (used, late, reclaimed: counted, changes nothing), InvalidArgument (not
/// a ticket of this session).
struct OutcomeAnswer {
  static constexpr MessageType kType = MessageType::OutcomeAnswer;
  std::vector<std::uint16_t> codes;
  bool operator==(const OutcomeAnswer&) const = default;
};

/// After a daemon restart: the cells of these tickets pass from a former connection's row to this
/// session's row.
struct Present {
  static constexpr MessageType kType = MessageType::Present;
  std::vector<std::string> tickets;  ///< 1..kMaxOutcomes, each 0..kMaxTicket bytes
  bool operator==(const Present&) const = default;
};

struct PresentAnswer {
  static constexpr MessageType kType = MessageType::PresentAnswer;
  std::vector<std::string> tickets;  ///< the new ones in their order; empty = gone
  bool operator==(const PresentAnswer&) const = default;
};

Result<std::string> encode(const Enter& message);
Result<std::string> encode(const EnterAnswer& message);
Result<std::string> encode(const Outcome& message);
Result<std::string> encode(const OutcomeAnswer& message);
Result<std::string> encode(const Present& message);
Result<std::string> encode(const PresentAnswer& message);
template <> Decoded<Enter> decode<Enter>(std::string_view payload);
template <> Decoded<EnterAnswer> decode<EnterAnswer>(std::string_view payload);
template <> Decoded<Outcome> decode<Outcome>(std::string_view payload);
template <> Decoded<OutcomeAnswer> decode<OutcomeAnswer>(std::string_view payload);
template <> Decoded<Present> decode<Present>(std::string_view payload);
template <> Decoded<PresentAnswer> decode<PresentAnswer>(std::string_view payload);

}  // namespace cutwater::wire
