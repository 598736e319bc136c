// SPDX-License-Identifier: Apache-2.0
#include "janitor.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/clock.hpp"
#include "debt_count.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/breaker/story.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/counters.hpp"
#include "shm/image.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/row_holdings.hpp"
#include "shm/stripe_life.hpp"

namespace cutwater::server {

namespace {
std::uint64_t loop_now() {
  return static_cast<std::uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
}

/// What a former daemon left of the grace of a connection's row; nullopt: it is not due.
std::optional<std::uint64_t> grace_left(const shm::RowInfo& info) {
  if (info.word.state != shm::RowState::Orphan || info.due_ns == 0) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, info.due_ns - boottime_ns()));
}

std::uint64_t decisions_without_place(const shm::View& view, std::uint32_t limit) {
  return shm::sum_counters(view, limit)[static_cast<std::size_t>(shm::LimitCounter::NoPlace)];
}
}  // namespace

Janitor::Janitor(asio::io_context& loop, Memory& memory, Log& log)
    : loop_(loop),
      memory_(memory),
      log_(log),
      watch_(loop, [this](std::uint32_t row) { carry_out(book_.process_ended(row)); }),
      state_identity_(memory.state_identity()) {
  rules_published();
  const shm::View& view = memory.view();
  no_place_.resize(view.limit_count);
  for (std::uint32_t limit = 0; limit < view.limit_count; ++limit) {
    // What a former daemon may have said is not said again.
    if (view.limit_config(view.current(), limit).windows == 0) continue;
    no_place_[limit].said = decisions_without_place(view, limit);
  }
}

Janitor::Adopted Janitor::adopt_rows(std::uint64_t now_ns) {
  Adopted out;
  for (const shm::RowInfo& info : memory_.rows().in_use()) {
    if (info.index < shm::kFirstClientRow) continue;
    const shm::RowGrant row{info.index, info.word.generation};
    RowHolder holder{row, info.pid, info.start_time, 0, false, false};
    const bool dead = info.word.state == shm::RowState::Dead;
    // A connection of the former daemon: kept for whoever presents what it holds.
    holder.asks = info.word.kind == shm::RowKind::Connection && !dead;
    const bool process = info.word.kind == shm::RowKind::Process && !dead;
    auto pidfd = process || holder.asks ? open_known_process(info.pid, info.start_time)
                                        : Result<shm::UniqueFd>(shm::UniqueFd());
    const bool unknown = !pidfd || info.pid == 0;   // nothing says that it is dead
    if ((process || holder.asks) && (unknown || *pidfd)) {
      holder.watched = pidfd.ok() && *pidfd;
      std::optional<std::uint64_t> left;
      if (holder.asks) {
        shm::empty_line_of(memory_.view(), row, shm::shared_stripe(memory_.view()));
        left = grace_left(info);
      }
      carry_out(book_.adopted(holder, now_ns, left));
      if (holder.watched) watch_.watch(info.index, std::move(*pidfd));
      ++out.kept;
    } else {
      reap_row(row);
      ++out.reaped;
    }
  }
  look_at_stripes();
  if (memory_.birth() == Birth::Kind::Moved) book_.memory_moved();
  return out;
}

Result<shm::RowGrant> Janitor::attach(Attach attach) {
  const PeerProcess& peer = *attach.peer;
  if (attach.comes_again || attach.token) {
    RowActions actions;
    const auto row = book_.offered(peer.pid, peer.start_time, attach.token, attach.connection,
                                   actions);
    carry_out(actions);
    if (row) return *row;   // its process is watched already
  }
  auto row = memory_.rows().grant({.kind = attach.asks ? shm::RowKind::Connection
                                                       : shm::RowKind::Process,
                                   .pid = peer.pid,
                                   .uid = peer.identity.uid,
                                   .start_time = peer.start_time,
                                   .pid_namespace = peer.pid_namespace,
                                   .connection = attach.connection,
                                   .name = attach.name});
  if (!row) return row;
  // A session that cannot come back ends with its connection, whatever its process does.
  const bool ends = attach.asks && !attach.returns;
  const bool watched = !ends && static_cast<bool>(attach.pidfd);
  book_.attached({*row, peer.pid, peer.start_time, attach.connection, watched,
                  attach.asks && attach.returns});
  if (watched) watch_.watch(row->index, std::move(attach.pidfd));
  memory_.note(shm::EventKind::ClientAttached, row->index, attach.name);
  return row;
}

bool Janitor::taken_over(shm::RowGrant row, std::uint64_t connection) {
  RowActions actions;
  const bool there = book_.taken_over(row, connection, actions);
  carry_out(actions);
  return there;
}

void Janitor::connection_ended(std::uint64_t connection, bool said_bye, std::uint64_t now_ns,
                               bool ours) {
  carry_out(book_.connection_ended(connection, said_bye, now_ns, ours));
}

void Janitor::came_back(shm::RowGrant row, std::uint64_t now_ns) {
  carry_out(book_.came_back(row, now_ns));
}

void Janitor::carry_out(const RowActions& actions) {
  for (const RowAction& action : actions) {
    switch (action.kind) {
      case RowAction::Kind::Orphan: memory_.rows().mark_orphan(action.row); break;
      case RowAction::Kind::Due:
        memory_.rows().mark_orphan(
            action.row, boottime_ns() + static_cast<std::int64_t>(RowBook::kOrphanGraceNs));
        break;
      case RowAction::Kind::Live: memory_.rows().mark_live(action.row); break;
      case RowAction::Kind::Reap: reap_row(action.row); break;
      case RowAction::Kind::LookAtMaps: look_at_maps(action); break;
      case RowAction::Kind::LookAtCells:
        if (!shm::row_holds(memory_.view(), action.row)) reap_row_of(action.row);
        break;
    }
  }
}

/// An orphan that holds nothing any more.
void Janitor::reap_row_of(shm::RowGrant row) { carry_out(book_.looked(row, true, loop_now())); }

void Janitor::look_at_maps(const RowAction& action) {
  if (!looker_) looker_.emplace(1);
  asio::post(*looker_, [this, action, identity = state_identity_,
                        alive = std::weak_ptr<bool>(alive_)] {
    const Mapping found = look_for_mapping(action.pid, identity.device, identity.inode);
    asio::post(loop_, [this, alive, row = action.row, gone = found == Mapping::Gone] {
      if (!alive.expired()) carry_out(book_.looked(row, gone, loop_now()));
    });
  });
}

void Janitor::reap_row(shm::RowGrant row) {
  watch_.forget(row.index);
  const bool first = reaper_.idle();
  reaper_.add(memory_.view(), memory_.rows(), row);
  if (first) reap_on();
}

/// A piece at a time, with the loop's other work in between.
void Janitor::reap_on() {
  for (const shm::RowGrant& row : reaper_.step(memory_.view(), memory_.rows())) {
    memory_.note(shm::EventKind::ClientGone, row.index, {});
    log_.debug("row {} generation {}: its process is gone, everything was given back", row.index,
               row.generation);
  }
  if (reaper_.idle()) return;
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) reap_on();
  });
}

void Janitor::tick(std::uint64_t now_ns) {
  ++ticks_;
  const shm::View& view = memory_.view();
  // relaxed: for people, never judged.
  __atomic_store_n(&view.rules_control->beat_ns, static_cast<std::uint64_t>(view.clock.now()),
                   __ATOMIC_RELAXED);
  carry_out(book_.tick(now_ns));
  const std::uint64_t before = view.current();
  static_cast<void>(memory_.publisher().sweep(kSlotsPerTick));
  if (view.current() != before) rules_published();
  if (view.slot_count > kSlotsCountedAtOnce) count_table(kSlotsPerTick);   // others: when asked
  look_at_places(now_ns);
  look_at_breakers();
  look_at_bulkheads();
  look_at_durations();
  hold_medians_.look(view);
  if (ticks_ % kTicksPerSecond == 0) {
    look_at_names();
    look_at_stripes();
    look_at_calendars();
    settle_bulkheads();
    make_room();
  }
  if (ticks_ % kTicksPerMinute == 0) compare_rules();
}

/// Probes of the dead and the late, outcomes whose recorder was killed, events owed, and the step
/// to half-open where a breaker asks for it.
void Janitor::look_at_breakers() {
  const shm::View& view = memory_.view();
  const shm::StripeHandle stripe = shm::shared_stripe(view);
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    if (shm::breaker_needs_tick(view, i)) static_cast<void>(shm::tick_breaker(view, i, stripe));
  }
}

/// Places of the dead and of those that held too long, and those in line.
void Janitor::look_at_bulkheads() {
  const shm::View& view = memory_.view();
  const shm::StripeHandle stripe = shm::shared_stripe(view);
  for (std::uint32_t i = 0; i < view.bulkhead_count; ++i) {
    if (shm::bulkhead_needs_tick(view, i)) static_cast<void>(shm::tick_bulkhead(view, i, stripe));
  }
}

/// Bulkheads that shrank and have drained give their places back; Busy is tried again.
void Janitor::settle_bulkheads() {
  const shm::View& view = memory_.view();
  shm::Publisher& publisher = memory_.publisher();
  if (!publisher.settle_due() || view.clock.now() < publisher.ready_at()) return;
  const auto report = publisher.renew();
  if (report) return rules_published();
  if (report.error().code() == Errc::Busy) return;
  log_.error("bulkheads that shrank keep their places: {}", report.error().text());
}
/// Names that nobody used for `idle` leave their places to others, where a pattern has none left.
void Janitor::make_room() {
  shm::Publisher& publisher = memory_.publisher();
  const shm::View& view = memory_.view();
  shm::UnusedPlaces unused =
      idle_places_.look(view, publisher.breakers(), publisher.bulkheads());
  if (unused.empty() || view.clock.now() < publisher.ready_at()) return;
  const std::size_t breakers = unused.breakers.size(), bulkheads = unused.bulkheads.size();
  const auto report = publisher.make_room(std::move(unused));
  if (report) {
    log_.debug("patterns were full: {} breakers and {} bulkheads that nobody used make room",
               breakers, bulkheads);
    return rules_published();
  }
  if (report.error().code() == Errc::Busy) return;
  log_.error("unused places of patterns cannot be given to other names: {}",
             report.error().text());
}

/// What the durations of "the last minute" are told from: a piece of the breakers each tick.
void Janitor::look_at_durations() {
  const shm::View& view = memory_.view();
  for (std::uint32_t n = 0; n < std::min(view.breaker_count, kBreakersPerTick); ++n) {
    if (next_breaker_ >= view.breaker_count) next_breaker_ = 0;
    shm::look_at_minute(view, next_breaker_++);
  }
}

/// A renewal that is Busy (a change is not in force yet) is tried again a second later.
void Janitor::look_at_calendars() {
  const shm::View& view = memory_.view();
  shm::Publisher& publisher = memory_.publisher();
  if (view.clock.is_stepped()) return;
  const std::int64_t due = publisher.renew_at();
  if (due == rule::kNeverNs) return;                       // no calendars
  const std::int64_t now = view.clock.now();
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t offset = wall.tv_sec * 1'000'000'000LL + wall.tv_nsec - now;
  if (std::abs(offset - publisher.wall_offset()) > kClockSetNs) {
    log_.info("the wall clock was set by {} ms: calendar edges are written anew",
              (offset - publisher.wall_offset()) / 1'000'000);
    publisher.set_wall_offset(offset);
    renewal_owed_ = true;
  }
  if (!renewal_owed_ && now < due) return;
  const auto report = publisher.renew();
  if (!report) {
    if (report.error().code() != Errc::Busy) {
      log_.error("calendar edges cannot be written anew: {}; the last period goes on repeating",
                 report.error().text());
    }
    return;
  }
  renewal_owed_ = false;
  rules_published();
}

/// A kill between a claim and the look at its row leaves one.
void Janitor::look_at_stripes() {
  const std::uint32_t over = shm::release_stripes_of_the_over(memory_.view());
  if (over != 0) log_.debug("{} stripes of processes that are gone were given back", over);
}

void Janitor::look_at_names() {
  const bool lost = !memory_.names_in_place();
  if (lost && !names_lost_) {
    log_.error("somebody removed or replaced memory files in {}: keep tidy-ups away from there "
               "(RemoveIPC, tmp cleaners)", memory_.path());
    memory_.note(shm::EventKind::Damage, 0, "memory file names lost");
  }
  names_lost_ = lost;
}

void Janitor::memory_replaced() {
  state_identity_ = memory_.state_identity();
  rules_published();
  next_counted_ = 0;
  counting_ = {};
  names_lost_ = false;
  book_.memory_moved();
  reaper_.memory_replaced(memory_.view());
}

/// An answer that on-full gave is not the rule's: the operator is told, once a minute and limit.
void Janitor::look_at_places(std::uint64_t now_ns) {
  const shm::View& view = memory_.view();
  const std::uint64_t current = view.current();
  const auto limits = static_cast<std::uint32_t>(no_place_.size());
  for (std::uint32_t i = 0; i < std::min(limits, kLimitsPerTick); ++i) {
    const std::uint32_t limit = next_limit_;
    next_limit_ = (next_limit_ + 1) % limits;
    if (view.limit_config(current, limit).windows == 0) continue;
    const std::uint64_t decisions = decisions_without_place(view, limit);
    NoPlace& known = no_place_[limit];
    if (decisions <= known.said || now_ns < known.due_ns) continue;
    const shm::NameRecord& record = view.limit_name(current, limit);
    const std::string name(record.text, std::min<std::size_t>(record.length, sizeof record.text));
    log_.warn("limit {}: {} decisions found no place for their key, and on-full decided; raise "
              "capacity.keys (now {}) and restart the daemon",
              name, decisions - known.said, memory_.segment().capacity().keys);
    memory_.note(shm::EventKind::TableFull, limit, name);
    known = {decisions, now_ns + kSayNoPlaceNs};
  }
}

void Janitor::rules_published() {
  const shm::View& view = memory_.view();
  rules_current_ = view.current();
  rules_crc_ = shm::image_crc(view, static_cast<int>(rules_current_ & shm::kCurrentImageBit));
}

/// Only a hostile member of the daemon's own user can write `rules`; if so, the private copy is
/// published again.
void Janitor::compare_rules() {
  const shm::View& view = memory_.view();
  const std::uint64_t current = view.current();
  const bool whole =
      current == rules_current_ &&
      shm::image_crc(view, static_cast<int>(current & shm::kCurrentImageBit)) == rules_crc_;
  if (whole) return;
  ++repairs_;
  log_.error("the rules in the memory were written by somebody else; published again from the "
             "daemon's own copy");
  memory_.note(shm::EventKind::Damage, 0, "rules repaired");
  memory_.publisher().publish_again();
  rules_published();
}

const rows::TableFill& Janitor::fill() {
  const std::uint64_t slots = memory_.view().slot_count;
  if (slots <= kSlotsCountedAtOnce && counted_at_tick_ != ticks_) {
    next_counted_ = 0;
    counting_ = {};
    count_table(slots);
    counted_at_tick_ = ticks_;
  }
  return fill_;
}

void Janitor::count_table(std::uint64_t slots) {
  const shm::View& view = memory_.view();
  const std::uint64_t current = view.current();
  const std::int64_t now = view.clock.now();
  const std::uint64_t end = std::min(view.slot_count, next_counted_ + slots);
  for (; next_counted_ < end; ++next_counted_) {
    const Word16 word = load16(view.slots + next_counted_);
    if (word.lo == 0) continue;
    if (shm::is_claim(word.lo)) {
      ++counting_.claims;
      continue;
    }
    if (in_debt(view, current, word, now)) ++counting_.in_debt;
  }
  if (next_counted_ < view.slot_count) return;
  fill_ = counting_;
  counting_ = {};
  next_counted_ = 0;
}

}  // namespace cutwater::server
