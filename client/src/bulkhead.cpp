// SPDX-License-Identifier: Apache-2.0
// Bulkhead, Place: one swap while a place is free, a record in line otherwise.
#include <cutwater/bulkhead.hpp>

#include <algorithm>

#include "base/fork_page.hpp"
#include "rule/bulkhead_text.hpp"
#include "shm/bulkhead/detail.hpp"
#include "shm/bulkhead/quick.hpp"
#include "src/ask/ask_watcher.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "src/enter_parts.hpp"
#include "src/give_back.hpp"

namespace cutwater {

using detail::BulkheadRecord;
using detail::BulkheadSpot;
using detail::EnterParts;
using detail::Nowhere;

// ---- places -------------------------------------------------------------------------------------

Place& Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  if (held_) leave();
  spot_ = other.spot_;
  ref_ = other.ref_;
  cell_value_ = other.cell_value_;
  start_ns_ = other.start_ns_;
  life_ = other.life_;
  cell_ = other.cell_;
  held_ = other.held_;
  coarse_ = other.coarse_;
  other.spot_ = nullptr;
  other.cell_value_ = 0;
  other.held_ = false;
  return *this;
}

bool Place::holds() const noexcept { return held_ && life_ == process_life(); }

void Place::leave() noexcept {
  held_ = false;
  if (spot_ == nullptr) [[unlikely]] return EnterParts::leave_asked(*this);
  // One that is timed by the kernel's tick was not its thread's first in that tick, and has no
  // max-hold: another one looked.
  if (!coarse_) spot_->look_after();
  const shm::PlaceTicket place{cell_value_, start_ns_, cell_, coarse_};
  // relaxed, both: numbers that carry their whole meaning.
  const std::uint64_t life = spot_->life->load(std::memory_order_relaxed);
  bool moved = false;
  if (place.cell_value == 0 || life != life_ ||
      !shm::leave_quickly(*spot_->view, ref_, spot_->caller(life), place, moved) ||
      moved) [[unlikely]] {
    leave_slowly(place, moved);
  }
}

[[gnu::noinline]] void Place::leave_slowly(shm::PlaceTicket place, bool moved) noexcept {
  // Empty, or its parent's.
  if (place.cell_value == 0 || life_ != process_life()) return;
  if (!moved) {
    moved = shm::leave_bulkhead(*spot_->view, BulkheadSpot::unpacked(ref_), spot_->leaver(ref_),
                                place) == shm::Left::Moved;
  }
  if (moved) detail::leave_in_successor(*spot_, ref_, place);
}

void EnterParts::fill(Place& place, BulkheadSpot& spot, std::uint64_t ref,
                      const shm::PlaceTicket& granted) noexcept {
  if (granted.cell_value == 0) return;
  place.spot_ = &spot;
  place.ref_ = ref;
  place.cell_value_ = granted.cell_value;
  place.start_ns_ = granted.start_ns;
  place.life_ = process_life();
  place.cell_ = granted.cell;
  place.coarse_ = granted.coarse;
  place.held_ = true;
}

// ---- refusals -----------------------------------------------------------------------------------

std::string_view BulkheadRefusal::bulkhead_name() const noexcept {
  return record_ == nullptr ? std::string_view{} : record_->name_view;
}

/// `own`: the name of what answered; a pattern's for names beyond its max-instances.
void BulkheadRefusal::share(std::string_view own) noexcept {
  const bool other = own != bulkhead_name() && own.find('*') != std::string_view::npos;
  shared_[other ? own.copy(shared_, sizeof shared_ - 1) : 0] = 0;
}

std::string BulkheadRefusal::text() const {
  if (reason_ == Reason::Degraded) {
    return "bulkhead '" + std::string(bulkhead_name()) + "' cannot be asked; " +
           (record_ == nullptr ? "it has no name"
                               : detail::nowhere_text(*record_, static_cast<Nowhere>(nowhere_)));
  }
  rule::BulkheadStory story;
  story.name = bulkhead_name();
  story.in_use = in_use_;
  story.limit = limit_;
  story.waiting = waiting_;
  story.oldest_ns = oldest_held_.count();
  story.waited_ns = waited_.count();
  story.cut_wait_ns = cut_wait_.count();
  story.expired = reason_ == Reason::Expired;
  story.shared_by = shared_;
  return rule::refusal_text(story, retry_after_ == kNever ? -1 : retry_after_.count());
}

void EnterParts::fill(BulkheadRefusal& refusal, const BulkheadRecord& record,
                      const BulkheadSpot* spot, const shm::BulkheadEntry& said,
                      std::int64_t waited_ns, Nanos asked_wait) noexcept {
  refusal.record_ = &record;
  refusal.reason_ = said.reason;
  refusal.in_use_ = said.in_use;
  refusal.limit_ = said.limit;
  refusal.waiting_ = said.waiting;
  refusal.oldest_held_ = Nanos{said.oldest_ns};
  refusal.waited_ = Nanos{waited_ns};
  refusal.cut_wait_ = cut_of(said.reason, said.max_wait_ns == 0, refusal.waited_, asked_wait);
  refusal.retry_after_ =
      said.retry_after_ns < 0 ? kNever : Nanos{std::max<std::int64_t>(1, said.retry_after_ns)};
  if (said.reason != Reason::Degraded) {
    if (spot == nullptr || spot->index() >= spot->view->bulkhead_count) return;
    char own[sizeof refusal.shared_] = {};
    shm::bulkhead_name(*spot->view, spot->view->current(), spot->index(), own, sizeof own);
    return refusal.share(own);
  }
  const bool child = spot != nullptr && spot->caller().row == 0;
  refusal.nowhere_ = static_cast<std::uint8_t>(child ? Nowhere::NoRow : Nowhere::Gone);
}

void EnterParts::nowhere(BulkheadRefusal& refusal, const BulkheadRecord& record,
                         Nowhere why) noexcept {
  refusal.record_ = &record;
  refusal.reason_ = Reason::Degraded;
  refusal.nowhere_ = static_cast<std::uint8_t>(why);
  refusal.retry_after_ = Nanos{detail::retry_nowhere_ns(record.link)};
}

// ---- entering -----------------------------------------------------------------------------------

std::string_view Bulkhead::name() const noexcept { return record_->name_view; }

/// Where to ask now; nullptr: `out` is the answer.
BulkheadSpot* Bulkhead::find(const PlaceAsk& ask, Placed& out) noexcept {
  BulkheadSpot* const at = record_->at.load(std::memory_order_acquire);
  // relaxed: the numbers are compared; `current` itself is loaded with acquire.
  if (at != nullptr && at->plain.load(std::memory_order_relaxed) &&
      at->seen_current.load(std::memory_order_relaxed) == at->view->current()) [[likely]] {
    return at;
  }
  detail::Found<BulkheadSpot> found = detail::find_spot(*record_);
  if (found.socket != nullptr) {
    wire::Admission told;
    client::AskedCall* held = nullptr;
    if (detail::enter_asked(*record_, ask, told, held, found)) {
      out.granted_ = told.allowed();
      if (out.granted_) EnterParts::fill(out.place_, held);
      else EnterParts::fill(out.refusal_.make(), *record_, told, detail::wait_asked(ask.max_wait));
      out.degraded_ = !out.granted_ && out.refusal().reason() == Reason::Degraded;
      return nullptr;
    }
  }
  out.degraded_ = found.spot == nullptr || found.degraded;
  const bool counts = record_->link != nullptr && found.why != Nowhere::Off;
  if (out.degraded_ && counts) record_->link->count_degraded();
  if (found.spot != nullptr) return found.spot;
  out.granted_ = detail::grants_nowhere(record_->link, found.why);
  EnterParts::nowhere(out.refusal_.make(), *record_, found.why);
  return nullptr;
}

void Bulkhead::answer(BulkheadSpot& spot, std::uint64_t ref, const shm::BulkheadEntry& entry,
                      const Waited& waited, Placed& out) noexcept {
  out.granted_ = entry.granted;
  if (entry.granted) [[likely]] return EnterParts::fill(out.place_, spot, ref, entry.place);
  EnterParts::fill(out.refusal_.make(), *record_, &spot, entry, waited.in_line.count(),
                   waited.asked);
  // One too many, given back while the memory was superseded.
  if (entry.place.cell_value != 0) detail::leave_in_successor(spot, ref, entry.place);
  out.degraded_ = entry.reason == Reason::Degraded;
}

Placed Bulkhead::try_enter() noexcept {
  if (record_->watcher != nullptr) [[unlikely]] return watched({.max_wait = Nanos{0}});
  return take();
}

/// Asked of a bulkhead whose client is watched: forced, or decided; seen either way.
Placed Bulkhead::watched(const PlaceAsk& ask) noexcept {
  detail::AskWatcher& watcher = *record_->watcher;
  Placed out;
  Reason reason = Reason::Allowed;
  Nanos wait{1};
  const bool forced = watcher.force_place(name(), reason, wait);
  if (forced) {
    out.granted_ = reason == Reason::Allowed;
    out.degraded_ = reason == Reason::Degraded;
    BulkheadRefusal& refusal = out.refusal_.make();
    if (!out.granted_) EnterParts::nowhere(refusal, *record_, Nowhere::Absent);
    refusal.reason_ = reason;
    refusal.retry_after_ = wait;
    refusal.in_use_ = refusal.limit_ = use().limit;
  } else {
    out = ask.max_wait && *ask.max_wait <= Nanos{0} ? take() : wait_for(ask);
    reason = out.granted() ? Reason::Allowed : out.refusal().reason();
  }
  watcher.note_place(name(), reason, forced);
  return out;
}

inline Placed::Placed(BulkheadSpot* spot, std::uint64_t ref, std::uint64_t life,
                      const shm::QuickPlace& taken) noexcept
    : granted_(true) {
  place_.spot_ = spot;
  place_.ref_ = ref;
  place_.cell_value_ = taken.ticket.cell_value;
  place_.start_ns_ = taken.ticket.start_ns;
  place_.life_ = life;
  place_.cell_ = taken.ticket.cell;
  place_.coarse_ = taken.ticket.coarse;
  place_.held_ = true;
}

Placed Bulkhead::take() noexcept {
  BulkheadSpot* const spot = record_->at.load(std::memory_order_acquire);
  // What is kept may be of these rules already, and of a ref of before them.
  if (spot == nullptr || !spot->is_resolved()) [[unlikely]] return take_slowly();
  // relaxed, both: compared with the one that is kept; a number that carries its whole meaning. A
  // forked child has no row, and none where its life has no number yet.
  const std::uint64_t ref = spot->ref.load(std::memory_order_relaxed);
  const std::uint64_t life = spot->life->load(std::memory_order_relaxed);
  shm::QuickPlace taken;
  const shm::QuickTake how = shm::take_quickly(*spot->view, ref, spot->caller(life), taken);
  if (how == shm::QuickTake::Taken) [[likely]] return Placed(spot, ref, life, taken);
  return how == shm::QuickTake::No ? take_slowly() : judge(*spot, ref, taken);
}

[[gnu::noinline]] Placed Bulkhead::judge(BulkheadSpot& spot, std::uint64_t ref,
                                         shm::QuickPlace taken) noexcept {
  Placed out;
  answer(spot, ref, shm::entry_of(*spot.view, BulkheadSpot::unpacked(ref), spot.leaver(ref), taken,
                                  shm::QuickTake::Unsure), {}, out);
  return out;
}

[[gnu::noinline]] Placed Bulkhead::take_slowly() noexcept {
  Placed out;
  BulkheadSpot* const spot = find({.max_wait = Nanos{0}}, out);
  if (spot == nullptr) [[unlikely]] return out;
  const auto holder = spot->holder();
  // relaxed: a number that carries its whole meaning.
  const std::uint64_t ref = spot->ref.load(std::memory_order_relaxed);
  const auto said = shm::enter_bulkhead(*spot->view, BulkheadSpot::unpacked(ref), holder);
  answer(*spot, ref, said, {}, out);
  return out;
}

Placed Bulkhead::enter(const PlaceAsk& ask) noexcept {
  if (record_->watcher != nullptr) [[unlikely]] return watched(ask);
  if (ask.max_wait && *ask.max_wait <= Nanos{0}) return take();
  return wait_for(ask);
}

Placed Bulkhead::wait_for(const PlaceAsk& ask) noexcept {
  Placed out = wait_once(ask);
  // A memory that was superseded while it stood in line: the wait begins anew in the next one.
  for (int again = 0; again < detail::kMostMoves && out.degraded(); ++again) {
    const BulkheadSpot* const before = record_->at.load(std::memory_order_acquire);
    if (before == nullptr || !detail::is_left(*before->view)) break;
    if (detail::find_spot(*record_).spot == before) break;
    out = wait_once(ask);
  }
  return out;
}

Placed Bulkhead::wait_once(const PlaceAsk& ask) noexcept {
  Placed out;
  BulkheadSpot* const spot = find(ask, out);
  if (spot == nullptr) return out;
  shm::EnterCaller caller;
  static_cast<void>(spot->holder());                 // a forked child gets its row
  caller.breaker = spot->row_caller();
  caller.places = &spot->local;
  shm::Entering entering;
  // relaxed: a number that carries its whole meaning.
  const std::uint64_t ref = spot->ref.load(std::memory_order_relaxed);
  entering.ask.bulkhead = BulkheadSpot::unpacked(ref);
  entering.ask.max_wait_ns = ask.max_wait ? ask.max_wait->count() : shm::kWaitAsConfigured;
  entering.ask.deadline_ns = detail::deadline_in(*spot->view, ask.deadline);
  shm::EnterAnswer answered;
  detail::finish_entering(*spot->view, spot->keeper, caller, entering, answered);
  answered.bulkhead.granted = answered.granted();
  if (!answered.granted()) answered.bulkhead.place = answered.owed.place;
  answered.bulkhead.reason = answered.reason;
  answer(*spot, ref, answered.bulkhead,
         {Nanos{answered.waited_ns}, detail::wait_asked(ask.max_wait)}, out);
  return out;
}

bool Bulkhead::would_enter() const noexcept {
  detail::Found<BulkheadSpot> found = detail::find_spot(*record_);
  if (found.socket != nullptr) {
    const auto told = detail::use_asked(*record_, found);
    if (told) return told->in_use < told->limit && told->waiting == 0;
  }
  if (found.spot == nullptr) return detail::grants_nowhere(record_->link, found.why);
  const BulkheadSpot& spot = *found.spot;
  const auto caller = spot.holder();   // without a row nothing can be held: a forked child
  return caller.row != 0 && shm::look_at_bulkhead(*spot.view, spot.bulkhead(), caller).granted;
}

BulkheadUse Bulkhead::use() const noexcept {
  detail::Found<BulkheadSpot> found = detail::find_spot(*record_);
  if (found.socket != nullptr) {
    const auto told = detail::use_asked(*record_, found);
    if (told) return *told;
  }
  shm::BulkheadInfo info;
  if (found.spot != nullptr) found.spot->look_after();
  if (found.spot == nullptr ||
      !shm::read_bulkhead(*found.spot->view, found.spot->index(), info)) {
    return {};
  }
  return {info.in_use, info.limit, info.over, info.waiting, Nanos{info.oldest_ns}};
}

namespace detail {

void finish_entering(const shm::View& view, HoldKeeper* keeper, const shm::EnterCaller& caller,
                     shm::Entering& entering, shm::EnterAnswer& out) noexcept {
  shm::EnterStep step = shm::begin_enter(view, caller, entering, out);
  while (step == shm::EnterStep::Wait) {
    if (is_left(view)) {                             // nobody gives a place back here any more
      shm::abandon_enter(view, caller, entering);
      out.reason = out.bulkhead.reason = Reason::Degraded;
      out.part = shm::EnterPart::Bulkhead;
      return;
    }
    shm::wait_in_line(view, caller, entering);
    if (keeper != nullptr) keeper->look(view);
    step = shm::resume_enter(view, caller, entering, out);
  }
}

}  // namespace detail
}  // namespace cutwater
