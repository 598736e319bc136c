// SPDX-License-Identifier: Apache-2.0
// All or none over several limits. Look at every one; one refuses: nothing was written. Then charge
// in one fixed order, so that two callers meet at the same limit first whatever their lists; a race
// lost in between gives back what was charged and looks again.
#include <algorithm>
#include <numeric>

#include "base/sync_point.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/admit_detail.hpp"

namespace cutwater::shm {
namespace {

using detail::Joined;
using detail::Subject;
using detail::Tried;

constexpr int kChangeRounds = 64;

/// One limit and key of the set, with the cost of all asks for it.
struct Entry {
  AdmitAsk ask;
  Subject subject;
  DecisionData answer;
  std::uint8_t first = 0;              ///< index of the first ask for it
};

struct Set {
  std::array<Entry, kMaxAdmitItems> entry;
  std::array<std::uint8_t, kMaxAdmitItems> entry_of;   ///< by ask
  std::array<std::uint8_t, kMaxAdmitItems> order;      ///< in which entries are charged
  std::size_t size = 0;
  std::size_t asks = 0;
};

bool same(const AdmitAsk& a, const AdmitAsk& b) noexcept {
  return a.limit.index == b.limit.index && a.key.hash.lo == b.key.hash.lo &&
         a.key.hash.hi == b.key.hash.hi;
}

bool before(const AdmitAsk& a, const AdmitAsk& b) noexcept {
  if (a.limit.index != b.limit.index) return a.limit.index < b.limit.index;
  if (a.key.hash.hi != b.key.hash.hi) return a.key.hash.hi < b.key.hash.hi;
  return a.key.hash.lo < b.key.hash.lo;
}

/// A limit named twice with the same key counts the sum.
void gather(std::span<const AdmitAsk> asks, Set& set) noexcept {
  set.asks = asks.size();
  for (std::size_t i = 0; i < asks.size(); ++i) {
    std::size_t at = 0;
    while (at < set.size && !same(set.entry[at].ask, asks[i])) ++at;
    set.entry_of[i] = static_cast<std::uint8_t>(at);
    Entry& entry = set.entry[at];
    if (at == set.size) {
      entry.ask = asks[i];
      entry.ask.max_wait_ns = 0;
      entry.first = static_cast<std::uint8_t>(i);
      ++set.size;
    } else {
      const std::uint64_t sum = entry.ask.cost + asks[i].cost;
      entry.ask.cost = sum < asks[i].cost ? ~std::uint64_t{0} : sum;
    }
  }
  std::iota(set.order.begin(), set.order.begin() + set.size, std::uint8_t{0});
  if (!guarded(Guard::AllOrNoneOrder)) return;
  std::sort(set.order.begin(), set.order.begin() + set.size, [&](std::uint8_t a, std::uint8_t b) {
    return before(set.entry[a].ask, set.entry[b].ask);
  });
}

/// What ends a round early, and where.
struct Stop {
  Tried tried = Tried::Granted;
  std::uint8_t entry = 0;
};

Tried tried_of(Outcome read) noexcept {
  switch (read) {
    case Outcome::LimitGone: return Tried::Gone;
    case Outcome::Superseded: return Tried::Superseded;
    case Outcome::Changed: return Tried::Changed;
    case Outcome::Answered: break;
  }
  return Tried::Granted;
}

/// Looks at every entry. Refused: one that is no shadow refuses.
Stop look_at_all(const View& view, Set& set) noexcept {
  Stop stop;
  for (std::size_t i = 0; i < set.size; ++i) {
    Entry& entry = set.entry[i];
    const auto number = static_cast<std::uint8_t>(i);
    const Outcome read =
        detail::read_subject(view, entry.ask, detail::Bans::Judge, entry.subject);
    if (read != Outcome::Answered) return {tried_of(read), number};
    // One reading of clock and rules for all of them.
    if (entry.subject.c != set.entry[0].subject.c) return {Tried::Changed, number};
    entry.subject.t = set.entry[0].subject.t;
    const Tried seen = detail::look_subject(view, entry.ask, entry.subject, entry.answer);
    if (detail::outcome_of(seen) != Outcome::Answered) return {seen, number};
    if (entry.subject.shadow) {
      detail::soften(entry.answer);
    } else if (seen != Tried::Granted) {
      stop = {Tried::Refused, number};
    }
  }
  return stop;
}

/// One refuses, so nothing is taken from the others: what is there, not what would be left.
Stop look_without_cost(const View& view, Set& set) noexcept {
  for (std::size_t i = 0; i < set.size; ++i) {
    Entry& entry = set.entry[i];
    if (entry.answer.reason != Reason::Allowed || entry.ask.cost == 0) continue;
    const std::uint8_t flags = entry.answer.flags;
    if ((flags & Decision::kShadow) != 0) continue;
    AdmitAsk bare = entry.ask;
    bare.cost = 0;
    const Tried seen = detail::look_subject(view, bare, entry.subject, entry.answer);
    if (detail::outcome_of(seen) != Outcome::Answered) return {seen, static_cast<std::uint8_t>(i)};
  }
  return {Tried::Refused, 0};
}

bool charges(const Entry& entry) noexcept { return entry.ask.cost != 0; }

/// Charges every entry that is no shadow, in order, or none of them.
Stop charge_all(const View& view, Set& set) noexcept {
  for (std::size_t i = 0; i < set.size; ++i) {
    Entry& entry = set.entry[set.order[i]];
    if (entry.subject.shadow || !charges(entry)) continue;
    CUTWATER_SYNC_POINT("admit_all.before_charge");
    const Tried tried = detail::charge_subject(view, entry.ask, entry.subject, entry.answer);
    if (tried == Tried::Granted) continue;
    if (guarded(Guard::RollBackLost)) {
      for (std::size_t back = i; back-- > 0;) {
        Entry& charged = set.entry[set.order[back]];
        if (!charged.subject.shadow) give_back(view, charged.answer);
      }
    }
    return {tried == Tried::Refused ? Tried::Lost : tried, set.order[i]};
  }
  return {};
}

/// All others have granted: shadows are charged as if asked alone.
void charge_shadows(const View& view, Set& set) noexcept {
  for (std::size_t i = 0; i < set.size; ++i) {
    Entry& entry = set.entry[set.order[i]];
    if (!entry.subject.shadow || !charges(entry) || entry.answer.reason != Reason::Allowed ||
        (entry.answer.flags & Decision::kShadow) != 0) {
      continue;
    }
    if (admit(view, entry.ask, entry.answer) == Outcome::Answered) continue;
    // Gone or moved between look and charge: it blocks nobody, and took nothing.
    detail::answer_contended(view, entry.answer);
    detail::soften(entry.answer);
  }
}

void note(Entry& entry) noexcept {
  entry.answer.notes = static_cast<std::uint8_t>(
      (entry.subject.overridden ? kNoteOverridden : 0) |
      (entry.subject.kind == detail::SubjectKind::Unlimited ? kNoteUnlimited : 0));
}

/// From the entries' answers to the caller's. `granted`: the set as a whole.
void answer(Set& set, bool granted, AdmitAnswer& out) noexcept {
  Joined joined;
  Reason would = Reason::Allowed;
  for (std::size_t i = 0; i < set.size; ++i) {
    Entry& entry = set.entry[set.order[i]];
    note(entry);
    joined.add(entry.answer);
    if ((entry.answer.flags & Decision::kShadow) != 0) would = entry.answer.would;
  }
  const Entry& decisive = set.entry[set.order[joined.decisive()]];
  out.verdict = decisive.answer;
  out.verdict.flags = joined.flags();
  out.verdict.would = would;
  out.verdict.receipt = Receipt::None;
  out.verdict.slot = nullptr;
  rule::set_report(out.verdict, joined.report());
  out.decisive = decisive.first;
  out.items = static_cast<std::uint8_t>(set.asks);
  for (std::size_t i = 0; i < set.asks; ++i) {
    const Entry& entry = set.entry[set.entry_of[i]];
    out.item[i] = entry.answer;
    if (!granted || entry.first != i) {
      out.item[i].receipt = Receipt::None;
      out.item[i].slot = nullptr;
    }
  }
}

/// One ask of the whole set; `charging`: else only looked at.
Outcome decide_all(const View& view, std::span<const AdmitAsk> asks, bool charging,
                   AdmitAnswer& out) noexcept {
  out.items = 0;
  out.decisive = 0;
  if (asks.empty() || asks.size() > kMaxAdmitItems) {
    detail::fill_fixed({.reason = Reason::InvalidArgument, .retry_after_ns = rule::kNeverNs},
                       view.clock.now(), out.verdict);
    return Outcome::Answered;
  }
  Set set;
  gather(asks, set);
  int lost = 0;
  for (int round = 0; round < kChangeRounds; ++round) {
    Stop stop = look_at_all(view, set);
    if (!guarded(Guard::LookAtAllFirst) && stop.tried == Tried::Refused) stop = {};
    if (charging && stop.tried == Tried::Granted) stop = charge_all(view, set);
    if (stop.tried == Tried::Changed) continue;
    const bool degraded = (set.entry[stop.entry].answer.flags & Decision::kDegraded) != 0;
    if (stop.tried == Tried::Lost && !degraded && ++lost < kAdmitRounds) continue;
    if (stop.tried == Tried::Refused || stop.tried == Tried::Lost) {
      const Stop bare = look_without_cost(view, set);
      if (bare.tried == Tried::Changed) continue;
      if (bare.tried != Tried::Refused) stop = bare;
    }
    if (const Outcome end = detail::outcome_of(stop.tried); end != Outcome::Answered) {
      out.gone = set.entry[stop.entry].first;
      return end;
    }
    const bool granted = stop.tried == Tried::Granted;
    if (granted && charging) charge_shadows(view, set);
    answer(set, granted && charging, out);
    return Outcome::Answered;
  }
  detail::answer_contended(view, out.verdict);
  return Outcome::Answered;
}

}  // namespace

Outcome admit_all(const View& view, std::span<const AdmitAsk> asks, AdmitAnswer& out) noexcept {
  return decide_all(view, asks, true, out);
}

Outcome look_all(const View& view, std::span<const AdmitAsk> asks, AdmitAnswer& out) noexcept {
  return decide_all(view, asks, false, out);
}

}  // namespace cutwater::shm
