// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/admit.hpp"

#include <algorithm>

#include "shm/limit/admit_detail.hpp"

namespace cutwater::shm {
namespace {

using detail::Subject;
using detail::Tried;

/// Rounds that a change of the rules may cost; a daemon publishes ten times a second at most.
constexpr int kChangeRounds = 64;

/// Charges with the look before it where one is needed.
Tried look_and_charge(const View& view, const AdmitAsk& ask, const Subject& subject,
                      DecisionData& out) noexcept {
  const bool several = subject.kind == detail::SubjectKind::Bucket && subject.windows > 1;
  if (several && guarded(Guard::LookAtAllFirst)) {
    const Tried seen = detail::look_subject(view, ask, subject, out);
    if (seen != Tried::Granted) return seen;
  }
  return detail::charge_subject(view, ask, subject, out);
}

template <class Try>
Outcome decide(const View& view, const AdmitAsk& ask, DecisionData& out, Try&& attempt) noexcept {
  int lost = 0;
  for (int round = 0; round < kChangeRounds; ++round) {
    Subject subject;
    const Outcome read = detail::read_subject(view, ask, detail::Bans::Judge, subject);
    if (read == Outcome::Changed) continue;
    if (read != Outcome::Answered) return read;
    const Tried tried = attempt(subject);
    if (tried == Tried::Changed) continue;
    // The loser of four races is refused by the window that it lost; no place is no race.
    const bool again = tried == Tried::Lost && (out.flags & Decision::kDegraded) == 0;
    if (again && ++lost < kAdmitRounds) continue;
    if (detail::outcome_of(tried) != Outcome::Answered) return detail::outcome_of(tried);
    if (subject.shadow) detail::soften(out);
    out.notes = static_cast<std::uint8_t>(
        (subject.overridden ? kNoteOverridden : 0) |
        (subject.kind == detail::SubjectKind::Unlimited ? kNoteUnlimited : 0));
    return Outcome::Answered;
  }
  detail::answer_contended(view, out);
  return Outcome::Answered;
}

}  // namespace

LimitHandle resolve(const View& view, std::string_view name) noexcept {
  LimitHandle handle;
  handle.ref = find_limit(view, name);
  if (handle.ref.index != kNoLimit) handle.secret = make_limit_secret(view.secret, name);
  return handle;
}

Outcome look(const View& view, const AdmitAsk& ask, DecisionData& out) noexcept {
  return decide(view, ask, out, [&](const Subject& subject) {
    return detail::look_subject(view, ask, subject, out);
  });
}

Outcome admit(const View& view, const AdmitAsk& ask, DecisionData& out) noexcept {
  if (ask.cost == 0) return look(view, ask, out);
  return decide(view, ask, out, [&](const Subject& subject) {
    return look_and_charge(view, ask, subject, out);
  });
}

void count_answer(const StripeHandle& stripe, std::uint32_t limit, std::uint64_t cost,
                  const DecisionData& answer) noexcept {
  const auto add = [&](LimitCounter counter, std::uint64_t n) { stripe.add(limit, counter, n); };
  const bool allowed = answer.reason == Reason::Allowed;
  const bool would = (answer.flags & Decision::kShadow) != 0;
  add(allowed ? LimitCounter::Allowed : LimitCounter::Refused, 1);
  if (allowed && !would) add(LimitCounter::Tokens, cost);
  if (would) add(LimitCounter::ShadowRefused, 1);
  if ((answer.flags & Decision::kOverflow) != 0) add(LimitCounter::NoPlace, 1);
  if ((answer.flags & Decision::kDegraded) != 0) add(LimitCounter::Degraded, 1);
  if (answer.reason == Reason::Banned) add(LimitCounter::Banned, 1);
  if ((answer.notes & kNoteUnlimited) != 0) add(LimitCounter::Unlimited, 1);
  if ((answer.notes & kNoteOverridden) != 0) add(LimitCounter::Overridden, 1);
}

void count_after(const StripeHandle& stripe, std::uint32_t limit, std::uint64_t cost,
                 std::uint64_t charged) noexcept {
  stripe.add(limit, LimitCounter::Charged, charged);
  stripe.add(limit, LimitCounter::Uncharged, cost - std::min(charged, cost));
}

// ---- giving back --------------------------------------------------------------------------------

namespace {

/// Undo of `cost` units at the top of one charge. What is left of the charge stays.
bool give_back_one(const View& view, ChargeReceipt& charge, std::int64_t cost) noexcept {
  DecisionData one;
  one.slot = charge.slot;
  one.tag = charge.tag;
  one.level = charge.level;
  one.cost = std::min(cost, charge.cost);
  if (!undo(view, one)) return false;
  charge.level -= one.cost;
  charge.cost -= one.cost;
  if (charge.cost <= 0) charge.slot = nullptr;
  return true;
}

}  // namespace

std::uint64_t give_back(const View& view, DecisionData& receipt, std::uint64_t tokens) noexcept {
  if (receipt.receipt != Receipt::One && receipt.receipt != Receipt::Several) return 0;
  const bool several = receipt.receipt == Receipt::Several;
  const std::uint64_t whole =
      several ? receipt.tokens : static_cast<std::uint64_t>(receipt.cost) >> receipt.f;
  const std::uint64_t wanted = std::min(tokens, whole);
  if (wanted == 0) return 0;
  const std::size_t charges = several ? std::min<std::size_t>(receipt.charges, kMaxCharges) : 1;
  const ChargeReceipt as_it_was{receipt.slot, receipt.tag, receipt.level, receipt.cost};
  bool all = true;
  bool left = false;
  // From the last charged to the first, as they were stacked.
  for (std::size_t i = charges; i-- > 0;) {
    ChargeReceipt first{receipt.slot, receipt.tag, receipt.level, receipt.cost};
    ChargeReceipt& charge = i == 0 ? first : receipt.more[i - 1];
    if (charge.slot != nullptr) {
      // The same share of each window's own units: `whole` tokens are its cost.
      using Wide = unsigned __int128;
      const Wide share = static_cast<Wide>(charge.cost) * wanted / whole;
      const auto units = wanted == whole ? charge.cost : static_cast<std::int64_t>(share);
      all = give_back_one(view, charge, units) && all;
      left = left || charge.slot != nullptr;
    }
    if (i == 0) {
      receipt.slot = first.slot;
      receipt.level = first.level;
      receipt.cost = first.cost;
    }
  }
  if (!left) {
    // Spent; what it was is still to be seen, so that a second undo is told from one of nothing.
    receipt.receipt = Receipt::None;
    receipt.slot = as_it_was.slot;
    receipt.level = as_it_was.level;
    receipt.cost = as_it_was.cost;
  }
  if (all) receipt.tokens = static_cast<std::uint32_t>(whole - wanted);
  return all ? wanted : 0;
}

std::uint64_t give_back(const View& view, DecisionData& receipt) noexcept {
  return give_back(view, receipt, ~std::uint64_t{0});
}

}  // namespace cutwater::shm
