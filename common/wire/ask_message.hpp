// SPDX-License-Identifier: Apache-2.0
// Asking over the socket: RESOLVE, ACQUIRE, PEEK, CANCEL, REFUND and their answers.
// ENTER (all or none, with bulkhead and breaker) is in enter_message.hpp; codec and rules of
// reading and writing are those of message.hpp: encode(m), decode<M>(payload).
//
// An item is decided alone: a wrong name or a long key costs that item an item error in the place
// of its decision, and the other items stand. What breaks the form of the message (a range, a type,
// an unknown flag) costs the whole request an ERROR 4 that names the field, and nothing was done.
// Unknown bits of an answer's flags are dropped in reading; an unknown reason is a refusal.
// Durations are ns; kNever = never. Thread safety: values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/message.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kMaxItems = 256;            ///< ACQUIRE, PEEK, REFUND
inline constexpr std::size_t kMaxResolve = 64;           ///< names in one RESOLVE
inline constexpr std::size_t kMaxNearest = 8;            ///< nearest names told for an unknown one
inline constexpr std::uint64_t kMaxCost = 1'000'000'000;
inline constexpr std::uint8_t kItemAfterTheFact = 1;     ///< Item::flags: charge, do not refuse
inline constexpr std::uint8_t kKnownItemFlags = kItemAfterTheFact;
/// A decision without text takes at most this many bytes, so that an answer's size can be known
/// before anything is decided.
inline constexpr std::size_t kMaxDecisionBytes = 72;

/// `reason` of an answer: below kFirstItemError those of cutwater::Reason (0 = allowed), from there
/// on an ItemError. A number of a newer daemon is kept as it is and is a refusal.
inline constexpr std::uint16_t kReasonAllowed = 0;
inline constexpr std::uint16_t kReasonExpired = 7;
inline constexpr std::uint16_t kReasonDegraded = 8;
inline constexpr std::uint16_t kFirstItemError = 64;

enum class ItemError : std::uint16_t {
  UnknownName = 64,      ///< the text has the nearest names
  KeyTooLong = 65,       ///< over kMaxKey; nothing was charged
  NotPermitted = 66,     ///< this identity may not use this name
  InvalidArgument = 67,
  Stale = 68,            ///< a repeat whose answer is forgotten, or a receipt or ticket used before
  Cancelled = 69,
  NotRemembered = 70,    ///< CANCEL or REFUND of an answer this session does not hold
  TooLate = 71,          ///< somebody charged after it; the tokens stay spent
  NoRoom = 72,           ///< pattern instances, waiters, overrides
};
/// Stable word of a code, e.g. "too_late"; "unknown" for another number.
std::string_view name_of(ItemError code) noexcept;

/// Bits of a decision's or an admission's flags. 1 .. 64 are those of cutwater::Decision.
inline constexpr std::uint16_t kAnswerDegraded = 1;
inline constexpr std::uint16_t kAnswerShadow = 2;          ///< `would`: a shadow limit's refusal
inline constexpr std::uint16_t kAnswerOverflow = 4;
inline constexpr std::uint16_t kAnswerLease = 8;
inline constexpr std::uint16_t kAnswerStore = 16;
inline constexpr std::uint16_t kAnswerExtrapolated = 32;   ///< calendar edge
inline constexpr std::uint16_t kAnswerHint = 64;           ///< retry_after is not exact
inline constexpr std::uint16_t kAnswerProcess = 128;       ///< refused for this process only
inline constexpr std::uint16_t kAnswerCluster = 256;       ///< refused by the cluster's opinion
inline constexpr std::uint16_t kAnswerHolds = 512;         ///< the ticket holds a cell
/// Refused by a bulkhead that lets nobody wait: its max-wait-duration is 0.
inline constexpr std::uint16_t kAnswerNoLine = 1024;
inline constexpr std::uint16_t kKnownAnswerFlags = 2047;

// ---- RESOLVE ------------------------------------------------------------------------------------

enum class NameKind : std::uint8_t { Limit = 0, Breaker = 1, Bulkhead = 2, Guard = 3 };

struct NameAsk {
  NameKind kind = NameKind::Limit;
  std::string name;
  bool operator==(const NameAsk&) const = default;
};

/// Are these names known, and with which settings? Creates an instance of a pattern block if there
/// is room. Asked once per name and again after each new generation.
struct Resolve {
  static constexpr MessageType kType = MessageType::Resolve;
  std::vector<NameAsk> names;  ///< 1..kMaxResolve
  bool operator==(const Resolve&) const = default;
};

/// Settings of one name as a map, or why not.
///   limit: windows [[count, period_ns, burst]...], plain (one rate for all keys), max_wait_ns,
///          max_waiting, ip_prefix [v4, v6],
///          on_daemon_down, lease_life_ns;  breaker: its settings as numbers;
///   bulkhead: max, max_wait_ns
struct Resolved {
  std::uint16_t code = 0;               ///< 0, or an ItemError
  Value settings = Value(Value::Map{});  ///< code 0
  std::vector<std::string> nearest;     ///< code not 0: at most kMaxNearest, patterns too
  bool operator==(const Resolved&) const = default;
};

struct ResolveAnswer {
  static constexpr MessageType kType = MessageType::ResolveAnswer;
  std::vector<Resolved> names;  ///< one for each asked, in their order
  bool operator==(const ResolveAnswer&) const = default;
};

// ---- ACQUIRE, PEEK ------------------------------------------------------------------------------

struct Item {
  std::optional<std::string> limit;  ///< a name; none = that of the item before (not the first)
  std::string key;                   ///< any bytes. A reader takes longer keys than kMaxKey: they
                                     ///< get ItemError::KeyTooLong; a writer refuses them
  std::uint64_t cost = 1;            ///< 0..kMaxCost; 0 = look
  std::uint8_t flags = 0;            ///< kItemAfterTheFact
  bool operator==(const Item&) const = default;
};

/// DecisionAnswer::charged left out: the cost, when allowed and no shadow would have refused; else
/// 0, as for a look.
inline constexpr std::uint64_t kChargedAsAsked = ~std::uint64_t{0};

/// One decision of an answer, or an item error in its place.
struct DecisionAnswer {
  std::uint16_t reason = kReasonAllowed;  ///< nothing else says whether it is allowed
  std::uint64_t remaining = 0;            ///< whole tokens left, smallest over the windows
  std::uint64_t retry_after_ns = 0;
  std::uint64_t reset_after_ns = 0;
  std::uint64_t wait_ns = 0;              ///< in line: act no earlier than receipt + this
  std::uint8_t window = 0;
  std::uint16_t flags = 0;                ///< kAnswer*
  std::uint16_t would = 0;                ///< with kAnswerShadow
  std::uint64_t charged = kChargedAsAsked;  ///< tokens it took
  std::uint64_t clock_ns = 0;             ///< the reading it used; 0 = not told: the clock runs
  std::string text;                       ///< item errors only; cut to kMaxErrorText

  bool allowed() const noexcept { return reason == kReasonAllowed; }
  bool is_error() const noexcept { return reason >= kFirstItemError; }
  static DecisionAnswer error(ItemError code, std::string text);
  bool operator==(const DecisionAnswer&) const = default;
};

/// Many answers, each item decided alone.
struct Acquire {
  static constexpr MessageType kType = MessageType::Acquire;
  std::uint64_t ttl_ns = 0;       ///< not begun this long after receipt: `expired`; 0 = no limit
  std::uint64_t max_wait_ns = 0;
  std::vector<Item> items;        ///< 1..kMaxItems
  bool operator==(const Acquire&) const = default;
};

struct AcquireAnswer {
  static constexpr MessageType kType = MessageType::AcquireAnswer;
  std::vector<DecisionAnswer> decisions;  ///< one for each item, in their order
  bool operator==(const AcquireAnswer&) const = default;
};

/// As ACQUIRE, but nothing is written.
struct Peek {
  static constexpr MessageType kType = MessageType::Peek;
  std::vector<Item> items;  ///< 1..kMaxItems
  bool operator==(const Peek&) const = default;
};

struct PeekAnswer {
  static constexpr MessageType kType = MessageType::PeekAnswer;
  std::vector<DecisionAnswer> decisions;
  bool operator==(const PeekAnswer&) const = default;
};

// ---- CANCEL, REFUND -----------------------------------------------------------------------------

/// As if that request had not been asked, as far as can be: a waiting one ends (and is answered
/// `cancelled`), an answered one gives back its tokens, place and probe.
struct Cancel {
  static constexpr MessageType kType = MessageType::Cancel;
  std::uint32_t request = 0;
  bool operator==(const Cancel&) const = default;
};

/// What was given back. code: 0, Stale (given back before), NotRemembered, TooLate.
struct Returned {
  std::uint16_t code = 0;
  std::uint64_t tokens = 0;
  bool operator==(const Returned&) const = default;
};

struct CancelAnswer {
  static constexpr MessageType kType = MessageType::CancelAnswer;
  Returned returned;
  bool operator==(const CancelAnswer&) const = default;
};

struct RefundItem {
  std::uint32_t request = 0;       ///< of the ACQUIRE or ENTER
  std::uint16_t item = 0;          ///< index in it
  std::optional<std::uint64_t> n;  ///< tokens, 1..kMaxCost; none = the whole charge
  bool operator==(const RefundItem&) const = default;
};

/// Gives tokens of answered items back, by the receipts this session remembers. A receipt is spent
/// once, also by a smaller `n`; a TooLate does not spend it.
struct Refund {
  static constexpr MessageType kType = MessageType::Refund;
  std::vector<RefundItem> items;  ///< 1..kMaxItems
  bool operator==(const Refund&) const = default;
};

struct RefundAnswer {
  static constexpr MessageType kType = MessageType::RefundAnswer;
  std::vector<Returned> items;
  bool operator==(const RefundAnswer&) const = default;
};

Result<std::string> encode(const Resolve& message);
Result<std::string> encode(const ResolveAnswer& message);
Result<std::string> encode(const Acquire& message);
Result<std::string> encode(const AcquireAnswer& message);
Result<std::string> encode(const Peek& message);
Result<std::string> encode(const PeekAnswer& message);
Result<std::string> encode(const Cancel& message);
Result<std::string> encode(const CancelAnswer& message);
Result<std::string> encode(const Refund& message);
Result<std::string> encode(const RefundAnswer& message);
template <> Decoded<Resolve> decode<Resolve>(std::string_view payload);
template <> Decoded<ResolveAnswer> decode<ResolveAnswer>(std::string_view payload);
template <> Decoded<Acquire> decode<Acquire>(std::string_view payload);
template <> Decoded<AcquireAnswer> decode<AcquireAnswer>(std::string_view payload);
template <> Decoded<Peek> decode<Peek>(std::string_view payload);
template <> Decoded<PeekAnswer> decode<PeekAnswer>(std::string_view payload);
template <> Decoded<Cancel> decode<Cancel>(std::string_view payload);
template <> Decoded<CancelAnswer> decode<CancelAnswer>(std::string_view payload);
template <> Decoded<Refund> decode<Refund>(std::string_view payload);
template <> Decoded<RefundAnswer> decode<RefundAnswer>(std::string_view payload);

}  // namespace cutwater::wire
