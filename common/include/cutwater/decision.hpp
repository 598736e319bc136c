// SPDX-License-Identifier: Apache-2.0
// Decision: the answer to every ask of a limit.
//
//   if (auto d = api.try_acquire("alice"); !d.allowed()) return reply_429(d.retry_after());
//
// It keeps the raw numbers of one reading; remaining(), retry_after() and so on compute when asked,
// so the yes/no path pays nothing for them, and computing them later does not change them (spec
// limiter 4). The same question gives the same fields whichever way it was asked (P9).
//
// A granted Decision is also the receipt of its charge: refund() spends it once. It moves and is
// never copied; a moved-from Decision refuses to be refunded (L7, vectors U4, U7).
// Thread safety: a value. limit_name() stays valid as long as the Client that decided.
#pragma once
#include <cstdint>
#include <string_view>

#include <cutwater/export.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

/// Why not. Numbers are those of the protocol (spec messages 5).
enum class Reason : std::uint8_t {
  Allowed = 0,
  Limit = 1,  ///< not enough tokens; come back after retry_after()
  Never = 2,  ///< cost over the burst: no wait helps
  Banned = 3,
  Full = 4,
  Open = 5,
  Probing = 6,
  Expired = 7,
  Degraded =
      8,  ///< could not be decided by the rule: no place (on-full: deny), limit gone, no daemon
  KeyTooLong = 65,       ///< over kMaxKeyBytes; nothing was charged
  InvalidArgument = 67,  ///< a cost over kMaxCost; nothing was charged
};

/// Stable word, e.g. "limit".
CUTWATER_EXPORT std::string_view name_of(Reason reason) noexcept;

/// Who answered.
enum class DecidedBy : std::uint8_t {
  Memory = 0,
  ThreadLease = 1,
  Socket = 2,
  Remote = 3,
  Private = 4,
  RemoteLease = 5,
  Store = 6,
};

/// What a Decision can still give back.
enum class Receipt : std::uint8_t {
  None = 0,
  One = 1,         ///< one charge: slot, tag, level, cost of the numbers
  Several = 2,     ///< one charge a window: the numbers hold the first, `more` the others
  Remembered = 3,  ///< held by the daemon, under (request, item) = (slot, tag)
};
/// Windows a limit may have, each with its own charge.
inline constexpr std::size_t kMaxCharges = 6;

/// Marks a value that its maker fills field by field at once: clearing it first would cost a
/// quarter of a decision.
struct Unfilled {};

/// The raw numbers of an answer, in units of 2^-f token and ns of the segment's clock.
struct DecisionNumbers {
  Reason reason;
  std::uint8_t flags;
  std::uint8_t window;
  DecidedBy decided_by;
  std::uint8_t shift;
  std::uint8_t f;
  bool computed;            ///< the four line fields hold finished answers instead of a line
  Receipt receipt;          ///< what can still be undone
  std::int64_t t;           ///< stamp: the clock reading this decision used
  std::uint64_t mult;       ///< line of the token clock, or remaining when `computed`
  std::int64_t base_t;      ///< ... or retry_after
  std::int64_t base_n;      ///< ... or reset_after
  std::int64_t burst;       ///< ... or starts_in
  std::int64_t n;           ///< N(t)
  std::int64_t level;       ///< tat after a grant (the receipt y), the level found at a refusal
  std::int64_t cost;        ///< units
  void* slot;               ///< where the receipt lies
  std::uint64_t tag;        ///< whose entry it was
  const void* owner;        ///< the library's record of the limit
  Reason would;             ///< with flag kShadow: the refusal it would have been
  std::uint8_t charges;     ///< with Receipt::Several: how many, 2..kMaxCharges
  std::uint8_t notes;       ///< for counting what is not plain: shm/limit/admit.hpp
  std::uint32_t tokens;     ///< with Receipt::Several: whole tokens, the smallest over the charges
};

/// One charge of one window, as it can be undone.
struct ChargeReceipt {
  void* slot;               ///< nullptr: nothing to undo (any more)
  std::uint64_t tag;
  std::int64_t level;       ///< y
  std::int64_t cost;        ///< units
};

/// What waits behind a Decision. For the library. Made as a refusal: Degraded, all else 0. `more`
/// is left alone but for Receipt::Several, by copies too: a plain answer pays nothing for it.
struct DecisionData : DecisionNumbers {
  ChargeReceipt more[kMaxCharges - 1];

  DecisionData() noexcept : DecisionNumbers{} { reason = Reason::Degraded; }
  explicit DecisionData(Unfilled) noexcept {}
  DecisionData(const DecisionData& other) noexcept : DecisionNumbers(other) { copy_more(other); }
  DecisionData& operator=(const DecisionData& other) noexcept {
    DecisionNumbers::operator=(other);
    copy_more(other);
    return *this;
  }

 private:
  void copy_more(const DecisionData& other) noexcept {
    if (receipt != Receipt::Several) [[likely]] return;
    for (std::size_t i = 0; i + 1 < charges && i + 1 < kMaxCharges; ++i) more[i] = other.more[i];
  }
};

class CUTWATER_EXPORT Decision {
 public:
  static constexpr std::uint8_t kDegraded =
      1;  ///< not decided by the rule; policy in reason/on-full
  static constexpr std::uint8_t kShadow = 2;  ///< a shadow limit would have refused: would()
  static constexpr std::uint8_t kOverflow =
      4;  ///< charged to, or refused by, the shared overflow word
  static constexpr std::uint8_t kLease = 8;           ///< by a lease
  static constexpr std::uint8_t kStore = 16;          ///< by the store
  static constexpr std::uint8_t kExtrapolated =
      32;  ///< beyond the known calendar edges: the last period was taken to repeat
  static constexpr std::uint8_t kHint = 64;           ///< retry_after is an estimate, not exact

  Decision() = default;
  explicit Decision(const DecisionData& data) noexcept : data_(data) {}
  explicit Decision(Unfilled unfilled) noexcept : data_(unfilled) {}
  Decision(Decision&& other) noexcept : data_(other.data_) {
    other.data_.receipt = Receipt::None;
  }
  Decision& operator=(Decision&& other) noexcept {
    if (this != &other) {
      data_ = other.data_;
      other.data_.receipt = Receipt::None;
    }
    return *this;
  }
  Decision(const Decision&) = delete;
  Decision& operator=(const Decision&) = delete;

  /// The answer. Everything else is detail.
  bool allowed() const noexcept { return data_.reason == Reason::Allowed; }
  explicit operator bool() const noexcept { return allowed(); }
  Reason reason() const noexcept { return data_.reason; }

  /// Whole tokens left after this decision; 0 in debt.
  std::uint64_t remaining() const noexcept;
  /// Wait until the asked cost is there for a lone caller: exact to 1 ns or one unit of the limit's
  /// clock, 0 when allowed, never 0 while refused, kNever for Reason::Never. An estimate when
  /// is_hint().
  Nanos retry_after() const noexcept;
  /// Until the bucket is full again.
  Nanos reset_after() const noexcept;
  /// Allowed by waiting: when, seen from the decision, its place in line begins. 0 otherwise.
  Nanos starts_in() const noexcept;
  /// Stamp: the reading of the segment's clock this decision used; over the socket of the receipt.
  Nanos stamp() const noexcept { return Nanos{data_.t}; }

  bool degraded() const noexcept { return (data_.flags & kDegraded) != 0; }
  bool overflow() const noexcept { return (data_.flags & kOverflow) != 0; }
  bool is_hint() const noexcept { return (data_.flags & kHint) != 0; }
  /// A limit in shadow mode would have refused; allowed all the same, and not charged.
  bool shadow() const noexcept { return (data_.flags & kShadow) != 0; }
  /// shadow(): the refusal it would have been; else Reason::Allowed.
  Reason would() const noexcept { return shadow() ? data_.would : Reason::Allowed; }
  /// Decided by calendar edges that were not known any more (retry_after may be off).
  bool extrapolated() const noexcept { return (data_.flags & kExtrapolated) != 0; }
  /// Tokens this decision took, the smallest over its windows; 0 for a look, a refusal, a refused
  /// shadow.
  std::uint64_t charged() const noexcept;
  DecidedBy decided_by() const noexcept { return data_.decided_by; }
  /// Which window of the limit refused, or, when allowed, is the tightest: 0..5.
  std::uint8_t window() const noexcept { return data_.window; }
  /// Name of the limit that decided; empty for a default-made Decision.
  std::string_view limit_name() const noexcept;

  /// For the library: the raw numbers.
  DecisionData& data() noexcept { return data_; }
  const DecisionData& data() const noexcept { return data_; }

 private:
  DecisionData data_;
};

/// First member of every library record a Decision points to through `owner`: where its name lies.
struct DecisionOwner {
  std::string_view name;
};

}  // namespace cutwater
