// SPDX-License-Identifier: Apache-2.0
// All windows of one key: one look at all of them, one charge of all of them or of none, and how
// their answers become one.
#include <algorithm>

#include "base/sync_point.hpp"
#include "shm/limit/admit_detail.hpp"

namespace cutwater::shm::detail {
namespace {

BucketAsk ask_of(const AdmitAsk& ask, const Subject& subject, std::uint8_t window) noexcept {
  BucketAsk out{.limit = ask.limit, .key = ask.key.hash};
  out.cost = ask.cost;
  out.max_wait_ns = ask.max_wait_ns;
  out.window = window;
  out.rule = subject.rule[window];
  out.expect = subject.c;
  out.text = ask.key.text;
  return out;
}

Tried tried_of(Outcome outcome, const DecisionData& out) noexcept {
  switch (outcome) {
    case Outcome::Answered:
      return out.reason == Reason::Allowed ? Tried::Granted : Tried::Refused;
    case Outcome::LimitGone: return Tried::Gone;
    case Outcome::Superseded: return Tried::Superseded;
    case Outcome::Changed: return Tried::Changed;
  }
  return Tried::Gone;
}

ChargeReceipt receipt_of(const DecisionData& answer) noexcept {
  return {answer.receipt == Receipt::One ? answer.slot : nullptr, answer.tag, answer.level,
          answer.cost};
}

void fill_subject(const Subject& subject, DecisionData& out) noexcept {
  if (subject.kind == SubjectKind::Unlimited) {
    return fill_fixed({.remaining = kRemainingUnlimited}, subject.t, out);
  }
  const bool forever = subject.banned_until >= kBanForever;
  const std::int64_t wait =
      forever ? rule::kNeverNs : std::max<std::int64_t>(1, subject.banned_until - subject.t);
  fill_fixed({.reason = Reason::Banned, .retry_after_ns = wait, .reset_after_ns = wait}, subject.t,
             out);
}

}  // namespace

void join(const DecisionData* answer, std::size_t windows, DecisionData& out) noexcept {
  Joined joined;
  for (std::size_t w = 0; w < windows; ++w) joined.add(answer[w]);
  const DecisionData& decisive = answer[joined.decisive()];
  static_cast<DecisionNumbers&>(out) = decisive;
  out.flags = joined.flags();
  rule::set_report(out, joined.report());
  out.receipt = Receipt::None;
  if (joined.refused()) {
    out.slot = nullptr;
    return;
  }
  // The numbers carry the first window's receipt, `more` the others'.
  const ChargeReceipt first = receipt_of(answer[0]);
  bool any = first.slot != nullptr;
  std::uint64_t tokens = static_cast<std::uint64_t>(answer[0].cost) >> answer[0].f;
  for (std::size_t w = 1; w < windows; ++w) {
    out.more[w - 1] = receipt_of(answer[w]);
    any = any || out.more[w - 1].slot != nullptr;
    tokens = std::min(tokens, static_cast<std::uint64_t>(answer[w].cost) >> answer[w].f);
  }
  out.tokens = static_cast<std::uint32_t>(tokens);
  out.slot = first.slot;
  out.tag = first.tag;
  out.level = first.level;
  out.cost = first.cost;
  out.f = answer[0].f;
  out.charges = static_cast<std::uint8_t>(windows);
  if (any) out.receipt = Receipt::Several;
}

void Joined::add(const DecisionData& answer) noexcept {
  const rule::Report one = rule::report_of(answer);
  const bool refuses = answer.reason != Reason::Allowed;
  flags_ |= answer.flags;
  // Of those that refuse the longest wait decides; while none does, the least remaining.
  bool decides = count_ == 0;
  if (refuses) {
    decides = !refused_ || one.retry_after_ns > report_.retry_after_ns;
  } else if (!refused_ && count_ != 0) {
    decides = one.remaining < decisive_remaining_;
  }
  if (decides) {
    decisive_ = count_;
    decisive_remaining_ = one.remaining;
  }
  report_.remaining = count_ == 0 ? one.remaining : std::min(report_.remaining, one.remaining);
  report_.reset_after_ns = std::max(report_.reset_after_ns, one.reset_after_ns);
  report_.starts_in_ns = std::max(report_.starts_in_ns, one.starts_in_ns);
  if (refuses) report_.retry_after_ns = std::max(report_.retry_after_ns, one.retry_after_ns);
  refused_ = refused_ || refuses;
  ++count_;
}

rule::Report Joined::report() const noexcept {
  rule::Report out = report_;
  if (refused_) out.starts_in_ns = 0;
  return out;
}

void fill_fixed(const FixedAnswer& answer, std::int64_t t, DecisionData& out) noexcept {
  out = DecisionData{};
  out.reason = answer.reason;
  out.flags = answer.flags;
  out.t = t;
  rule::set_report(out, {answer.remaining, answer.retry_after_ns, answer.reset_after_ns, 0});
}

void answer_contended(const View& view, DecisionData& out) noexcept {
  // relaxed: a count, nothing rides on it.
  __atomic_fetch_add(&view.stats_control->contention, 1, __ATOMIC_RELAXED);
  constexpr std::int64_t kHintNs = 1'000'000;
  fill_fixed({.reason = Reason::Degraded,
              .flags = Decision::kDegraded | Decision::kHint,
              .retry_after_ns = kHintNs},
             view.clock.now(), out);
}

void soften(DecisionData& out) noexcept {
  if (out.reason == Reason::Allowed) return;
  rule::Report report = rule::report_of(out);
  report.retry_after_ns = 0;
  out.would = out.reason;
  out.reason = Reason::Allowed;
  out.flags |= Decision::kShadow;
  out.receipt = Receipt::None;
  out.slot = nullptr;
  rule::set_report(out, report);
}

Outcome outcome_of(Tried tried) noexcept {
  switch (tried) {
    case Tried::Changed: return Outcome::Changed;
    case Tried::Gone: return Outcome::LimitGone;
    case Tried::Superseded: return Outcome::Superseded;
    case Tried::Granted:
    case Tried::Refused:
    case Tried::Lost: break;
  }
  return Outcome::Answered;
}

Tried look_subject(const View& view, const AdmitAsk& ask, const Subject& subject,
                   DecisionData& out) noexcept {
  if (subject.kind != SubjectKind::Bucket) {
    fill_subject(subject, out);
    return out.reason == Reason::Allowed ? Tried::Granted : Tried::Refused;
  }
  DecisionData answer[kMaxWindows];
  bool granted = true;
  const auto look_in = [&](std::uint8_t w, std::uint64_t cost) {
    BucketAsk one = ask_of(ask, subject, w);
    one.cost = cost;
    std::uint64_t hint = kNoSlot;
    return look_at(view, one, subject.t, hint, subject.windows == 1 ? out : answer[w]);
  };
  for (std::uint8_t w = 0; w < subject.windows; ++w) {
    const Outcome outcome = look_in(w, ask.cost);
    const Tried tried = tried_of(outcome, subject.windows == 1 ? out : answer[w]);
    if (outcome != Outcome::Answered) return tried;
    granted = granted && tried == Tried::Granted;
  }
  if (subject.windows != 1) {
    // One refuses, so nothing is taken from the others: what is there, not what would be left.
    for (std::uint8_t w = 0; !granted && w < subject.windows; ++w) {
      if (answer[w].reason != Reason::Allowed) continue;
      if (const Outcome again = look_in(w, 0); again != Outcome::Answered)
        return tried_of(again, answer[w]);
    }
    join(answer, subject.windows, out);
  }
  out.receipt = Receipt::None;
  out.slot = nullptr;
  return granted ? Tried::Granted : Tried::Refused;
}

Tried charge_subject(const View& view, const AdmitAsk& ask, const Subject& subject,
                     DecisionData& out) noexcept {
  if (subject.kind != SubjectKind::Bucket) return look_subject(view, ask, subject, out);
  if (subject.windows == 1) {
    std::uint64_t hint = kNoSlot;
    return tried_of(charge_at(view, ask_of(ask, subject, 0), subject.t, hint, out), out);
  }
  DecisionData answer[kMaxWindows];
  for (std::uint8_t w = 0; w < subject.windows; ++w) {
    std::uint64_t hint = kNoSlot;
    CUTWATER_SYNC_POINT("admit.before_window");
    const Outcome outcome = charge_at(view, ask_of(ask, subject, w), subject.t, hint, answer[w]);
    const Tried tried = tried_of(outcome, answer[w]);
    if (tried == Tried::Granted) continue;
    if (guarded(Guard::RollBackLost)) {
      for (std::uint8_t back = w; back-- > 0;) give_back(view, answer[back]);
    }
    out = answer[w];
    out.receipt = Receipt::None;
    return tried == Tried::Refused ? Tried::Lost : tried;
  }
  join(answer, subject.windows, out);
  return Tried::Granted;
}

}  // namespace cutwater::shm::detail
