// SPDX-License-Identifier: Apache-2.0
#include "shm/memory_copy.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "shm/breaker/detail.hpp"
#include "shm/breaker/places.hpp"
#include "shm/breaker/trips.hpp"
#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "shm/image.hpp"
#include "shm/limit/bucket_detail.hpp"
#include "shm/limit/key_name.hpp"
#include "shm/limit/override_table.hpp"
#include "shm/memory_copy_bulkheads.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

Error too_small(std::uint64_t used, const std::string& what, std::uint64_t room,
                const char* setting) {
  return {Errc::InvalidArgument, std::to_string(used) + " " + what +
                                     " are in use and the new memory has room for " +
                                     std::to_string(room) + "; set " + setting +
                                     " to at least " + std::to_string(used)};
}

/// One more than the last index `used` is true for.
std::uint64_t end_of(std::uint64_t count, auto used) {
  while (count > 0 && !used(count - 1)) --count;
  return count;
}

/// One array of both images, as bytes.
void copy_array(const std::uint8_t* from, std::uint8_t* to, std::uint64_t stride,
                std::uint64_t from_count, std::uint64_t to_count) {
  std::memcpy(to, from, stride * std::min(from_count, to_count));
}

/// State as words of 16 bytes, each read in one step. Whoever stood before its swap when the memory
/// was superseded may still make it: a cell is held or given back (overtaken()), a breaker in the
/// state before or behind the move, a debt as before or behind the charge; never half of each.
void copy_words(const void* from, void* to, std::size_t bytes) noexcept {
  const auto* const source = static_cast<const Word16*>(from);
  auto* const target = static_cast<Word16*>(to);
  for (std::size_t i = 0; i < bytes / sizeof(Word16); ++i) target[i] = load16(source + i);
}
static_assert(sizeof(LimitState) % sizeof(Word16) == 0);
static_assert(sizeof(BreakerHead) % sizeof(Word16) == 0);

const BreakerConfig& breaker_config(const View& view, std::uint64_t c, std::uint64_t index) {
  return reinterpret_cast<const BreakerConfig*>(view.image[c & kCurrentImageBit] +
                                                view.image_breakers_offset)[index];
}

/// Up to the end of the last part that a breaker has.
std::uint64_t breaker_bytes_in_use(const View& view, std::uint64_t c) {
  std::uint64_t end = 0;
  const auto part = [&](std::uint32_t line, std::uint64_t bytes) {
    if (line != kNoLine) end = std::max(end, std::uint64_t{line} * kCacheLine + bytes);
  };
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    const BreakerConfig& b = breaker_config(view, c, i);
    if (b.used == 0) continue;
    part(b.ring, ring_bytes(std::uint64_t{b.ring_mask} + 1));
    part(b.span_ring, ring_bytes(kMinSpanCells));
    part(b.probe_cells, b.numbers.probes * sizeof(Word16));
    part(b.user_records, b.users * sizeof(BreakerUser));
    if (b.kind != kNamedEntry) part(b.instance, sizeof(PatternPlace));
    part(b.hanging_cells, std::uint64_t{b.hanging_count} * sizeof(Word16));
  }
  return (end + kCacheLine - 1) / kCacheLine * kCacheLine;
}

class Copier {
 public:
  Copier(const View& from, const View& to) : from_(from), to_(to), c_(from.current()) {}

  Result<CopyReport> run() {
    if (auto done = image(); !done) return done.error();
    t_ = from_.clock.now();
    limits();
    breakers();
    copy_bulkheads(from_, to_);
    for (std::uint64_t i = 0; i < from_.slot_count; ++i) slot(i);
    for (std::uint32_t i = 0; i < std::min(from_.row_count, to_.row_count); ++i) {
      to_.rows[i] = from_.rows[i];
      report_.rows += unpack_row(from_.rows[i].word).state != RowState::Free ? 1 : 0;
    }
    counters();
    return report_;
  }

 private:
  Result<void> image() {
    const std::uint8_t* old = from_.image[c_ & kCurrentImageBit];
    auto* bytes = const_cast<std::uint8_t*>(to_.image[0]);
    std::memset(bytes, 0, to_.image_length);
    std::memcpy(bytes, old, sizeof(ImageHead));
    copy_array(old + from_.image_limits_offset, bytes + to_.image_limits_offset,
               sizeof(LimitConfig), from_.limit_count, to_.limit_count);
    copy_array(old + from_.image_names_offset, bytes + to_.image_names_offset, sizeof(NameRecord),
               from_.limit_count, to_.limit_count);
    copy_array(old + from_.image_rules_offset, bytes + to_.image_rules_offset, sizeof(RuleRecord),
               from_.rule_count, to_.rule_count);
    copy_array(old + from_.image_sets_offset, bytes + to_.image_sets_offset, sizeof(SetRecord),
               from_.set_count, to_.set_count);
    copy_array(old + from_.image_patterns_offset, bytes + to_.image_patterns_offset,
               sizeof(PatternRecord), from_.pattern_count, to_.pattern_count);
    copy_array(old + from_.image_calendars_offset, bytes + to_.image_calendars_offset,
               sizeof(CalendarRecord), from_.calendar_count, to_.calendar_count);
    copy_array(old + from_.image_breakers_offset, bytes + to_.image_breakers_offset,
               sizeof(BreakerConfig), from_.breaker_count, to_.breaker_count);
    copy_array(old + from_.image_breaker_names_offset, bytes + to_.image_breaker_names_offset,
               sizeof(NameRecord), from_.breaker_count, to_.breaker_count);
    copy_array(old + from_.image_breaker_classes_offset, bytes + to_.image_breaker_classes_offset,
               sizeof(BreakerClasses), from_.breaker_count, to_.breaker_count);
    copy_bulkhead_settings(from_, to_, bytes);
    std::vector<OverrideRecord> overrides;
    for (std::uint32_t i = 0; i < from_.override_count; ++i) {
      const OverrideRecord& over = from_.override_record(c_, i);
      if (over.key_hash != 0) overrides.push_back(over);
    }
    auto* table = reinterpret_cast<OverrideRecord*>(bytes + to_.image_overrides_offset);
    if (!place_overrides(overrides, table, to_.override_count)) {
      return too_small(2 * overrides.size(), "places of overrides", to_.override_count,
                       "capacity.overrides");
    }
    auto& head = *reinterpret_cast<ImageHead*>(bytes);
    head.generation = (c_ >> kCurrentGenerationShift) + 1;
    head.length = static_cast<std::uint32_t>(to_.image_length);
    head.crc32c = image_crc(to_, 0);
    __atomic_store_n(&to_.rules_control->current, head.generation << kCurrentGenerationShift,
                     __ATOMIC_RELEASE);
    return {};
  }

  void limits() {
    copy_words(from_.limits, to_.limits,
               std::min(from_.limit_count, to_.limit_count) * sizeof(LimitState));
    if (from_.clock.is_stepped()) to_.state_control->stepped_ns = from_.state_control->stepped_ns;
  }

  /// State words with epochs and deadlines, windows, probe cells and users lie where they lay.
  void breakers() {
    copy_words(from_.breakers, to_.breakers,
               std::min(from_.breaker_count, to_.breaker_count) * sizeof(BreakerHead));
    copy_words(from_.breaker_memory, to_.breaker_memory,
               std::size_t{std::min(from_.breaker_lines, to_.breaker_lines)} * kCacheLine);
    const StripeHandle stripe = shared_stripe(to_);
    for (std::uint32_t i = 0; i < std::min(from_.breaker_count, to_.breaker_count); ++i) {
      add_breaker_counters(to_, stripe, i, sum_breaker_counters(from_, i));
      to_.stories[i] = from_.stories[i];
    }
    copy_trips(from_, to_);
  }

  void slot(std::uint64_t index) {
    const Word16 word = load16(from_.slots + index);
    if (word.lo == 0 || is_claim(word.lo)) return;
    const std::uint16_t id = rule_of(word.lo);
    const auto tat = static_cast<rule::Units>(word.hi);
    const bool ban = id == kBanRuleId;
    if (id >= from_.rule_count) return;
    const RuleRecord& record = from_.rule(c_, id);
    if (ban ? tat <= t_ : !is_bucket_kind(record) || tat <= full_level(from_, c_, record, t_)) {
      return;
    }
    const bool placed = put(index, word);
    if (ban) {
      ++(placed ? report_.bans : report_.bans_lost);
    } else if (placed) {
      ++report_.entries;
    } else {
      share(record, id, tat);
      ++report_.shared;
    }
  }

  bool put(std::uint64_t index, Word16 word) {
    const std::uint64_t old_group = index / kGroupSlots;
    const Home home = home_of(from_, old_group, word.lo);
    std::uint64_t group = first_group(to_, home.q0, home.fp);
    if (!guarded(Guard::CopyFindsNewPlace)) group = old_group % to_.groups;
    const std::uint64_t groups[] = {group, other_group(to_, group, home.fp)};
    for (std::uint64_t side = 0; side < 2; ++side) {
      for (std::uint64_t i = 0; i < kGroupSlots; ++i) {
        const std::uint64_t line = (home.fp + i / kLineSlots) & 3;
        Word16* place = to_.slots + groups[side] * kGroupSlots + line * kLineSlots + i % kLineSlots;
        if (place->lo != 0) continue;
        *place = {(word.lo & ~kTagAlt) | (side == 1 ? kTagAlt : 0), word.hi};
        copy_key_name(from_, index, to_, static_cast<std::uint64_t>(place - to_.slots), place->lo);
        return true;
      }
    }
    return false;
  }

  /// No place: the limit's overflow word holds the larger of both debts, in the entry's units.
  void share(const RuleRecord& record, std::uint16_t id, rule::Units tat) {
    Word16& word = to_.limits[record.limit].overflow[record.window];
    detail::Frame frame;
    frame.t = t_;
    frame.c = to_.current();
    frame.window = record.window;
    frame.id = id;
    frame.record = &to_.rule(frame.c, id);
    frame.f = frame.record->f & 63;
    frame.piece = read_piece_at(*frame.record, t_);
    frame.n = clock_at(to_, frame.c, *frame.record, frame.piece, t_);
    rule::Units owed = 0;
    if (word.lo != 0) {
      const auto had = static_cast<rule::Units>(word.hi);
      if (!detail::tat_of(to_, frame, rule_of(word.lo), had, owed)) {
        owed = frame.n + frame.piece.reach;     // of a later rule: as much as may be owed
      }
    }
    word = {id, static_cast<std::uint64_t>(std::max(owed, tat))};
  }

  void counters() {
    const StripeHandle stripe = shared_stripe(to_);
    for (std::uint32_t i = 0; i < std::min(from_.limit_count, to_.limit_count); ++i) {
      const auto sums = sum_counters(from_, i);
      for (std::size_t k = 0; k < sums.size(); ++k) {
        stripe.add(i, static_cast<LimitCounter>(k), sums[k]);
      }
    }
    copy_events(from_, to_);
    to_.stats_control->damage = from_.stats_control->damage;
    to_.stats_control->contention = from_.stats_control->contention;
    to_.stats_control->late_publish = from_.stats_control->late_publish;
    to_.stats_control->reclaimed_rows = from_.stats_control->reclaimed_rows;
  }

  const View& from_;
  const View& to_;
  const std::uint64_t c_;
  std::int64_t t_ = 0;
  CopyReport report_;
};

}  // namespace

Result<void> check_fits(const View& from, const View& to) {
  const std::uint64_t c = from.current();
  const auto limits = end_of(from.limit_count, [&](std::uint64_t i) {
    return from.limit_config(c, static_cast<std::uint32_t>(i)).windows != 0;
  });
  if (limits > to.limit_count) {
    return too_small(limits, "places of limits", to.limit_count, "capacity.limits");
  }
  const auto rules = end_of(from.rule_count, [&](std::uint64_t i) {
    return from.rule(c, static_cast<std::uint16_t>(i)).kind != 0;
  });
  if (rules > to.rule_count) {
    return too_small((rules + 3) / 4, "times four rule ids", to.rule_count / 4, "capacity.limits");
  }
  std::uint64_t overrides = 0;
  for (std::uint32_t i = 0; i < from.override_count; ++i) {
    overrides += from.override_record(c, i).key_hash != 0 ? 1 : 0;
  }
  const auto sets = end_of(from.set_count, [&](std::uint64_t i) {
    return from.set(c, static_cast<std::uint32_t>(i)).windows != 0;
  });
  overrides = std::max(overrides, sets > kFirstSet ? sets - kFirstSet : 0);
  if (overrides > to.override_capacity) {
    return too_small(overrides, "overrides", to.override_capacity, "capacity.overrides");
  }
  const auto patterns = end_of(from.pattern_count, [&](std::uint64_t i) {
    return from.pattern(c, static_cast<std::uint32_t>(i)).length != 0;
  });
  if (patterns > to.pattern_count) {
    return too_small(16 * patterns, "overrides (16 for each pattern)", 16 * to.pattern_count,
                     "capacity.overrides");
  }
  const auto rows = end_of(from.row_count, [&](std::uint64_t i) {
    return unpack_row(from.rows[i].word).state != RowState::Free;
  });
  if (rows > to.row_count) {
    return too_small(rows - kFirstClientRow, "places of processes", to.row_count - kFirstClientRow,
                     "capacity.processes");
  }
  const auto breakers = end_of(from.breaker_count, [&](std::uint64_t i) {
    return breaker_config(from, c, i).used != 0;
  });
  if (breakers > to.breaker_count) {
    return too_small(breakers, "places of breakers", to.breaker_count, "capacity.breakers");
  }
  const std::uint64_t bytes = breaker_bytes_in_use(from, c);
  const std::uint64_t room = std::uint64_t{to.breaker_lines} * kCacheLine;
  if (bytes > room) {
    return too_small(bytes, "bytes of breaker memory", room, "capacity.breaker-memory");
  }
  if (auto fits = check_bulkheads_fit(from, to); !fits) return fits;
  if (from.g0 != to.g0) {
    return Error{Errc::InvalidArgument,
                 "the new memory has another number of first groups; entries cannot be moved"};
  }
  return {};
}

Result<CopyReport> copy_memory(const View& from, const View& to) { return Copier(from, to).run(); }

}  // namespace cutwater::shm
