// SPDX-License-Identifier: Apache-2.0
// The line: joining, looking, sleeping, leaving.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/bulkhead/detail.hpp"
#include "shm/supersede.hpp"

namespace cutwater::shm {
namespace {

std::uint64_t deadline_of(std::int64_t until_ns) noexcept {
  const auto units = (static_cast<std::uint64_t>(until_ns) + kDeadlineNs - 1) / kDeadlineNs;
  return std::min(units, kDeadlineMax);
}

/// An idle record made ours; kNoLine: too many are in line.
std::uint32_t claim_record(const BulkheadParts& parts, const BulkheadCaller& caller) noexcept {
  const std::uint32_t many = std::min(parts.config.max_waiting, parts.records);
  if (many == 0) return kNoLine;
  // relaxed: only where to begin to look, so that not all begin at the same record.
  std::uint32_t i = static_cast<std::uint32_t>(
      __atomic_load_n(&parts.head->next, __ATOMIC_RELAXED) % many);
  const Word16 claimed = pack_waiter(
      {WaiterState::Claimed, caller.row, caller.generation & kPlaceGenerationMask, 0, 0});
  for (std::uint32_t n = 0; n < many; ++n) {
    Word16* const word = &parts.record(i)->word;
    Word16 seen = load16(word);
    CUTWATER_SYNC_POINT("bulkhead.before_claim");
    if (unpack_waiter(seen).state == WaiterState::Idle && cas16(word, seen, claimed)) return i;
    if (++i == many) i = 0;
  }
  return kNoLine;
}

bool is_ours(const Waiter& waiter, const BulkheadCaller& caller, const WaitTicket& wait) noexcept {
  return waiter.state == WaiterState::Waiting && waiter.ticket == wait.ticket &&
         waiter.row == caller.row &&
         waiter.generation == (caller.generation & kPlaceGenerationMask);
}

/// Out of the line; false: the record was not ours any more.
bool empty_record(const BulkheadParts& parts, const BulkheadCaller& caller,
                  const WaitTicket& wait) noexcept {
  Word16* const word = &parts.record(wait.record)->word;
  Word16 seen = load16(word);
  CUTWATER_SYNC_POINT("bulkhead.before_leave_line");
  while (is_ours(unpack_waiter(seen), caller, wait)) {
    if (cas16(word, seen, {})) return true;
  }
  return false;
}

/// What was handed to somebody who has left the line goes on to the next.
void pass_on_handed(BulkheadParts& parts, const WaitTicket& wait, StripeHandle stripe) noexcept {
  CUTWATER_SYNC_POINT("bulkhead.left_line");
  if (!guarded(Guard::PlaceLookAfterLeaving)) return;
  const std::uint64_t handed = pack_handed(wait.ticket, wait.record);
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    if (load_cell(parts.cell(i)) != handed) continue;
    static_cast<void>(pass_place(parts, {parts.cell(i), handed, i}, false, stripe));
  }
}

/// Makes the place that was handed to us ours: true. Else `out` is what of it is owed to a
/// successor of the memory, or empty.
bool take_handed(BulkheadParts& parts, const BulkheadCaller& caller, const WaitTicket& wait,
                 std::uint32_t cell, HeldPlace& out) noexcept {
  const HeldPlace held{parts.cell(cell),
                       pack_held({caller.row, caller.generation}, next_take()), cell};
  CUTWATER_SYNC_POINT("bulkhead.before_mine");
  if (!swap_cell(held.place, pack_handed(wait.ticket, wait.record), held.value)) return false;
  out = held;
  if (!overshot(parts, cell)) return true;
  count_bulkhead(*parts.view, caller.stripe, parts.index, BulkheadCounter::Overshot);
  static_cast<void>(pass_place(parts, held, false, caller.stripe));
  if (!overtaken(*parts.view)) out = {};
  return false;
}

/// Out of the line, whatever became of the bulkhead. True: the record was still ours.
bool leave_any_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                    const WaitTicket& wait) noexcept {
  BulkheadParts parts;
  if (wait.ticket == 0 || !read_parts_left(view, ref, parts) || wait.record >= parts.records) {
    return false;
  }
  const bool ours = empty_record(parts, caller, wait);
  pass_on_handed(parts, wait, caller.stripe);
  return ours;
}

/// A bulkhead that is gone serves nobody: a record left behind would be owed a place by whoever has
/// the index next.
LineLook gone(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
              const WaitTicket& wait) noexcept {
  static_cast<void>(leave_any_line(view, ref, caller, wait));
  LineLook look;
  look.state = LineLook::State::Gone;
  look.entry = degraded_place(view, ref, caller.stripe);
  look.now_ns = look.entry.now_ns;
  return look;
}

LineLook over(BulkheadParts& parts, const BulkheadCaller& caller, const WaitTicket& wait,
              std::int64_t now) noexcept {
  static_cast<void>(empty_record(parts, caller, wait));
  pass_on_handed(parts, wait, caller.stripe);
  count_bulkhead(*parts.view, caller.stripe, parts.index,
                 wait.by_deadline ? BulkheadCounter::RefusedExpired
                                  : BulkheadCounter::RefusedFull);
  LineLook look;
  look.state = LineLook::State::Over;
  look.now_ns = now;
  look.entry = refusal_of(parts, wait.by_deadline ? Reason::Expired : Reason::Full, now);
  look.entry.may_wait = false;
  return look;
}

LineLook granted(BulkheadParts& parts, const BulkheadCaller& caller, const WaitTicket& wait,
                 const HeldPlace& held) noexcept {
  static_cast<void>(empty_record(parts, caller, wait));
  pass_on_handed(parts, wait, caller.stripe);        // a second one
  LineLook look;
  look.state = LineLook::State::Granted;
  look.now_ns = parts.view->clock.now();
  look.entry.granted = true;
  look.entry.limit = parts.limit();
  look.entry.now_ns = look.now_ns;
  look.entry.place = stamp_place(parts, held, look.now_ns);
  count_bulkhead(*parts.view, caller.stripe, parts.index, BulkheadCounter::Granted);
  count_waited(*parts.view, caller.stripe, parts.index, look.now_ns - wait.start_ns);
  return look;
}

}  // namespace

JoinedLine join_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                     const LineAsk& ask) noexcept {
  JoinedLine out;
  BulkheadParts parts;
  if (caller.row == 0 || !read_parts(view, ref, parts)) {
    out.refusal = degraded_place(view, ref, caller.stripe);
    return out;
  }
  const std::int64_t now = view.clock.now();
  const std::uint64_t longest = std::min(ask.max_wait_ns, parts.config.max_wait_ns);
  const std::uint32_t record = longest == 0 ? kNoLine : claim_record(parts, caller);
  if (record == kNoLine) {
    count_bulkhead(view, caller.stripe, ref.index, BulkheadCounter::RefusedFull);
    out.refusal = refusal_of(parts, Reason::Full, now);
    out.refusal.may_wait = false;
    return out;
  }
  out.joined = true;
  WaitTicket& wait = out.wait;
  wait.record = record;
  wait.start_ns = now;
  wait.until_ns = longest >= static_cast<std::uint64_t>(kHorizonNs)
                      ? kHorizonNs
                      : now + static_cast<std::int64_t>(longest);
  wait.by_deadline = ask.deadline_ns > 0 && ask.deadline_ns < wait.until_ns;
  if (wait.by_deadline) wait.until_ns = ask.deadline_ns;
  CUTWATER_SYNC_POINT("bulkhead.claimed");
  // seq_cst: tickets are the order of arrival.
  wait.ticket = (__atomic_fetch_add(&parts.head->next, 1, __ATOMIC_SEQ_CST) + 1) & kTicketMask;
  const Word16 waiting = pack_waiter({WaiterState::Waiting, caller.row,
                                      caller.generation & kPlaceGenerationMask, wait.ticket,
                                      deadline_of(wait.until_ns)});
  CUTWATER_SYNC_POINT("bulkhead.before_publish");
  Word16 claimed = pack_waiter(
      {WaiterState::Claimed, caller.row, caller.generation & kPlaceGenerationMask, 0, 0});
  // Lost: the reaper thought us dead. poll_line() finds the record not ours.
  static_cast<void>(cas16(&parts.record(record)->word, claimed, waiting));
  CUTWATER_SYNC_POINT("bulkhead.before_arrival");
  __atomic_fetch_add(&parts.head->line, std::uint64_t{1} << 32, __ATOMIC_SEQ_CST);
  CUTWATER_SYNC_POINT("bulkhead.arrived");
  if (guarded(Guard::PlaceLookAfterQueueing)) serve_line(parts, caller.stripe);
  return out;
}

LineLook poll_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                   const WaitTicket& wait) noexcept {
  BulkheadParts parts;
  if (wait.ticket == 0 || !read_parts(view, ref, parts) || wait.record >= parts.records) {
    return gone(view, ref, caller, wait);
  }
  WaiterRecord* const record = parts.record(wait.record);
  LineLook look;
  // seq_cst: before the look; who hands over writes the cell, then bumps this.
  look.seen = __atomic_load_n(&record->futex, __ATOMIC_SEQ_CST);
  const std::uint64_t handed = pack_handed(wait.ticket, wait.record);
  const std::uint32_t cells = parts.cells;
  for (std::uint32_t i = 0; i < cells && i < parts.cells; ++i) {
    if (load_cell(parts.cell(i)) != handed) continue;
    HeldPlace held;
    if (take_handed(parts, caller, wait, i, held)) return granted(parts, caller, wait, held);
    if (held.place != nullptr) look.entry.place = {held.value, 0, held.cell};
    if (!refresh_parts(parts)) break;
  }
  look.now_ns = view.clock.now();
  const PlaceTicket owed = look.entry.place;
  if (look.now_ns >= wait.until_ns) {
    look = over(parts, caller, wait, look.now_ns);
  } else if (!is_ours(unpack_waiter(load16(&record->word)), caller, wait)) {
    look = gone(view, ref, caller, wait);
  }
  look.entry.place = owed;
  return look;
}

std::uint32_t* line_futex(const View& view, BulkheadRef ref, const WaitTicket& wait) noexcept {
  BulkheadParts parts;
  if (wait.ticket == 0 || !read_parts(view, ref, parts) || wait.record >= parts.records) {
    return nullptr;
  }
  return &parts.record(wait.record)->futex;
}

void sleep_in_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                   const WaitTicket& wait, const LineLook& look) noexcept {
  std::uint32_t* const word = line_futex(view, ref, wait);
  if (word == nullptr) return;
  std::int64_t longest = kLineSleepNs;
  // A stepped clock stands still while we sleep: its deadline is looked up at each wake.
  if (!view.clock.is_stepped()) {
    longest = std::clamp<std::int64_t>(wait.until_ns - look.now_ns, 1, longest);
  }
  const timespec cap{longest / 1'000'000'000, longest % 1'000'000'000};
  const long slept = syscall(SYS_futex, word, FUTEX_WAIT, look.seen, &cap, nullptr, 0);
  if (slept == 0 || errno != ETIMEDOUT) return;
  BulkheadParts parts;
  if (read_parts(view, ref, parts)) serve_line(parts, caller.stripe);
}

void leave_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                const WaitTicket& wait) noexcept {
  if (leave_any_line(view, ref, caller, wait)) {
    count_bulkhead(view, caller.stripe, ref.index, BulkheadCounter::GaveUp);
  }
}

}  // namespace cutwater::shm
