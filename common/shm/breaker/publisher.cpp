// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/publisher.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/breaker/places.hpp"

namespace cutwater::shm {
namespace {

/// True when outcomes of the one cannot be read as the other's.
bool other_shape(const rule::BreakerNumbers& a, const rule::BreakerNumbers& b) noexcept {
  if (a.window_type != b.window_type) return true;
  return is_time(a) && (a.slots != b.slots || a.slot_ns != b.slot_ns);
}

bool other_half_open(const rule::BreakerNumbers& a, const rule::BreakerNumbers& b) noexcept {
  return a.probes != b.probes || a.half_open_rule != b.half_open_rule ||
         a.half_open_value != b.half_open_value;
}

}  // namespace

BreakerConfig& BreakerPublisher::config(std::uint32_t index) noexcept {
  return reinterpret_cast<BreakerConfig*>(image_ + view_.image_breakers_offset)[index];
}
NameRecord& BreakerPublisher::name(std::uint32_t index) noexcept {
  return reinterpret_cast<NameRecord*>(image_ + view_.image_breaker_names_offset)[index];
}
std::string_view BreakerPublisher::name_at(std::uint32_t index) noexcept {
  return {name(index).text, std::min<std::size_t>(name(index).length, sizeof(NameRecord::text))};
}

Result<void> BreakerPublisher::check(const std::vector<rule::BreakerSettings>& breakers) const {
  std::uint64_t count = 0;
  for (const rule::BreakerSettings& settings : breakers) {
    if (auto fine = rule::check(settings); !fine) return fine;
    count += entries_of(settings);
  }
  if (auto fine = check_names("breaker", breakers); !fine) return fine;
  if (count > view_.breaker_count) {
    return Error{Errc::InvalidArgument,
                 std::to_string(count) + " breakers" + widest_pattern(breakers) +
                     ", but memory was reserved for " + std::to_string(view_.breaker_count) +
                     "; set capacity.breakers to at least " + std::to_string(count) +
                     " and restart"};
  }
  const std::uint64_t needed = breaker_memory_needed(breakers);
  const std::uint64_t there = std::uint64_t{view_.breaker_lines} * kCacheLine;
  if (needed > there) {
    return Error{Errc::InvalidArgument,
                 "the breakers need " + std::to_string(needed) + " bytes for windows and probes, "
                 "and " + std::to_string(there) +
                     " were reserved; set capacity.breaker-memory to at least " +
                     std::to_string(needed) + " and restart"};
  }
  return {};
}

Result<BreakerChanges> BreakerPublisher::apply(std::uint8_t* image,
                                               const std::vector<rule::BreakerSettings>& breakers,
                                               std::int64_t now) {
  image_ = image;
  now_ = now;
  moved_.clear();
  rejudged_.clear();
  reused_.clear();
  gaps_.reset();
  resting_next_ = resting_;
  resting_index_next_ = resting_index_;
  std::erase_if(resting_next_, [now](const Resting& r) { return r.until <= now; });
  std::erase_if(resting_index_next_, [now](const RestingIndex& r) { return r.until <= now; });
  if (auto fine = check(breakers); !fine) return fine.error();
  BreakerChanges changes;
  // The image says so already, since it was this that committed(): most reloads are about others.
  if (!settings_.empty() && breakers == settings_ && given_up_.empty()) {
    changes.unchanged = static_cast<std::uint32_t>(breakers.size());
    return changes;
  }
  const std::vector<Wanted> all = expand_patterns(breakers);
  std::unordered_set<std::string_view> wanted;
  for (const Wanted& one : all) wanted.insert(one.settings.name);
  for (std::uint32_t i = 0; i < view_.breaker_count; ++i) {
    if (config(i).used == 0 || wanted.count(name_at(i)) != 0) continue;
    changes.removed += config(i).kind != kInstanceEntry;
    remove(i, now);
  }
  find_names(now);
  for (const Wanted& one : all) {
    const rule::BreakerSettings& settings = one.settings;
    const std::uint32_t index = names_.index_of(settings.name);
    const std::uint32_t counts = one.kind != kInstanceEntry ? 1 : 0;
    if (index == EntryNames::kNone) {
      if (auto added = add(one, now); !added) return added.error();
      changes.added += counts;
      continue;
    }
    auto changed = change(index, settings, now);
    if (!changed) return changed.error();
    (*changed ? changes.changed : changes.unchanged) += counts;
    write_classes(index, settings);
  }
  make_room(breakers);
  return changes;
}

/// I1: the higher incarnation frees the place, by the swap of `current`.
void BreakerPublisher::make_room(const std::vector<rule::BreakerSettings>& breakers) {
  const BreakerSide side(view_);
  for (const PlaceRef& place : given_up_) {
    if (place.index >= view_.breaker_count) continue;
    BreakerConfig& c = config(place.index);
    if (c.used == 0 || c.kind != kInstanceEntry || c.incarnation != place.incarnation ||
        !side.rests(place.index)) {
      continue;
    }
    // Where a new one would not begin CLOSED, none is unused in the way `idle` means.
    const auto of = std::find_if(breakers.begin(), breakers.end(), [&](const auto& one) {
      return c.pattern < view_.breaker_count && one.name == name_at(c.pattern);
    });
    const bool closed = of != breakers.end() && of->initial_state == rule::BreakerState::Closed;
    if (!closed || !begin_anew(place.index, From::Resting)) continue;
    ++c.incarnation;
    reused_.push_back(place.index);
  }
}

/// CLOSED under a new epoch, with an empty window and nobody's counts; false: it is not `from`.
bool BreakerPublisher::begin_anew(std::uint32_t index, From from) noexcept {
  BreakerParts parts;
  if (!read_place(view_, index, parts)) return false;
  for (int round = 0; round < kBreakerRounds; ++round) {
    Word16 seen = state_of(parts);
    const BreakerWord before = unpack_breaker(seen);
    if (from == From::Resting && !breaker_state_rests(parts, before)) return false;
    if (!before.announced) {
      announce_breaker(parts, seen, kDaemonRow);
      continue;
    }
    if (!begin_windows(parts, seen, rule::BreakerState::Closed)) continue;
    BreakerWord word;
    word.epoch = before.epoch + 1;
    word.announced = true;
    CUTWATER_SYNC_POINT("pattern.before_anew");
    if (!cas16(&parts.head->state, seen, pack_breaker(word))) continue;
    begin_story(*parts.head, word.epoch);
    forget_users(parts);
    return true;
  }
  return false;
}

void BreakerPublisher::committed(const std::vector<rule::BreakerSettings>& breakers) {
  settings_ = breakers;
  resting_ = std::move(resting_next_);
  resting_index_ = std::move(resting_index_next_);
  for (const Moved& moved : moved_) {
    BreakerParts parts;
    if (!read_parts(view_, moved.index, parts)) continue;
    forward_count_ring(moved.from, parts.ring, moved.copied);
  }
  for (const std::uint32_t index : rejudged_) {
    BreakerParts parts;
    if (!read_parts(view_, index, parts)) continue;
    for (int round = 0; round < kBreakerRounds; ++round) {
      const Word16 seen = load16(&parts.head->state);
      const BreakerWord word = unpack_breaker(seen);
      if (word.state != rule::BreakerState::HalfOpen) break;
      const std::int64_t now = view_.clock.now();
      NextState next;
      next.state = rule::BreakerState::Open;
      next.reason = rule::BreakerReason::Reloaded;
      next.attempts = word.attempts;
      next.deadline_ns = now - (parts.edge() == rule::OpenEdge::Exclusive ? 1 : 0);
      if (move_breaker(parts, seen, next, now, kDaemonRow)) break;
    }
  }
  for (const std::uint32_t index : reused_) static_cast<void>(begin_anew(index, From::Any));
  given_up_.clear();
  moved_.clear();
  rejudged_.clear();
  reused_.clear();
}

/// What rests serves only the name that had it, which gets it back at once.
void BreakerPublisher::find_names(std::int64_t now) {
  std::vector<bool> resting(view_.breaker_count);
  for (const RestingIndex& r : resting_index_next_) {
    if (r.until > now && r.index < resting.size()) resting[r.index] = true;
  }
  names_.begin(view_.breaker_count);
  for (std::uint32_t i = 0; i < view_.breaker_count; ++i) {
    using Free = EntryNames::Free;
    if (config(i).used != 0) {
      names_.add_used(i, name_at(i));
    } else {
      names_.add_free(i, name_at(i), resting[i]                    ? Free::OwnerOnly
                                     : config(i).incarnation == 0 ? Free::Fresh
                                                                  : Free::Reusable);
    }
  }
}

void BreakerPublisher::remove(std::uint32_t index, std::int64_t now) {
  BreakerConfig& c = config(index);
  rest({c.ring, ring_lines(c)}, now);
  rest({c.probe_cells, probe_lines(c.numbers)}, now);
  rest({c.user_records, kUserLines}, now);
  if (c.span_ring != kNoLine) rest({c.span_ring, kSpanLines}, now);
  if (c.hanging_cells != kNoLine) rest({c.hanging_cells, kHangingLines}, now);
  if (c.kind != kNamedEntry) rest({c.instance, kInstanceLines}, now);
  const std::uint32_t incarnation = c.incarnation + 1;
  c = {};
  c.incarnation = incarnation;                       // calls of the old name are told at once
  resting_index_next_.push_back({index, now + kBreakerRestNs});
}

Result<void> BreakerPublisher::add(const Wanted& wanted, std::int64_t now) {
  const rule::BreakerSettings& settings = wanted.settings;
  const std::uint32_t index = names_.free_for(settings.name);
  if (index == EntryNames::kNone) {
    return Error{Errc::Busy,
                 "breakers that were removed keep their place for an hour and none is left for '" +
                     settings.name + "'; raise capacity.breakers (now " +
                     std::to_string(view_.breaker_count) + ") and restart"};
  }
  begin_head(index, settings);
  const std::uint32_t epoch = epoch_of(load16(&view_.breakers[index].state).lo);
  const rule::BreakerNumbers n = rule::numbers_of(settings, settings.name);
  BreakerConfig c{};
  c.used = 1;
  c.incarnation = config(index).incarnation + 1;
  c.kind = wanted.kind;
  c.pattern = wanted.kind == kInstanceEntry ? names_.index_of(wanted.pattern) : kNoLine;
  c.span_ring = c.hanging_cells = c.instance = kNoLine;
  c.numbers = n;
  if (auto placed = place_ring(c, n, epoch, now); !placed) return placed;
  if (auto placed = place_span(c, n, epoch, now); !placed) return placed;
  if (auto placed = place_probes(c, n, epoch); !placed) return placed;
  if (auto placed = place_hanging(c, n, epoch); !placed) return placed;
  if (c.kind != kNamedEntry) {
    auto line = take_lines(kInstanceLines);
    if (!line) return line.error();
    c.instance = *line;
    std::memset(view_.breaker_memory + std::uint64_t{*line} * kCacheLine, 0,
                std::size_t{kInstanceLines} * kCacheLine);
  }
  auto users = take_lines(kUserLines);
  if (!users) return users.error();
  c.user_records = *users;
  c.users = kBreakerUsers;
  std::memset(view_.breaker_memory + std::uint64_t{*users} * kCacheLine, 0,
              std::size_t{kUserLines} * kCacheLine);
  config(index) = c;
  NameRecord& record = name(index);
  record = {};
  record.length = static_cast<std::uint8_t>(settings.name.size());
  std::memcpy(record.text, settings.name.data(), settings.name.size());
  names_.take(index, settings.name);
  write_classes(index, settings);
  return {};
}

void BreakerPublisher::write_classes(std::uint32_t index,
                                     const rule::BreakerSettings& settings) noexcept {
  BreakerClasses list{};
  list.record_given = settings.record_given ? 1 : 0;
  const auto add = [&](const std::string& name, std::uint64_t ignored) {
    if (list.count < rule::kMaxClasses) list.entry[list.count++] = rule::class_hash(name) | ignored;
  };
  for (const std::string& name : settings.record) add(name, 0);
  for (const std::string& name : settings.ignore) add(name, kClassIgnored);
  reinterpret_cast<BreakerClasses*>(image_ + view_.image_breaker_classes_offset)[index] = list;
}

Result<bool> BreakerPublisher::change(std::uint32_t index, const rule::BreakerSettings& settings,
                                      std::int64_t now) {
  const BreakerConfig was = config(index);
  BreakerConfig c = was;
  const rule::BreakerNumbers n = rule::numbers_of(settings, settings.name);
  const BreakerWord word = unpack_breaker(load16(&view_.breakers[index].state));
  // An open breaker still shows the window it opened on: that of the epoch before.
  const bool tripped = word.state == rule::BreakerState::Open &&
                       word.previous == rule::BreakerState::Closed;
  const std::uint32_t epoch = word.epoch - (tripped ? 1 : 0);
  const bool other = other_shape(was.numbers, n);
  const bool count = !is_time(n);
  const bool wider = count && !other && n.window_calls > was.window_kept;
  const bool no_room = cells_for(n) > std::uint64_t{was.ring_mask} + 1;
  if (other || wider || no_room) {
    if (auto placed = place_ring(c, n, epoch, now); !placed) return placed.error();
    rest({was.ring, ring_lines(was)}, now);
    if (!other) {
      const RingView from = ring_view(was.ring, was.ring_mask);
      const std::uint64_t copied =
          copy_count_ring(from, ring_view(c.ring, c.ring_mask), was.window_kept);
      moved_.push_back({index, from, copied});
    }
  }
  if (count) c.window_kept = n.window_calls;
  if (was.numbers.span_slot_ns != n.span_slot_ns) {
    if (was.span_ring != kNoLine) rest({was.span_ring, kSpanLines}, now);
    if (auto placed = place_span(c, n, epoch, now); !placed) return placed.error();
  }
  if (probe_lines(n) != probe_lines(was.numbers)) {
    rest({was.probe_cells, probe_lines(was.numbers)}, now);
    if (auto placed = place_probes(c, n, epoch); !placed) return placed.error();
  }
  if (counts_hanging(was.numbers) != counts_hanging(n)) {
    if (was.hanging_cells != kNoLine) rest({was.hanging_cells, kHangingLines}, now);
    if (auto placed = place_hanging(c, n, epoch); !placed) return placed.error();
  }
  if (other_half_open(was.numbers, n)) rejudged_.push_back(index);
  c.numbers = n;
  config(index) = c;
  return std::memcmp(&was, &c, sizeof c) != 0;
}

void BreakerPublisher::begin_head(std::uint32_t index,
                                  const rule::BreakerSettings& settings) noexcept {
  BreakerHead& head = view_.breakers[index];
  Word16 seen = load16(&head.state);
  // A used index goes on counting epochs: a call of its former owner is never of the new one's.
  BreakerWord word;
  word.state = settings.initial_state;
  word.epoch = seen == Word16{} ? kFirstBreakerEpoch : epoch_of(seen.lo) + 1;
  word.announced = true;
  while (!cas16(&head.state, seen, pack_breaker(word))) word.epoch = epoch_of(seen.lo) + 1;
  begin_story(head, word.epoch);
}

/// What is kept of an epoch for people.
void BreakerPublisher::begin_story(BreakerHead& head, std::uint32_t epoch) noexcept {
  Word16 since = load16(&head.since);
  const Word16 begun{std::uint64_t{epoch} << 32 | std::uint64_t{1023} << 22,
                     static_cast<std::uint64_t>(now_)};
  while (!cas16(&head.since, since, begun)) {}
  // relaxed: they decide nothing.
  __atomic_store_n(&head.would_open, std::uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_store_n(&head.openings, std::uint64_t{0}, __ATOMIC_RELAXED);
}

}  // namespace cutwater::shm
