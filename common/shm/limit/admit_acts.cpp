// SPDX-License-Identifier: Apache-2.0
// What is charged after the fact, and operators' acts: each window of the key by itself.
#include <algorithm>

#include "shm/limit/admit.hpp"
#include "shm/limit/admit_detail.hpp"

namespace cutwater::shm {
namespace {

using detail::Subject;
using detail::SubjectKind;

constexpr int kChangeRounds = 64;

/// A window was changed by rules that are not in force any more: the next reading goes on there.
/// `act` does one window: Answered, or what ends the act, or Changed.
template <class Act>
Outcome each_window(const View& view, const AdmitAsk& ask, Subject& subject, Act&& act) noexcept {
  std::uint8_t next = 0;
  for (int round = 0; round < kChangeRounds; ++round) {
    // A ban is no reason not to change what lies in the buckets.
    const Outcome read = detail::read_subject(view, ask, detail::Bans::Ignore, subject);
    if (read == Outcome::Changed) continue;
    if (read != Outcome::Answered) return read;
    if (subject.kind != SubjectKind::Bucket) return Outcome::Answered;
    Outcome done = Outcome::Answered;
    while (next < subject.windows && done == Outcome::Answered) {
      BucketAsk one{.limit = ask.limit, .key = ask.key.hash};
      one.cost = ask.cost;
      one.window = next;
      one.rule = subject.rule[next];
      one.expect = subject.c;
      one.text = ask.key.text;
      done = act(one, subject);
      if (done == Outcome::Answered) ++next;
    }
    if (done != Outcome::Changed) return done;
  }
  return Outcome::Answered;
}

Outcome look_after(const View& view, const AdmitAsk& key, DecisionData& out) noexcept {
  AdmitAsk ask = key;
  ask.cost = 0;
  ask.max_wait_ns = 0;
  return look(view, ask, out);
}

/// Takes from each window, and joins the answers with their receipts.
Outcome take(const View& view, const AdmitAsk& ask, Take how, std::uint64_t& taken,
             DecisionData& out) noexcept {
  DecisionData answer[kMaxWindows];
  Subject subject;
  const Outcome done = each_window(view, ask, subject, [&](BucketAsk& one, const Subject& now) {
    one.take = how;
    std::uint64_t hint = kNoSlot;
    return charge_at(view, one, now.t, hint, answer[one.window]);
  });
  if (done != Outcome::Answered) return done;
  taken = ask.cost;
  if (subject.kind != SubjectKind::Bucket) {
    detail::fill_fixed({.remaining = subject.kind == SubjectKind::Unlimited ? kRemainingUnlimited
                                                                            : 0},
                       subject.t, out);
    return Outcome::Answered;
  }
  taken = ~std::uint64_t{0};
  for (std::uint8_t w = 0; w < subject.windows; ++w) {
    const bool charged = answer[w].reason == Reason::Allowed;
    const auto tokens = static_cast<std::uint64_t>(answer[w].cost) >> answer[w].f;
    taken = std::min(taken, charged ? tokens : 0);
    // Paid already: nothing begins later.
    rule::Report report = rule::report_of(answer[w]);
    report.starts_in_ns = 0;
    rule::set_report(answer[w], report);
  }
  detail::join(answer, subject.windows, out);
  out.notes = subject.overridden ? kNoteOverridden : 0;
  return Outcome::Answered;
}

}  // namespace

Outcome charge_after(const View& view, const AdmitAsk& ask, std::uint64_t& charged,
                     DecisionData& out) noexcept {
  AdmitAsk late = ask;
  late.max_wait_ns = 0;
  return take(view, late, Take::Most, charged, out);
}

Outcome drain(const View& view, const AdmitAsk& key, std::uint64_t& drained,
              DecisionData& out) noexcept {
  AdmitAsk all = key;
  all.cost = 0;
  all.max_wait_ns = 0;
  const Outcome done = take(view, all, Take::Rest, drained, out);
  return done == Outcome::Answered ? look_after(view, key, out) : done;
}

Outcome credit(const View& view, const AdmitAsk& key, std::uint64_t tokens,
               DecisionData& out) noexcept {
  Subject subject;
  const Outcome done = each_window(view, key, subject, [&](const BucketAsk& one, const Subject&) {
    bool had_debt = false;
    return credit_window(view, one, tokens, had_debt);
  });
  return done == Outcome::Answered ? look_after(view, key, out) : done;
}

Outcome refill(const View& view, const AdmitAsk& key, bool& had_debt) noexcept {
  had_debt = false;
  Subject subject;
  return each_window(view, key, subject, [&](const BucketAsk& one, const Subject&) {
    bool one_had = false;
    const Outcome done = credit_window(view, one, ~std::uint64_t{0}, one_had);
    had_debt = had_debt || one_had;
    return done;
  });
}

}  // namespace cutwater::shm
