// SPDX-License-Identifier: Apache-2.0
// The parts of a breaker, and the one way to move its state.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/sync_point.hpp"
#include "rule/breaker_flapping.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/breaker/story.hpp"
#include "shm/breaker/trips.hpp"
#include "shm/breaker/words.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/event_log.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kSinceCallsMax = (1u << 22) - 1;

const BreakerConfig& config_at(const View& view, std::uint64_t current,
                               std::uint32_t index) noexcept {
  return reinterpret_cast<const BreakerConfig*>(view.image[current & kCurrentImageBit] +
                                                view.image_breakers_offset)[index];
}

/// Word by word, so that no half of a field is of another publication once `current` agrees; and at
/// once to its place: copied on from here in wider pieces it would wait for its own stores.
void copy_config(const BreakerConfig& from, BreakerConfig& to) noexcept {
  static_assert(sizeof(BreakerConfig) % 8 == 0);
  const auto* source = reinterpret_cast<const std::uint64_t*>(&from);
  auto* const place = reinterpret_cast<unsigned char*>(&to);
  for (std::size_t i = 0; i < sizeof to / 8; ++i) {
    const std::uint64_t word = read_once(source[i]);
    std::memcpy(place + 8 * i, &word, sizeof word);
  }
}

/// The lines of a part, or nullptr when they reach out of the breaker memory.
std::uint8_t* lines_at(const View& view, std::uint32_t line, std::uint64_t bytes) noexcept {
  const std::uint64_t end = std::uint64_t{line} * kCacheLine + bytes;
  if (line == kNoLine || end > view.breaker_lines * std::uint64_t{kCacheLine}) return nullptr;
  return view.breaker_memory + std::uint64_t{line} * kCacheLine;
}

bool ring_at(const View& view, std::uint32_t line, std::uint64_t mask, RingView& out) noexcept {
  if ((mask & (mask + 1)) != 0) return false;
  std::uint8_t* const at = lines_at(view, line, ring_bytes(mask + 1));
  if (at == nullptr) return false;
  out = {reinterpret_cast<BreakerRing*>(at),
         reinterpret_cast<Word16*>(at + sizeof(BreakerRing)), mask};
  return true;
}

bool locate(const View& view, BreakerParts& parts) noexcept {
  const BreakerConfig& c = parts.config;
  parts.span = {};
  if (!ring_at(view, c.ring, c.ring_mask, parts.ring)) return false;
  if (c.span_ring != kNoLine && !ring_at(view, c.span_ring, kMinSpanCells - 1, parts.span)) {
    return false;
  }
  parts.probe_count = std::min<std::uint32_t>(c.numbers.probes, rule::kMaxProbes);
  parts.probes = reinterpret_cast<Word16*>(
      lines_at(view, c.probe_cells, parts.probe_count * sizeof(Word16)));
  parts.user_count = std::min<std::uint32_t>(c.users, kBreakerUsers);
  parts.users = reinterpret_cast<BreakerUser*>(
      lines_at(view, c.user_records, parts.user_count * sizeof(BreakerUser)));
  if (parts.users == nullptr) parts.user_count = 0;
  parts.hanging_count = 0;
  if ((c.numbers.flags & rule::kBreakerHanging) != 0) {
    parts.hanging_count = std::min<std::uint32_t>(c.hanging_count, kHangingCells);
    parts.hanging = reinterpret_cast<Word16*>(
        lines_at(view, c.hanging_cells, parts.hanging_count * sizeof(Word16)));
    if (parts.hanging == nullptr) parts.hanging_count = 0;
  }
  return parts.probes != nullptr;
}

/// Time rings: what an epoch about to begin starts from. Written while the state still says
/// `seen`, so whatever it holds was counted before that epoch. False: somebody else was here.
bool begin_window(const RingView& ring, const BreakerParts& parts, Word16 seen) noexcept {
  const std::uint32_t epoch = epoch_of(seen.lo) + 1;
  Word16* const place = &ring.head->base[epoch & 3];
  Word16 old = load16(place);
  TimeBase base = time_total(ring);
  base.epoch = epoch;
  if (!(state_of(parts) == seen)) return false;
  CUTWATER_SYNC_POINT("breaker.before_base");
  return cas16(place, old, pack_base(base));
}

}  // namespace

bool begin_windows(const BreakerParts& parts, Word16 seen, rule::BreakerState next) noexcept {
  if (next != rule::BreakerState::Closed && next != rule::BreakerState::MetricsOnly) return true;
  if (parts.is_time() && !begin_window(parts.ring, parts, seen)) return false;
  return parts.span.cells == nullptr || begin_window(parts.span, parts, seen);
}

namespace {

/// `since` of this epoch, unless it is there already.
void tell_since(BreakerHead& head, std::uint32_t epoch, std::uint32_t permille,
                std::uint64_t calls, std::int64_t now) noexcept {
  Word16 old = load16(&head.since);
  const auto rate = std::uint64_t{std::min(permille, 1023u)};
  const auto count = std::min<std::uint64_t>(calls, kSinceCallsMax);
  const Word16 told{std::uint64_t{epoch} << 32 | rate << 22 | count,
                    static_cast<std::uint64_t>(now)};
  while (older_epoch(epoch_of(old.lo), epoch) || old.hi == 0) {
    if (cas16(&head.since, old, told)) return;
  }
}

/// How long the breaker has been in the state of `epoch`; -1 when nobody knows.
std::int64_t spent_in(const BreakerHead& head, std::uint32_t epoch, std::int64_t now) noexcept {
  const Word16 since = load16(&head.since);
  if (epoch_of(since.lo) != epoch || since.hi == 0) return -1;
  return now - static_cast<std::int64_t>(since.hi);
}

/// For people: the move is counted, and an opening gets its record.
void tell_story(const BreakerParts& parts, const BreakerWord& from, const BreakerWord& to,
                const NextState& next, std::int64_t spent, std::int64_t now) noexcept {
  count_move(*parts.view, parts.index, from.state, to.state, to.reason, spent);
  const bool by_hand = to.reason == rule::BreakerReason::ByHand;
  if (from.state != rule::BreakerState::Closed || to.state != rule::BreakerState::Open || by_hand) {
    return;
  }
  record_trip(*parts.view, parts.index,
              {.epoch = to.epoch, .from = from.state, .reason = to.reason,
               .attempts = to.attempts, .now_ns = now, .until_ns = to.deadline_ns,
               .window = next.window, .hanging = next.hanging});
}

/// An opening out of CLOSED, for those who watch; killed before it, one is missing.
void note_opening(const BreakerParts& parts, rule::BreakerReason reason,
                  std::int64_t now) noexcept {
  std::uint64_t seen = __atomic_load_n(&parts.head->openings, __ATOMIC_RELAXED);
  rule::Openings next = rule::after_opening(seen, now);
  // relaxed: the word carries its whole meaning. Once lost, another opening is there.
  if (!__atomic_compare_exchange_n(&parts.head->openings, &seen, next.word, false,
                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
      !next.tell) {
    return;
  }
  Event event;
  event.kind = EventKind::BreakerFlapping;
  event.object = parts.index;
  event.reason = static_cast<std::uint8_t>(reason);
  breaker_name(*parts.view, parts.current, parts.index, event.text, sizeof event.text);
  append_event(*parts.view, event);
}

}  // namespace

bool read_place(const View& view, std::uint32_t index, BreakerParts& out) noexcept {
  if (index >= view.breaker_count) return false;
  out.view = &view;
  out.index = index;
  out.head = view.breakers + index;
  for (int i = 0; i < kConfigReads; ++i) {
    out.current = view.current();
    copy_config(config_at(view, out.current, index), out.config);
    if (view.current() != out.current) continue;
    if (out.config.used == 0) return false;
    if (locate(view, out)) return true;
    count_damage(view);
    return false;
  }
  count_contention(view);
  return false;
}

bool read_parts(const View& view, std::uint32_t index, BreakerParts& out) noexcept {
  if (!read_place(view, index, out)) return false;
  return out.config.kind != kInstanceEntry || is_taken(breaker_entry(view, out.config));
}

bool read_parts(const View& view, BreakerRef ref, BreakerParts& out) noexcept {
  return read_parts(view, ref.index, out) && out.config.incarnation == ref.incarnation;
}

bool refresh_parts(BreakerParts& parts) noexcept {
  if (parts.view->current() == parts.current) return true;
  const BreakerRef ref{parts.index, parts.config.incarnation};
  const View& view = *parts.view;
  return read_parts(view, ref, parts);
}

void keep_breaker(const BreakerParts& parts, BreakerLocal* local) noexcept {
  if (local == nullptr) return;
  const rule::BreakerNumbers& n = parts.numbers();
  const bool tracked = parts.hanging_count != 0;
  const bool enters = !tracked && (n.flags & rule::kBreakerSwitchedOff) == 0;
  const bool finishes = enters && !parts.is_time() && parts.span.cells == nullptr;
  const bool measures = n.slow_ppm != rule::kOffPpm;
  BreakerKept::Words words{};
  const auto set = [&](BreakerWord8 which, std::uint64_t word) {
    words[static_cast<std::size_t>(which)] = word;
  };
  set(BreakerWord8::Ref, pack_ref(parts.index, parts.config.incarnation));
  set(BreakerWord8::Bits, (enters ? kKeptEnters : 0) | (finishes ? kKeptFinishes : 0) |
                              (measures ? kKeptMeasures : 0) |
                              (n.min_processes != rule::kMinProcessesOff ? kKeptUsers : 0) |
                              (n.failure_ppm != 0 && n.slow_ppm != 0 ? kKeptGoodIsGood : 0) |
                              std::uint64_t{parts.user_count} << 32 |
                              std::uint64_t{n.consecutive} << 40 |
                              std::uint64_t{n.evaluate_on} << 48);
  set(BreakerWord8::Head, reinterpret_cast<std::uint64_t>(parts.head));
  set(BreakerWord8::Ring, reinterpret_cast<std::uint64_t>(parts.ring.head));
  set(BreakerWord8::Mask, parts.ring.mask);
  set(BreakerWord8::Users, reinterpret_cast<std::uint64_t>(parts.users));
  set(BreakerWord8::Calls, std::uint64_t{n.minimum} << 32 | n.window_calls);
  set(BreakerWord8::Rates, std::uint64_t{n.slow_ppm} << 32 | n.failure_ppm);
  constexpr std::uint64_t kNever = std::numeric_limits<std::int64_t>::max();
  set(BreakerWord8::Slow, measures ? n.slow_ns : kNever);
  set(BreakerWord8::Counters, parts.view->stripe_breakers_offset +
                                  std::uint64_t{parts.index} * sizeof(BreakerCounters));
  set(BreakerWord8::FailureCount, n.failure_count);
  local->kept.keep(*parts.view, parts.current, words);
}

void announce_breaker(const BreakerParts& parts, Word16 seen, std::uint32_t row) noexcept {
  const BreakerWord word = unpack_breaker(seen);
  if (word.announced) return;
  tell_since(*parts.head, word.epoch, 1023, 0, parts.view->clock.now());
  Event event;
  event.kind = EventKind::BreakerMoved;
  event.object = parts.index;
  event.epoch = word.epoch;
  event.from = static_cast<std::uint8_t>(word.previous);
  event.to = static_cast<std::uint8_t>(word.state);
  event.reason = static_cast<std::uint8_t>(word.reason);
  event.row = static_cast<std::uint16_t>(row);
  breaker_name(*parts.view, parts.current, parts.index, event.text, sizeof event.text);
  append_event(*parts.view, event);
  CUTWATER_SYNC_POINT("breaker.before_announced");
  // Everything but the bit as read: a ramp that was cleared meanwhile makes this fail, and the
  // event is written again by whoever comes next; readers drop the second one.
  cas16(&parts.head->state, seen, {seen.lo | kStateAnnounced, seen.hi});
}

namespace {

/// Who stands in line at the bulkhead of this breaker's name need not wait any longer. Killed
/// before it, or another name: they look by themselves within kLineSleepNs.
void wake_line_of(const BreakerParts& parts) noexcept {
  const View& view = *parts.view;
  char name[sizeof(NameRecord::text) + 1] = {};
  for (std::uint32_t i = 0; i < view.bulkhead_count; ++i) {
    // seq_cst: after the move; who arrives later looks at the breaker after it arrived.
    if (line_is_quiet(__atomic_load_n(&view.bulkheads[i].line, __ATOMIC_SEQ_CST))) continue;
    if (name[0] == 0) breaker_name(view, parts.current, parts.index, name, sizeof name);
    BulkheadInfo info;
    if (read_bulkhead(view, i, info) && std::strcmp(info.name, name) == 0) wake_line(view, i);
  }
}

}  // namespace

bool move_breaker(const BreakerParts& parts, Word16 seen, const NextState& next, std::int64_t now,
                  std::uint32_t row) noexcept {
  const BreakerWord from = unpack_breaker(seen);
  if (!from.announced && guarded(Guard::BreakerEventBeforeMove)) {
    announce_breaker(parts, seen, row);
    return false;
  }
  if (!begin_windows(parts, seen, next.state)) return false;
  BreakerWord to;
  to.state = next.state;
  to.previous = from.state;
  to.reason = next.reason;
  to.ramping = next.ramping;
  to.attempts = next.attempts;
  to.epoch = from.epoch + 1;
  to.deadline_ns = next.deadline_ns;
  to.views = from.views && !guarded(Guard::BreakerMoveClearsViews);
  const Word16 word = pack_breaker(to);
  const std::int64_t spent = spent_in(*parts.head, from.epoch, now);
  CUTWATER_SYNC_POINT("breaker.before_move");
  if (!cas16(&parts.head->state, seen, word)) return false;
  CUTWATER_SYNC_POINT("breaker.moved");
  tell_since(*parts.head, to.epoch, next.permille, next.calls, now);
  announce_breaker(parts, word, row);
  tell_story(parts, from, to, next, spent, now);
  if (to.state == rule::BreakerState::Open && from.state == rule::BreakerState::Closed &&
      to.reason != rule::BreakerReason::ByHand) {
    note_opening(parts, to.reason, now);
  }
  const bool opens =
      to.state == rule::BreakerState::Open || to.state == rule::BreakerState::ForcedOpen;
  if (opens) wake_line_of(parts);
  return true;
}

NextState opened(const BreakerParts& parts, const BreakerWord& from, std::uint32_t attempts,
                 rule::BreakerReason reason, std::int64_t now) noexcept {
  const std::uint64_t wait = rule::open_wait(parts.numbers(), attempts, from.epoch + 1);
  NextState next;
  next.state = rule::BreakerState::Open;
  next.reason = reason;
  next.attempts = attempts;
  next.deadline_ns = now + static_cast<std::int64_t>(wait);
  return next;
}

NextState closed_again(const BreakerParts& parts, std::int64_t now) noexcept {
  NextState next;
  next.state = rule::BreakerState::Closed;
  next.reason = rule::BreakerReason::ProbesSucceeded;
  const auto ramp = static_cast<rule::Ramp>(parts.numbers().ramp);
  // relaxed: a count for people and for this choice; nothing is read because of it.
  const std::uint32_t users = __atomic_load_n(&parts.head->users, __ATOMIC_RELAXED);
  if (ramp == rule::Ramp::On || (ramp == rule::Ramp::Auto && users >= rule::kUsersThatCount)) {
    next.ramping = true;
    next.deadline_ns = now + static_cast<std::int64_t>(parts.numbers().ramp_ns);
  }
  return next;
}

namespace {

/// One reading of a breaker's lists, given to `use(record_given, lookup)`; false: none that holds.
template <class Use>
bool with_classes(const View& view, BreakerRef ref, Use use) noexcept {
  for (int read = 0; read < kConfigReads && ref.index < view.breaker_count; ++read) {
    const std::uint64_t current = view.current();
    const auto& list = reinterpret_cast<const BreakerClasses*>(
        view.image[current & kCurrentImageBit] + view.image_breaker_classes_offset)[ref.index];
    const std::size_t count = std::min<std::size_t>(read_once(list.count), rule::kMaxClasses);
    use(read_once(list.record_given) != 0, [&](std::uint64_t hash) {
      rule::Listed listed = rule::Listed::No;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t entry = read_once(list.entry[i]);
        if ((entry & ~kClassIgnored) != hash) continue;
        if ((entry & kClassIgnored) != 0) return rule::Listed::Ignore;
        listed = rule::Listed::Record;
      }
      return listed;
    });
    if (view.current() == current) return true;
  }
  return false;
}

}  // namespace

rule::Listed listed_class(const View& view, BreakerRef ref, std::string_view name) noexcept {
  rule::Listed listed = rule::Listed::No;
  const bool read = with_classes(view, ref, [&](bool, auto lookup) {
    listed = rule::listed_as(name, lookup);
  });
  return read ? listed : rule::Listed::No;
}

rule::ClassVerdict judge_class(const View& view, BreakerRef ref, std::string_view name) noexcept {
  rule::ClassVerdict verdict = rule::ClassVerdict::Failure;
  const bool read = with_classes(view, ref, [&](bool record_given, auto lookup) {
    verdict = rule::judge_class(name, record_given, lookup);
  });
  return read ? verdict : rule::default_verdict(name);
}

bool measures_calls(const View& view, BreakerRef ref) noexcept {
  for (int read = 0; read < kConfigReads && ref.index < view.breaker_count; ++read) {
    const std::uint64_t current = view.current();
    const auto& config = reinterpret_cast<const BreakerConfig*>(
        view.image[current & kCurrentImageBit] + view.image_breakers_offset)[ref.index];
    const bool measures = read_once(config.numbers.slow_ppm) != rule::kOffPpm;
    if (view.current() == current) return measures;
  }
  return false;
}

}  // namespace cutwater::shm
