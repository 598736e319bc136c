// SPDX-License-Identifier: Apache-2.0
// What one user has open for itself while the host's breaker is CLOSED.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/sync_point.hpp"
#include "shm/breaker/user.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

using rule::BreakerReason;
using rule::UserCounts;

struct AllCounts {
  UserCounts of[kBreakerUsers];
  std::uint32_t size = 0;
  std::uint32_t present = 0;
  UserCounts rest_of(std::uint64_t without) const noexcept {
    UserCounts rest;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (of[i].present && (without >> i & 1) == 0) rest = rest + of[i];
    }
    return rest;
  }
};

AllCounts all_counts(const BreakerParts& parts, const Judged& judged) noexcept {
  AllCounts all;
  all.size = parts.user_count;
  for (std::uint32_t i = 0; i < all.size; ++i) {
    all.of[i] = counts_at(parts, i, judged.epoch, judged.turn);
    all.present += all.of[i].present;
  }
  return all;
}

/// "4711 12/12 1/80 worker": pid, failures of calls, those of the rest, command (cut). For SlowRate
/// the slow ones. The breaker is `object`.
void tell_local_fault(const BreakerParts& parts, BreakerReason reason, const UserCounts& own,
                      const UserCounts& rest) noexcept {
  Event event;
  event.kind = EventKind::BreakerLocalFault;
  event.object = parts.index;
  event.reason = static_cast<std::uint8_t>(reason);
  event.row = static_cast<std::uint16_t>(owner_row(own.order));
  char* at = event.text;
  char* const end = event.text + sizeof event.text - 1;
  const auto put = [&](std::uint64_t number, char after) {
    const auto done = std::to_chars(at, end, number);
    if (done.ec == std::errc{}) at = done.ptr;
    if (at < end) *at++ = after;
  };
  const bool slow = reason == BreakerReason::SlowRate;
  RowInfo row;
  const bool known = read_row(*parts.view, owner_row(own.order), row);
  put(known ? row.pid : 0, ' ');
  put(slow ? own.slow : own.failures, '/');
  put(own.calls, ' ');
  put(slow ? rest.slow : rest.failures, '/');
  put(rest.calls, ' ');
  if (known) {
    const std::size_t length = strnlen(row.name, sizeof row.name);
    std::memcpy(at, row.name, std::min(length, static_cast<std::size_t>(end - at)));
  }
  append_event(*parts.view, event);
}

void tell_opened(const BreakerParts& parts, std::uint32_t i, BreakerReason reason,
                 const AllCounts& all, std::uint64_t left_out,
                 const BreakerCaller& caller) noexcept {
  count_breaker(*parts.view, caller.stripe, parts.index, BreakerCounter::LocalFaults);
  tell_local_fault(parts, reason, all.of[i], all.rest_of(left_out));
}

/// Its own probe failed: opened again, told again.
void tell_reopened(const BreakerParts& parts, std::uint32_t i, std::uint32_t epoch,
                   std::int64_t now, const BreakerCaller& caller) noexcept {
  const AllCounts all = all_counts(parts, {epoch, present_turn(parts, now), {}, now});
  tell_opened(parts, i, BreakerReason::ProbeFailed, all, std::uint64_t{1} << i, caller);
}

/// Says in the host's word that somebody has a view. False: it is CLOSED of this epoch no more.
bool mark_views(const BreakerParts& parts, std::uint32_t epoch) noexcept {
  for (int round = 0; round < kBreakerRounds; ++round) {
    Word16 seen = state_of(parts);
    const BreakerWord word = unpack_breaker(seen);
    if (word.epoch != epoch || word.state != rule::BreakerState::Closed) return false;
    if (word.views || cas16(&parts.head->state, seen, {seen.lo | kStateViews, seen.hi})) {
      return true;
    }
  }
  return false;
}

/// Open for itself for the wait that its openings in a row ask for.
UserView opened_view(const BreakerParts& parts, const UserView& from, std::uint32_t epoch,
                     std::int64_t now) noexcept {
  UserView next;
  next.epoch = epoch;
  next.attempts = (from.epoch == epoch ? from.attempts : 0) + 1;
  next.open = true;
  next.deadline_ns =
      now + static_cast<std::int64_t>(rule::open_wait(parts.numbers(), next.attempts, epoch));
  return next;
}

/// True: this call opened it.
bool open_view(const BreakerParts& parts, BreakerUser& user, std::uint32_t epoch,
               std::int64_t now) noexcept {
  for (int round = 0; round < kBreakerRounds; ++round) {
    Word16 word = load16(&user.view);
    const UserView view = unpack_view(word);
    if (view_holds(view, epoch)) return false;
    // First the bit: who has a view must have been told to look for it.
    if (!mark_views(parts, epoch)) return false;
    CUTWATER_SYNC_POINT("breaker.before_view");
    if (cas16(&user.view, word, pack_view(opened_view(parts, view, epoch, now)))) return true;
  }
  count_contention(*parts.view);
  return false;
}

}  // namespace

bool view_holds(const UserView& view, std::uint32_t epoch) noexcept {
  return view.open && (view.epoch == epoch || !guarded(Guard::BreakerMoveClearsViews));
}

std::uint32_t count_open_views(const BreakerParts& parts, std::uint32_t epoch) noexcept {
  std::uint32_t open = 0;
  for (std::uint32_t i = 0; i < parts.user_count; ++i) {
    open += view_holds(unpack_view(load16(&parts.users[i].view)), epoch);
  }
  return open;
}

bool opens_for_some_only(const BreakerParts& parts, BreakerReason reason, const Judged& judged,
                         const BreakerCaller& caller) noexcept {
  if (!users_count(parts)) return false;
  AllCounts all = all_counts(parts, judged);
  if (reason == BreakerReason::SlowRate) {
    add_hanging(parts, judged.epoch, judged.now, {all.of, all.size});
  }
  const rule::UsersVerdict verdict =
      rule::judge_users(parts.numbers(), reason, {all.of, all.size});
  if (verdict.host) return false;
  for (std::uint32_t i = 0; i < all.size; ++i) {
    if ((verdict.alone >> i & 1) == 0) continue;
    if (!open_view(parts, parts.users[i], judged.epoch, judged.now)) continue;
    tell_opened(parts, i, reason, all, verdict.alone, caller);
  }
  return true;
}

void judge_own_run(const BreakerParts& parts, const Judged& judged, std::uint32_t run,
                   const BreakerCaller& caller) noexcept {
  if (run < rule::own_run(parts.numbers()) || !users_count(parts)) return;
  BreakerUser* const user = record_of(parts, caller);
  if (user == nullptr) return;
  const AllCounts all = all_counts(parts, judged);
  if (rule::needed_users(parts.numbers(), all.present) < 2) return;
  const auto i = static_cast<std::uint32_t>(user - parts.users);
  const std::uint64_t me = std::uint64_t{1} << i;
  if (!rule::is_healthy(parts.numbers(), BreakerReason::Consecutive, all.rest_of(me))) return;
  const std::int64_t now = judged.now != 0 ? judged.now : parts.view->clock.now();
  if (!open_view(parts, *user, judged.epoch, now)) return;
  tell_opened(parts, i, BreakerReason::Consecutive, all, me, caller);
}

bool enter_by_view(const BreakerParts& parts, const BreakerWord& word, const BreakerCaller& caller,
                   std::int64_t deadline_ns, bool take, BreakerEntry& out) noexcept {
  BreakerUser* user = own_record(parts, caller);
  if (user == nullptr && users_full(parts)) user = parts.users + parts.user_count - 1;
  if (user == nullptr) return false;
  const auto i = static_cast<std::uint32_t>(user - parts.users);
  const bool release = parts.numbers().on_probe_timeout ==
                       static_cast<std::uint8_t>(rule::OnProbeTimeout::Release);
  for (int round = 0; round < kBreakerRounds; ++round) {
    Word16 seen = load16(&user->view);
    UserView view = unpack_view(seen);
    if (!view_holds(view, word.epoch)) return false;
    const std::int64_t now = parts.view->clock.now();
    out = {};
    out.now_ns = now;
    out.call.epoch = word.epoch;
    const bool over = view.probing ? now >= view.deadline_ns
                                   : rule::is_over(parts.edge(), view.deadline_ns, now);
    if (over && view.probing && !release) {          // its own probe never reported: it failed
      view = opened_view(parts, view, word.epoch, now);
      if (take && !cas16(&user->view, seen, pack_view(view))) continue;
      if (take) {
        count_breaker(*parts.view, caller.stripe, parts.index, BreakerCounter::ProbesExpired);
        tell_reopened(parts, i, word.epoch, now, caller);
      }
    } else if (over) {
      UserView probe = view;
      probe.probing = true;
      probe.deadline_ns = probe_deadline(parts, now, deadline_ns);
      CUTWATER_SYNC_POINT("breaker.before_own_probe");
      if (take && !cas16(&user->view, seen, pack_view(probe))) continue;
      out.granted = true;
      out.call.kind = CallKind::OwnProbe;
      out.call.cell = static_cast<std::uint16_t>(i);
      out.call.ticket = pack_view(probe);
      return true;
    }
    out.scope = RefusalScope::Process;
    out.hint = view.probing;
    out.reason = view.probing ? Reason::Probing : Reason::Open;
    out.state = view.probing ? rule::BreakerState::HalfOpen : rule::BreakerState::Open;
    out.retry_after_ns = view.probing ? view.deadline_ns - now
                                      : rule::until_over(parts.edge(), view.deadline_ns, now);
    return true;
  }
  return false;
}

void finish_own_probe(const BreakerParts& parts, const BreakerCall& call,
                      rule::BreakerOutcome outcome, bool counts, std::int64_t now,
                      const BreakerCaller& caller) noexcept {
  if (call.cell >= parts.user_count) return;
  BreakerUser& user = parts.users[call.cell];
  Word16 held = call.ticket;
  if (!(load16(&user.view) == held)) return;         // it expired
  const UserView probe = unpack_view(held);
  // The host moved, perhaps by this very outcome: its move ended the view, and nothing is told.
  if (epoch_of(state_of(parts).lo) != probe.epoch) return;
  if (now == 0) now = parts.view->clock.now();
  UserView next = {.epoch = probe.epoch};
  const bool failed = counts && (outcome.failed || outcome.slow);
  if (failed) {
    next = opened_view(parts, probe, probe.epoch, now);
  } else if (!counts) {
    next = probe;
    next.probing = false;
    next.deadline_ns = now - (parts.edge() == rule::OpenEdge::Exclusive ? 1 : 0);
  } else {
    clear_counts(user, probe.epoch);                 // first: while it is open nobody judges it
  }
  CUTWATER_SYNC_POINT("breaker.before_own_result");
  if (!cas16(&user.view, held, pack_view(next)) || !failed) return;
  tell_reopened(parts, call.cell, probe.epoch, now, caller);
}

}  // namespace cutwater::shm
