// SPDX-License-Identifier: Apache-2.0
// What keys of their own are judged by: sets of rules, the table of overrides, patterns; and the
// calendars all windows share. Written from the beginning in each publication, in one order, so
// that settings that stay give the same bytes.
#include <algorithm>
#include <cstring>

#include "shm/limit/key_hash.hpp"
#include "shm/limit/override_table.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/publisher.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint8_t kBucketSet = static_cast<std::uint8_t>(rule::LimitKind::Bucket);

bool runs(const RuleRecord& record) noexcept {
  return record.kind == static_cast<std::uint8_t>(RuleKind::Token) ||
         record.kind == static_cast<std::uint8_t>(RuleKind::Calendar);
}

/// The end of an override in seconds of segment time; 0 = none. False: it has passed.
bool end_of(const rule::OverrideSettings& over, std::int64_t now, std::int64_t wall_offset_ns,
            std::uint32_t& until_s) noexcept {
  until_s = 0;
  if (over.until_unix_s == 0) return true;
  using Wide = __int128;
  const Wide stamp = Wide{over.until_unix_s} * kSecondNs - wall_offset_ns;
  if (stamp <= now) return false;
  const Wide seconds = (stamp + kSecondNs - 1) / kSecondNs;
  if (seconds <= ~std::uint32_t{0}) until_s = static_cast<std::uint32_t>(seconds);
  return true;
}

}  // namespace

void Publisher::begin_tables() {
  index_.clear();
  rules_of_.assign(view_.limit_count, {});
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    if (rule(id).kind == 0 || rule(id).limit >= view_.limit_count) continue;
    rules_of_[rule(id).limit].push_back(static_cast<std::uint16_t>(id));
  }
  old_sets_.clear();
  for (std::uint32_t i = kFirstSet; i < view_.set_count; ++i) {
    if (set(i).windows != 0) old_sets_.push_back(set(i));
  }
  sets_.assign(kFirstSet, {});
  sets_[kUnlimitedSet].kind = static_cast<std::uint8_t>(rule::LimitKind::Unlimited);
  sets_[kBannedSet].kind = static_cast<std::uint8_t>(rule::LimitKind::Blocked);
  overrides_.clear();
  patterns_.clear();
}

Result<bool> Publisher::write_overrides(std::uint32_t index, const rule::LimitSettings& settings,
                                        const Owed& owed, bool added, Round& round) {
  std::vector<Draft> drafts;
  LimitSecret secret{};
  if (!settings.overrides.empty()) secret = make_limit_secret(view_.secret, settings.name);
  const std::vector<RuleRecord> before = [&] {
    std::vector<RuleRecord> all;
    for (const std::uint16_t id : rules_of_[index]) all.push_back(rule(id));
    return all;
  }();
  const std::size_t first = patterns_.size();
  for (const rule::OverrideSettings& over : settings.overrides) {
    std::uint32_t until_s = 0;
    if (!end_of(over, round.now, wall_offset_ns_, until_s)) continue;
    auto found = set_of(index, settings, over, owed, added, drafts, round);
    if (!found) return found.error();
    if (over.pattern) {
      if (auto put = add_pattern(index, over, *found, until_s); !put) return put.error();
    } else {
      overrides_.push_back({override_hash(hash_key(secret, over.key)), until_s, *found});
    }
  }
  LimitConfig& c = config(index);
  c.patterns = static_cast<std::uint8_t>(patterns_.size() - first);
  c.first_pattern = c.patterns == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(first);
  bool changed = false;
  for (SetRecord& old : old_sets_) {
    if (old.limit != index || old.windows == 0) continue;
    // Nobody is judged by these any more; their entries owe what they owe.
    for (std::size_t w = 0; w < old.windows; ++w) rule(old.rule[w]).flags |= kRuleDropped;
    old.windows = 0;
    round.dropped = changed = true;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    changed |= std::memcmp(&before[i], &rule(rules_of_[index][i]), sizeof before[i]) != 0;
  }
  const auto was = std::find_if(settings_.begin(), settings_.end(),
                                [&](const auto& s) { return s.name == settings.name; });
  return changed || (was != settings_.end() && was->overrides != settings.overrides);
}

Result<std::uint32_t> Publisher::set_of(std::uint32_t index, const rule::LimitSettings& settings,
                                        const rule::OverrideSettings& over, const Owed& owed,
                                        bool added, std::vector<Draft>& drafts, Round& round) {
  if (over.kind == rule::LimitKind::Unlimited) return kUnlimitedSet;
  if (over.kind == rule::LimitKind::Blocked) return kBannedSet;
  for (const Draft& draft : drafts) {
    if (*draft.windows == over.windows) return draft.set;
  }
  SetRecord record{};
  auto reused = reuse_set(index, settings, over.windows, owed, record, round);
  if (!reused) return reused.error();
  if (!*reused) {
    auto made = fresh_set(index, settings, over.windows, owed, added, round);
    if (!made) return made.error();
    record = *made;
  }
  sets_.push_back(record);
  drafts.push_back({&over.windows, static_cast<std::uint32_t>(sets_.size() - 1)});
  return drafts.back().set;
}

Result<bool> Publisher::reuse_set(std::uint32_t index, const rule::LimitSettings& settings,
                                  const std::vector<rule::WindowSettings>& windows,
                                  const Owed& owed, SetRecord& found, Round& round) {
  std::vector<RuleWish> wishes;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    auto wish = wish_for(settings, windows[w], owed[w], round);
    if (!wish) return wish.error();
    wishes.push_back(*wish);
  }
  for (SetRecord& old : old_sets_) {
    if (old.limit != index || old.windows != windows.size()) continue;
    bool same = true;
    for (std::size_t w = 0; w < windows.size() && same; ++w) {
      const RuleRecord& record = rule(old.rule[w]);
      same = runs(record) && same_window(record, wishes[w], same_calendar(record, wishes[w]));
    }
    if (!same) continue;
    found = old;
    old.windows = 0;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      auto done = change_rule(found.rule[w], wishes[w], settings, rule::OnChange::KeepUsed, round);
      if (!done) return done;
    }
    return true;
  }
  return false;
}

Result<SetRecord> Publisher::fresh_set(std::uint32_t index, const rule::LimitSettings& settings,
                                       const std::vector<rule::WindowSettings>& windows,
                                       const Owed& owed, bool added, Round& round) {
  SetRecord record{};
  record.limit = static_cast<std::uint16_t>(index);
  record.kind = kBucketSet;
  record.windows = static_cast<std::uint8_t>(windows.size());
  const bool empty = added && (settings.initial == rule::Initial::Empty || floors_empty_);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    auto wish = wish_for(settings, windows[w], owed[w], round);
    if (!wish) return wish.error();
    auto id = new_rule(settings, round.now);
    if (!id) return id.error();
    Filling filling{empty ? static_cast<rule::Units>(windows[w].burst) : 0, 0};
    const LimitConfig& c = config(index);
    if (!added && w < c.windows && runs(rule(c.rule[w]))) {
      // A key without an entry lacks what it lacked under the limit's own rule.
      const RuleRecord& own = rule(c.rule[w]);
      const rule::Units lacks = own.floor - units_of(own, std::max(round.now, own.base_t));
      filling = {std::max<rule::Units>(lacks, 0), own.f & 63U};
    }
    const std::uint64_t k = windows[w].kind == rule::WindowKind::Calendar
                                ? period_at(calendar(wish->calendar), round.now) : 0;
    const auto lacking = static_cast<std::uint64_t>(filling.units);
    wish->owed = std::max(wish->owed, (lacking >> filling.f) + (lacking != 0 ? 1 : 0));
    const RulePlace place{index, static_cast<std::uint8_t>(w), kRuleOfOverride};
    auto made = fresh_rule(*wish, place, round.now, k, filling);
    if (!made) {
      return Error{Errc::InvalidArgument,
                   "limit '" + settings.name + "': no scale holds an override of " +
                       std::to_string(windows[w].rate_count) + " with burst " +
                       std::to_string(windows[w].burst) + " beside the debts of its window"};
    }
    rule(*id) = *made;
    record.rule[w] = *id;
  }
  return record;
}

Result<void> Publisher::add_pattern(std::uint32_t index, const rule::OverrideSettings& over,
                                    std::uint32_t set, std::uint32_t until_s) {
  PatternRecord record{};
  record.set = set;
  record.until_s = until_s;
  record.limit = static_cast<std::uint16_t>(index);
  record.length = static_cast<std::uint8_t>(over.key.size());
  record.star = static_cast<std::uint8_t>(over.key.find('*'));
  std::memcpy(record.text, over.key.data(), std::min(over.key.size(), sizeof record.text));
  patterns_.push_back(record);
  return {};
}

Result<void> Publisher::end_tables(Round& round) {
  if (sets_.size() > view_.set_count) {
    return Error{Errc::InvalidArgument,
                 std::to_string(sets_.size()) + " sets of numbers for overrides, but memory was "
                 "reserved for " + std::to_string(view_.set_count) +
                     "; raise capacity.overrides and restart"};
  }
  for (std::uint32_t i = 0; i < view_.set_count; ++i) {
    set(i) = i < sets_.size() ? sets_[i] : SetRecord{};
  }
  for (std::uint32_t i = 0; i < view_.pattern_count; ++i) {
    pattern(i) = i < patterns_.size() ? patterns_[i] : PatternRecord{};
  }
  std::vector<bool> used(view_.calendar_count);
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    const RuleRecord& record = rule(id);
    if (record.kind != static_cast<std::uint8_t>(RuleKind::Calendar)) continue;
    if (record.calendar < used.size()) used[record.calendar] = true;
  }
  for (std::uint32_t i = 0; i < view_.calendar_count; ++i) {
    if (!used[i]) calendar(i) = {};
  }
  if (round.report.removed != 0) round.dropped = true;
  return place_overrides();
}

Result<void> Publisher::place_overrides() {
  if (shm::place_overrides(overrides_, &override_record(0), view_.override_count)) return {};
  return Error{Errc::InvalidArgument,
               std::to_string(overrides_.size()) +
                   " overrides lie too close together in a table for " +
                   std::to_string(view_.override_capacity) +
                   "; raise capacity.overrides and restart"};
}

Result<std::uint32_t> Publisher::calendar_for(const rule::WindowSettings& window, Round& round) {
  const std::uint64_t hash = calendar_hash(window.unit, window.zone);
  std::uint32_t free = view_.calendar_count, found = view_.calendar_count;
  for (std::uint32_t i = 0; i < view_.calendar_count; ++i) {
    const CalendarRecord& record = calendar(i);
    if (record.edges != 0 && record.zone_hash == hash) found = std::min(found, i);
    if (record.edges == 0) free = std::min(free, i);
  }
  const bool known = found < view_.calendar_count;
  const std::int64_t t = known ? round.base_t : round.now;
  auto periods = stamped_periods(periods_, window.unit, window.zone, t, wall_offset_ns_);
  if (!periods) return periods.error();
  if (known) {
    const CalendarRecord next = renewed_calendar(calendar(found), *periods, t);
    if (std::memcmp(&next, &calendar(found), sizeof next) != 0) {
      calendar(found) = next;
      round.report.effective_ns = round.base_t;
    }
    return found;
  }
  if (free == view_.calendar_count) {
    return Error{Errc::InvalidArgument,
                 "more than " + std::to_string(view_.calendar_count) +
                     " different calendars (unit and zone); let windows share some"};
  }
  calendar(free) = fresh_calendar(window.unit, window.zone, *periods, t);
  return free;
}

std::int64_t Publisher::renew_at() const noexcept {
  std::int64_t at = rule::kNeverNs;
  for (std::uint32_t i = 0; i < view_.calendar_count; ++i) {
    at = std::min(at, renew_calendar_at(calendar(i)));
  }
  return at;
}

}  // namespace cutwater::shm
