// SPDX-License-Identifier: Apache-2.0
// Acts about one breaker. Its state word carries its end, so nothing has to happen here when the
// time is over; what the journal adds is that a reboot forgets none of them.
#include <algorithm>

#include "acts/acts.hpp"
#include "rows/breaker_rows.hpp"
#include "shm/limit/bucket.hpp"

namespace cutwater::server {

namespace {

constexpr std::uint64_t kNanos = 1'000'000'000;

/// The state an act holds a breaker in, and back.
rule::BreakerState state_of(shm::Steer what) {
  switch (what) {
    case shm::Steer::Disable:
      return rule::BreakerState::Disabled;
    case shm::Steer::MetricsOnly:
      return rule::BreakerState::MetricsOnly;
    default:
      return rule::BreakerState::ForcedOpen;
  }
}
shm::Steer steer_of(rule::BreakerState state) {
  switch (state) {
    case rule::BreakerState::Disabled:
      return shm::Steer::Disable;
    case rule::BreakerState::MetricsOnly:
      return shm::Steer::MetricsOnly;
    default:
      return shm::Steer::ForceOpen;
  }
}

const char* word_of(shm::Steer what) {
  switch (what) {
    case shm::Steer::Disable:
      return "disable";
    case shm::Steer::MetricsOnly:
      return "metrics-only";
    case shm::Steer::Auto:
      return "auto";
    case shm::Steer::Reset:
      return "reset";
    default:
      return "force-open";
  }
}

/// Nobody has moved it since it was made: reloads and reboots make such ones.
bool began_anew(const shm::BreakerInfo& info) {
  return info.word.reason == rule::BreakerReason::None;
}

std::string span_text(std::uint64_t for_ns) {
  if (for_ns == 0) return "until undone";
  return fmt::format("for {} s", (for_ns + kNanos - 1) / kNanos);
}

}  // namespace

void Acts::steer_breaker(const BreakerAct& act, Done done) {
  // Of a pattern it is made now, so that its first caller finds it as it was told to be.
  const shm::ResolvedBreaker found = shm::resolve_breaker(memory_->view(), act.breaker, {});
  if (found.shared) {
    return done({wire::kSteerNoRoom,
                 shm::shared_breaker_text(memory_->view(), act.breaker, found.ref)});
  }
  const shm::BreakerRef ref = found.ref;
  if (ref.index == shm::kNoLine) {
    const auto row = rows::breaker_row(memory_->view(), act.breaker);
    return done(
        {wire::kSteerNoSuchName, row ? "the breaker was removed just now" : row.error().text()});
  }
  const bool holds = act.what != shm::Steer::Auto && act.what != shm::Steer::Reset;
  if (holds)
    hold_breaker(act, ref, std::move(done));
  else
    free_breaker(act, ref, std::move(done));
}

/// What an act on a breaker that is switched off does not do; else empty.
std::string Acts::off_text(shm::BreakerRef ref) const {
  shm::BreakerInfo info;
  const bool off = shm::read_breaker(memory_->view(), ref.index, info) &&
                   (info.numbers.flags & rule::kBreakerSwitchedOff) != 0;
  if (!off) return {};
  const bool all = !running_->config.instance.enabled;
  return fmt::format(
      "; NO EFFECT now: {} is false, every call is granted; set it to true and reload",
      all ? "instance.enabled" : "enabled of this breaker");
}

void Acts::hold_breaker(const BreakerAct& by, shm::BreakerRef ref, Done done) {
  Act act;
  act.kind = ActKind::Breaker;
  act.breaker = by.breaker;
  act.state = state_of(by.what);
  act.at_s = memory_->unix_now_s();
  act.until_s = by.for_ns == 0 ? 0 : act.at_s + (by.for_ns + kNanos - 1) / kNanos;
  act.who = by.who;
  act.note = by.note;
  ActBook next = book_;
  const auto entries = next.begin(act);
  if (!entries) return done({wire::kSteerNoRoom, entries.error().text()});
  const auto life = static_cast<std::int64_t>(by.for_ns);
  const shm::Steered steered =
      shm::steer_breaker(memory_->view(), ref, by.what, life, shm::kDaemonRow);
  if (steered == shm::Steered::Gone) {
    return done({wire::kSteerNoSuchName, "the breaker was removed just now"});
  }
  if (steered != shm::Steered::Done) {
    return done({wire::kSteerInvalid, "the breaker moves too fast just now: ask again"});
  }
  book_ = std::move(next);
  note_breaker(by.breaker, word_of(by.what));
  save(*entries,
       fmt::format("{} {} {}", by.breaker, rule::name_of(act.state), span_text(by.for_ns)) +
           off_text(ref),
       std::move(done));
}

void Acts::free_breaker(const BreakerAct& by, shm::BreakerRef ref, Done done) {
  shm::BreakerInfo before;
  static_cast<void>(shm::read_breaker(memory_->view(), ref.index, before));
  const shm::Steered steered =
      shm::steer_breaker(memory_->view(), ref, by.what, 0, shm::kDaemonRow);
  if (steered == shm::Steered::Gone) {
    return done({wire::kSteerNoSuchName, "the breaker was removed just now"});
  }
  std::string text = by.breaker + " ";
  if (steered == shm::Steered::NoChange && by.what == shm::Steer::Auto &&
      !is_by_hand(before.word.state)) {
    text += fmt::format("decides by itself already: it is {}", rule::name_of(before.word.state));
  } else if (steered != shm::Steered::Done) {
    return done({wire::kSteerInvalid, "the breaker moves too fast just now: ask again"});
  } else if (by.what == shm::Steer::Reset) {
    text += "is CLOSED, its window empty, no opening counted";
  } else if (before.word.state == rule::BreakerState::ForcedOpen) {
    text += "decides by itself again: the next call is a probe";
  } else {
    text += "decides by itself again: it is CLOSED, its window empty";
  }
  text += off_text(ref);
  if (steered == shm::Steered::Done) note_breaker(by.breaker, word_of(by.what));
  std::vector<JournalEntry> entries;
  if (const Act* standing = book_.find(ActKind::Breaker, by.breaker, {})) {
    const auto end = book_.end(standing->id, EndKind::Undone, memory_->unix_now_s(), by.who);
    entries.emplace_back(*end);
  }
  if (steered == shm::Steered::Done || !by.note.empty()) entries.push_back(moment_of(by));
  if (entries.empty()) return done({wire::kSteerDone, std::move(text)});
  save(entries, std::move(text), std::move(done));
}

void Acts::transition_breaker(const std::string& breaker, const shm::TransitionAsk& to,
                              const std::string& who, Done done) {
  const auto made = shm::transition_breaker(memory_->view(), breaker, to, shm::kDaemonRow);
  log_.info("{}: breaker {} to {}: {}", who, breaker, rule::name_of(to.to),
            made ? "done" : "refused");
  if (!made) {
    switch (made.error().code()) {
      case Errc::UnknownName: return done({wire::kSteerNoSuchName, made.error().text()});
      case Errc::Busy: return done({wire::kSteerNoRoom, made.error().text()});
      default: return done({wire::kSteerInvalid, made.error().text()});
    }
  }
  note_breaker(breaker, rule::name_of(to.to));
  const Act* const standing = book_.find(ActKind::Breaker, breaker, {});
  if (standing == nullptr) return done({wire::kSteerDone, *made});
  const auto end = book_.end(standing->id, EndKind::Undone, memory_->unix_now_s(), who);
  save({*end}, *made, std::move(done));
}

JournalEntry Acts::moment_of(const BreakerAct& by) {
  Act act;
  act.kind = by.what == shm::Steer::Auto ? ActKind::Auto : ActKind::Reset;
  act.breaker = by.breaker;
  act.at_s = memory_->unix_now_s();
  act.who = by.who;
  act.note = by.note;
  return book_.moment(std::move(act));
}

void Acts::end_breaker_act(const Act& act, const std::string& who, Done done) {
  const std::uint64_t id = act.id;
  const std::string breaker = act.breaker;
  const shm::BreakerRef ref = shm::find_breaker(memory_->view(), breaker);
  shm::BreakerInfo info;
  const bool held = ref.index != shm::kNoLine &&
                    shm::read_breaker(memory_->view(), ref.index, info) &&
                    info.word.state == act.state;
  if (held) {
    static_cast<void>(
        shm::steer_breaker(memory_->view(), ref, shm::Steer::Auto, 0, shm::kDaemonRow));
  }
  note_breaker(breaker, "undo");
  const auto end = book_.end(id, EndKind::Undone, memory_->unix_now_s(), who);
  save({*end}, fmt::format("{} of act {} undone", name_of(ActKind::Breaker), id), std::move(done));
}

/// True when the breaker is in the state the act says.
bool Acts::reapply(const Act& act, shm::BreakerRef ref, std::uint64_t now_s) {
  const auto left =
      static_cast<std::int64_t>(act.until_s == 0 ? 0 : (act.until_s - now_s) * kNanos);
  const shm::Steered done =
      shm::steer_breaker(memory_->view(), ref, steer_of(act.state), left, shm::kDaemonRow);
  if (done != shm::Steered::Done) return false;
  log_.info("breaker {} is {} again, by act {} of {}", act.breaker, rule::name_of(act.state),
            act.id, act.who);
  return true;
}

void Acts::look_at_breakers(std::size_t at_most) {
  const std::uint64_t now_s = memory_->unix_now_s();
  std::vector<JournalEntry> left;
  std::vector<std::uint64_t> moved;
  const std::map<std::uint64_t, Act>& all = book_.standing();
  auto at = all.upper_bound(last_looked_);
  for (std::size_t looked = 0; at != all.end(); ++at) {
    const auto& [id, act] = *at;
    if (act.kind != ActKind::Breaker || (act.until_s != 0 && act.until_s <= now_s)) continue;
    if (looked++ == at_most) break;
    last_looked_ = id;
    // Made where a pattern stands for it: its first caller is to find it as the act says.
    const shm::ResolvedBreaker found = shm::resolve_breaker(memory_->view(), act.breaker, {});
    const shm::BreakerRef ref = found.ref;
    shm::BreakerInfo info;
    if (found.shared || ref.index == shm::kNoLine ||
        !shm::read_breaker(memory_->view(), ref.index, info)) {
      continue;
    }
    if (began_anew(info))
      static_cast<void>(reapply(act, ref, now_s));
    else if (info.word.state != act.state)
      moved.push_back(id);
  }
  if (at == all.end()) last_looked_ = 0;
  for (const std::uint64_t id : moved) {
    // Its time counts whole seconds here, nanoseconds there.
    const Act* act = book_.find(id);
    const bool over = act->until_s != 0 && act->until_s <= now_s + 1;
    left.emplace_back(*book_.end(id, over ? EndKind::Expired : EndKind::Replaced, now_s, ""));
  }
  if (!left.empty()) save(left, "", [](const ActVerdict&) {});
}

void Acts::note_breaker(const std::string& breaker, std::string_view what) {
  memory_->note(shm::EventKind::ManualAct, shm::kNoLimit, fmt::format("{} {}", what, breaker));
}

bool Acts::was_breaker(std::uint64_t id) const {
  return std::any_of(book_.ended().rbegin(), book_.ended().rend(), [&](const EndedAct& ended) {
    return ended.act.id == id && ended.act.kind == ActKind::Breaker;
  });
}

}  // namespace cutwater::server
