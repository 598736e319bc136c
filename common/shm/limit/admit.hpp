// SPDX-License-Identifier: Apache-2.0
// Admit: everything anybody asks of limits beyond one plain window. The mapped client, the daemon
// (ACQUIRE, PEEK, ENTER, REFUND, STEER) and replay ask exactly these functions, so the same
// question gets the same answer whichever way it is asked.
//
//   LimitHandle api = resolve(view, "api");              // index kNoLimit: no such limit
//   DecisionData out;
//   Outcome done = admit(view, {.limit = api.ref, .key = key_of(api, "alice")}, out);
//
// One decision of one limit goes: ban? override? kind (bucket, unlimited, blocked)? then its 1..6
// windows, all or none. Several windows or limits: *look at all first* (guard LookAtAllFirst) and
// refuse without a write, then charge in a fixed order; a race lost in between undoes by receipt
// (guard LostRaceUndoes) and looks again, kAdmitRounds rounds, then refuses as the loser. Killed
// between two charges: what was charged stays spent, at most the cost in each, and refills; nothing
// is ever minted. Model with mutants: tests/model/all_or_none_model.
//
// The answer of several: remaining = the smallest, retry_after = the largest over what refuses,
// reset_after and starts_in = the largest, `window` = who refused (the longest wait) or, when
// allowed, the tightest. All of one reading of the clock, finished at once (`computed`).
//
// A shadow limit (`mode: shadow`) decides as if enforced; a refusal of it is answered allowed with
// flag kShadow and `would`, and charges nothing. Overrides: the exact key beats patterns, patterns
// in the order of the image; each has its own rule ids in the same windows of the table, so a key
// keeps its debt when it gets one. Keys: `text` is looked at for patterns only, and kept by nobody.
//
// What each function writes: admit, admit_all, charge_after: one cas16 a window and item granted,
// nothing when refused. look and look_all: nothing at all. Counters are the caller's.
// Bounds: kMaxWindows windows, kMaxAdmitItems items, kAdmitRounds rounds, kMaxAttempts swaps each.
// Nothing here allocates, sleeps, locks or calls the kernel. Thread and process safety: everything
// from anybody who maps the segment read-write, but ban, unban and clear_bans: the owner of the
// segment alone, one at a time. Spec: limiter 1-7; memory 6-8.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "shm/counters.hpp"
#include "shm/limit/bucket.hpp"

namespace cutwater::shm {

inline constexpr std::size_t kMaxAdmitItems = 8;
/// Lost races after which an all-or-none ask is refused as the loser.
inline constexpr int kAdmitRounds = 4;
/// `remaining` of an unlimited key: as many as one ask may want.
inline constexpr std::uint64_t kRemainingUnlimited = kMaxCost;
/// Bits of DecisionNumbers::notes, for whoever counts the answer of admit, look or charge_after.
inline constexpr std::uint8_t kNoteOverridden = 1;   ///< an override decided
inline constexpr std::uint8_t kNoteUnlimited = 2;    ///< allowed without a bucket
/// A ban without an end.
inline constexpr std::int64_t kBanForever = std::int64_t{1} << 62;

/// A limit by name: where it lies and how its keys are hashed. A value; the secret is private.
struct LimitHandle {
  LimitRef ref{kNoLimit, 0};
  LimitSecret secret{};
};
LimitHandle resolve(const View& view, std::string_view name) noexcept;

/// A key as asked. `text` must outlive the call; it is read only when the limit has patterns.
struct AskedKey {
  KeyHash hash;
  std::string_view text;
};
inline AskedKey key_of(const LimitHandle& limit, std::string_view key) noexcept {
  return {hash_key(limit.secret, key), key};
}

/// One ask of one limit. cost 0 is a look. max_wait_ns > 0: may take a place in line, bounded by
/// the limit's max-wait; the caller sleeps (or is told starts_in), nothing here does.
struct AdmitAsk {
  LimitRef limit;
  AskedKey key;
  std::uint64_t cost = 1;
  std::int64_t max_wait_ns = 0;
};

/// One limit, all kinds. Fills everything of `out` but `owner` and `decided_by` (left Memory).
/// Outcome as in shm/limit/bucket.hpp.
Outcome admit(const View& view, const AdmitAsk& ask, DecisionData& out) noexcept;
/// What admit would answer. Writes nothing.
Outcome look(const View& view, const AdmitAsk& ask, DecisionData& out) noexcept;

// ---- several limits ----------------------------------------------------------------------------

/// Answer of an all-or-none ask. `verdict` is what to tell: of the limit that refuses with the
/// longest wait, or, when all grant, of the tightest one; flags are those of all items together.
/// `item[i]` is the answer of asks[i] by itself: in a set that was refused an item that grants says
/// what is there, as nothing was taken. Receipts lie in the items, the verdict has none.
struct AdmitAnswer {
  DecisionData verdict;
  std::array<DecisionData, kMaxAdmitItems> item;
  std::uint8_t items = 0;
  std::uint8_t decisive = 0;           ///< index of the item the verdict is of
  std::uint8_t gone = 0;               ///< Outcome::LimitGone: index of the item that is gone
};

/// All or none over 1..kMaxAdmitItems asks (none or more than that: Outcome::Answered with
/// Reason::InvalidArgument). The order of the asks changes nothing. A limit named twice with the
/// same key counts the sum of the costs; its answer is then the same in both items, the receipt in
/// the first. Shadow limits never block and are charged only when all others grant. max_wait_ns of
/// the items is not used: nobody waits in an all-or-none ask.
Outcome admit_all(const View& view, std::span<const AdmitAsk> asks, AdmitAnswer& out) noexcept;
/// What admit_all would answer. Writes nothing.
Outcome look_all(const View& view, std::span<const AdmitAsk> asks, AdmitAnswer& out) noexcept;

/// Counts an answer of limit number `limit` that was asked `cost` (over 0) on `stripe`: Allowed or
/// Refused, Tokens of what was allowed and charged, and what its flags and notes say.
void count_answer(const StripeHandle& stripe, std::uint32_t limit, std::uint64_t cost,
                  const DecisionData& answer) noexcept;
/// Counts a charge after the fact: Charged, and Uncharged for what went beyond max-debt. It decided
/// nothing, so it is neither Allowed nor Refused.
void count_after(const StripeHandle& stripe, std::uint32_t limit, std::uint64_t cost,
                 std::uint64_t charged) noexcept;

// ---- giving back -------------------------------------------------------------------------------

/// Undo of the last `tokens` of a charge (all windows of it), exact, only while nobody charged
/// after it. Tokens given back: `tokens`, and what is left of the receipt stays good; 0: too late
/// in at least one window, and what could not be undone stays on the receipt. `tokens` over the
/// charge counts as the whole charge.
std::uint64_t give_back(const View& view, DecisionData& receipt, std::uint64_t tokens) noexcept;
/// The whole charge.
std::uint64_t give_back(const View& view, DecisionData& receipt) noexcept;

// ---- after the fact, and operators' acts -------------------------------------------------------

/// Charges what was used already (L9): never refused for want of tokens, goes into debt down to
/// max-debt; what goes beyond is not charged. Each window takes what it can; `charged` = the
/// smallest over the windows, in tokens. A ban or a shadow mode changes nothing: it was used.
/// Unlimited and blocked keys have no bucket: allowed, charged = cost.
Outcome charge_after(const View& view, const AdmitAsk& ask, std::uint64_t& charged,
                     DecisionData& out) noexcept;

/// Operator's act outside P1: tat := max(N, tat - tokens) in each window of the key. An unknown key
/// is full already: nothing is written. `out` is the look after it.
Outcome credit(const View& view, const AdmitAsk& key, std::uint64_t tokens,
               DecisionData& out) noexcept;
/// Operator's act: the tokens there now are spent, in each window; a debt stays a debt. `drained` =
/// whole tokens taken, the smallest over the windows. `out` is the look after it.
Outcome drain(const View& view, const AdmitAsk& key, std::uint64_t& drained,
              DecisionData& out) noexcept;
/// Operator's act: each window of the key is full again. True in `had_debt` when one was not.
Outcome refill(const View& view, const AdmitAsk& key, bool& had_debt) noexcept;

// ---- bans --------------------------------------------------------------------------------------

enum class BanOutcome : std::uint8_t {
  Done,
  NoPlace,      ///< both groups hold only keys in debt: make it an override with `until`
  LimitGone,
};
struct BanAnswer {
  BanOutcome outcome = BanOutcome::Done;
  /// The limit had no ban before: call Publisher::announce() before the act is answered, so that
  /// every client stops deciding this limit by its plain window.
  bool announce = false;
};

/// Bans one key until segment time `until_ns`: an entry of rule kBanRuleId, window 255, whose clock
/// is time itself. An earlier ban of the key is replaced. LIMIT.bans_until is raised before the
/// entry is put, so a decision that looks after this returned finds it. Killed between the two:
/// decisions look for bans that are not there, nothing else. Bans without an end are overrides
/// (`blocked`), not entries. Owner only.
BanAnswer ban(const View& view, LimitRef limit, KeyHash key, std::int64_t until_ns) noexcept;
/// Ends a ban now. False: the key was not banned. Owner only.
bool unban(const View& view, LimitRef limit, KeyHash key) noexcept;
/// Until when the key is banned at `t`, 0 when it is not. Does not see overrides.
std::int64_t banned_until(const View& view, LimitRef limit, KeyHash key, std::int64_t t) noexcept;
/// From the owner's tick: limits whose last ban is over no longer look for any. True: at least one;
/// call Publisher::announce(). Owner only.
bool clear_bans(const View& view) noexcept;

}  // namespace cutwater::shm
