// SPDX-License-Identifier: Apache-2.0
// From settings to limits and rules of the next image: what is added, changed, removed.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/guard.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/publisher.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

bool is_bucket(const RuleRecord& record) noexcept {
  return record.kind == static_cast<std::uint8_t>(RuleKind::Token) ||
         record.kind == static_cast<std::uint8_t>(RuleKind::Calendar);
}

Error still(const rule::LimitSettings& settings, const char* what) {
  return {Errc::Busy, "limit '" + settings.name + "': " + what + "; try again in a moment"};
}

Error no_scale(const rule::LimitSettings& settings) {
  return {Errc::InvalidArgument,
          "limit '" + settings.name +
              "': no scale holds what its keys may owe after this change; lower burst, max-wait or "
              "max-debt, or change it with on-change: reset"};
}

void write_config(LimitConfig& c, const rule::LimitSettings& settings) noexcept {
  c.on_full = static_cast<std::uint8_t>(settings.on_full);
  c.show_keys = static_cast<std::uint8_t>(settings.show_keys);
  c.max_waiting = settings.max_waiting;
  c.max_wait_ns = settings.max_wait_ns;
  c.thread_lease = settings.thread_lease;
  c.ip_prefix_v4 = settings.ip_prefix_v4;
  c.ip_prefix_v6 = settings.ip_prefix_v6;
  c.max_debt = settings.max_debt;
}

std::uint8_t flags_of(const rule::LimitSettings& settings, bool calendar) noexcept {
  std::uint8_t flags = 0;
  for (const rule::OverrideSettings& over : settings.overrides) {
    flags |= over.pattern ? kLimitHasPatterns : kLimitHasOverrides;
  }
  if (settings.mode == rule::Mode::Shadow) flags |= kLimitShadow;
  if (settings.kind == rule::LimitKind::Unlimited) flags |= kLimitUnlimited;
  if (settings.kind == rule::LimitKind::Blocked) flags |= kLimitBlocked;
  if (settings.windows.size() > 1) flags |= kLimitManyWindows;
  if (calendar) flags |= kLimitCalendar;
  return flags;
}

/// Windows, overrides, patterns and `blocked` end with the store. Where something of a limit that
/// held keys back may end, its numbers must not go on for another 100 ms: a key would be judged by
/// neither configuration. Then they hold from the publication on: slack, one decision of a thread
/// that stood between its last look at the rules and its swap.
bool loosens(const LimitConfig& was, const rule::LimitSettings& settings) noexcept {
  constexpr std::uint8_t kHeldBack = kLimitHasOverrides | kLimitHasPatterns | kLimitBlocked;
  return (was.flags & kHeldBack) != 0 || settings.windows.size() < was.windows;
}

}  // namespace

Result<void> Publisher::apply(const std::vector<rule::LimitSettings>& limits, Round& round) {
  std::set<std::string_view> wanted;
  for (const rule::LimitSettings& settings : limits) wanted.insert(settings.name);
  free_from_ = kFirstRuleId;
  begin_tables();
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows == 0) continue;
    if (wanted.count({name(i).text, name(i).length}) != 0) {
      index_.emplace(std::string(name(i).text, name(i).length), i);
      continue;
    }
    remove_limit(i, round.now);
    ++round.report.removed;
    round.dropped = true;
  }
  for (const rule::LimitSettings& settings : limits) {
    std::uint32_t index = index_of(settings.name);
    const bool added = index == kNone;
    if (added) {
      auto place = add_limit(settings, round.now);
      if (!place) return place.error();
      index = *place;
    }
    auto changed = write_limit(index, settings, added, round);
    if (!changed) return changed.error();
    ++(added ? round.report.added : *changed ? round.report.changed : round.report.unchanged);
  }
  if (auto done = end_tables(round); !done) return done;
  ImageHead& h = head();
  h.limits = h.rules = 0;
  for (std::uint32_t i = 0; i < view_.limit_count; ++i)
    if (config(i).windows != 0) h.limits = i + 1;
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id)
    if (rule(id).kind != 0) h.rules = id + 1;
  return {};
}

Result<std::uint32_t> Publisher::add_limit(const rule::LimitSettings& settings, std::int64_t now) {
  const std::uint32_t index = free_limit(settings.name, now);
  if (index == kNone) {
    return Error{Errc::Busy,
                 "limits that were removed keep their place for an hour and none is left for '" +
                     settings.name + "'; raise capacity.limits (now " +
                     std::to_string(view_.limit_count) + ") and restart"};
  }
  // Nobody reads the overflow word of an index without a limit; what a former limit owed there is
  // not this one's debt.
  Word16* overflow = view_.limits[index].overflow;
  for (std::size_t w = 0; w < kMaxWindows; ++w) {
    Word16 old = load16(overflow + w);
    while (!(old == Word16{}) && !cas16(overflow + w, old, {})) {}
  }
  LimitConfig& c = config(index);
  const std::uint32_t incarnation = c.incarnation + 1;
  c = {};
  c.incarnation = incarnation;
  NameRecord& n = name(index);
  n = {};
  n.length = static_cast<std::uint8_t>(settings.name.size());
  std::memcpy(n.text, settings.name.data(), settings.name.size());
  return index;
}

Result<bool> Publisher::write_limit(std::uint32_t index, const rule::LimitSettings& settings,
                                    bool added, Round& round) {
  const LimitConfig was = config(index);
  write_config(config(index), settings);
  const Owed owed = owed_of(index, settings);
  const bool at_once = loosens(was, settings) && guarded(Guard::LooseningHoldsAtOnce);
  round.moment = at_once ? round.now : round.base_t;
  bool changed = false;
  if (settings.kind == rule::LimitKind::Bucket) {
    auto windows = write_windows(index, settings, owed, round);
    if (!windows) return windows;
    changed = *windows;
  } else if (was.windows == 0) {
    auto id = new_rule(settings, round.now);
    if (!id) return id.error();
    rule(*id) = bucketless_rule({.limit = index}, round.now);
    config(index).rule[0] = *id;
    config(index).windows = 1;
  }
  auto overrides = write_overrides(index, settings, owed, added, round);
  if (!overrides) return overrides;
  bool calendar = false;
  for (std::size_t w = 0; w < config(index).windows; ++w) {
    calendar |= rule(config(index).rule[w]).kind == static_cast<std::uint8_t>(RuleKind::Calendar);
  }
  config(index).flags = flags_of(settings, calendar);
  return changed || *overrides || std::memcmp(&was, &config(index), sizeof was) != 0;
}

Result<bool> Publisher::write_windows(std::uint32_t index, const rule::LimitSettings& settings,
                                      const Owed& owed, Round& round) {
  LimitConfig& c = config(index);
  bool changed = false;
  for (std::size_t w = 0; w < settings.windows.size(); ++w) {
    auto wish = wish_for(settings, settings.windows[w], owed[w], round);
    if (!wish) return wish.error();
    if (w < c.windows && is_bucket(rule(c.rule[w]))) {
      auto done = change_rule(c.rule[w], *wish, settings, settings.on_change, round);
      if (!done) return done;
      changed |= *done;
      continue;
    }
    if (w < c.windows) free_rule_id(c.rule[w], round.now);
    auto id = new_rule(settings, round.now);
    if (!id) return id.error();
    const bool empty = settings.initial == rule::Initial::Empty || floors_empty_;
    const std::uint64_t k = settings.windows[w].kind == rule::WindowKind::Calendar
                                ? period_at(calendar(wish->calendar), round.now) : 0;
    auto made = fresh_rule(*wish, {index, static_cast<std::uint8_t>(w), 0}, round.now, k,
                           {empty ? static_cast<rule::Units>(settings.windows[w].burst) : 0, 0});
    if (!made) return no_scale(settings);
    rule(*id) = *made;
    c.rule[w] = *id;
    changed = true;
  }
  for (std::size_t w = settings.windows.size(); w < c.windows; ++w) {
    free_rule_id(c.rule[w], round.now);
    c.rule[w] = 0;
    round.dropped = changed = true;
  }
  c.windows = static_cast<std::uint8_t>(settings.windows.size());
  return changed;
}

Result<bool> Publisher::change_rule(std::uint16_t& id, const RuleWish& wish,
                                    const rule::LimitSettings& settings, rule::OnChange word,
                                    Round& round) {
  const RuleRecord old = rule(id);
  const bool same = same_calendar(old, wish);
  if (same_numbers(old, wish, same)) {
    if (wish.owed <= reach_tokens(old)) return false;
    if (auto wider = with_reach(old, wish.owed)) {
      rule(id) = *wider;
      return true;
    }
  }
  if (same_window(old, wish, same)) word = rule::OnChange::KeepUsed;
  if (old.pred != 0) {
    // The factor of a conversion counts from this rule's base_n, which a second change would move.
    return still(settings, "entries of an earlier change are still being converted");
  }
  const rule::Units n = units_of(old, round.moment);
  round.report.effective_ns = std::max(round.report.effective_ns, round.moment);
  if (keeps_id(old, wish, word, same)) {
    rule(id) = changed_rule(old, wish, word, n, round.moment);
    return true;
  }
  if (sweeping_) return still(settings, "entries of former rules are still being cleared");
  auto next = new_rule(settings, round.now);
  if (!next) return next.error();
  const std::uint64_t k = wish.window.kind == rule::WindowKind::Calendar
                              ? period_at(calendar(wish.calendar), round.moment) : 0;
  auto made = successor(old, id, wish, word, n, round.moment, k);
  if (!made) return no_scale(settings);
  rule(*next) = *made;
  rule(id) = predecessor(old, *next, n, round.moment);
  id = *next;
  return true;
}

Result<RuleWish> Publisher::wish_for(const rule::LimitSettings& settings,
                                     const rule::WindowSettings& window, std::uint64_t owed,
                                     Round& round) {
  RuleWish wish = wish_of(settings, window);
  wish.owed = owed > reach_tokens(wish) ? owed : 0;
  if (window.kind == rule::WindowKind::Calendar) {
    auto found = calendar_for(window, round);
    if (!found) return found.error();
    wish.calendar = *found;
  }
  return wish;
}

// The most a key may owe in each window, over all rules an entry of it may live under. Only where
// overrides bring several rules to a window; elsewhere each rule holds its own.
Publisher::Owed Publisher::owed_of(std::uint32_t index,
                                   const rule::LimitSettings& settings) noexcept {
  Owed owed{};
  bool several = false;
  for (const std::uint16_t id : rules_of_[index]) {
    const RuleRecord& record = rule(id);
    if (!is_bucket(record) || record.window >= kMaxWindows) continue;
    several |= (record.flags & kRuleOfOverride) != 0;
    owed[record.window] = std::max(owed[record.window], reach_tokens(record));
  }
  const auto add = [&](const std::vector<rule::WindowSettings>& windows) {
    for (std::size_t w = 0; w < windows.size(); ++w) {
      owed[w] = std::max(owed[w], reach_tokens(wish_of(settings, windows[w])));
    }
  };
  add(settings.windows);
  for (const rule::OverrideSettings& over : settings.overrides) {
    several |= over.kind == rule::LimitKind::Bucket;
    add(over.windows);
  }
  return several ? owed : Owed{};
}

rule::Units Publisher::units_of(const RuleRecord& record, std::int64_t t) const noexcept {
  const rule::Piece piece = read_after(record);
  if (record.kind != static_cast<std::uint8_t>(RuleKind::Calendar)) {
    return rule::units_at(piece, t);
  }
  return record.calendar < view_.calendar_count ? steps_at(calendar(record.calendar), piece, t)
                                                : piece.base_n;
}

bool Publisher::same_calendar(const RuleRecord& record, const RuleWish& wish) const noexcept {
  return record.kind == static_cast<std::uint8_t>(RuleKind::Calendar) &&
         wish.window.kind == rule::WindowKind::Calendar && record.calendar == wish.calendar;
}

Result<std::uint16_t> Publisher::new_rule(const rule::LimitSettings& settings, std::int64_t now) {
  const std::uint32_t id = free_rule(now);
  if (id != kNone) return static_cast<std::uint16_t>(id);
  return Error{Errc::Busy,
               "no rule id is free for limit '" + settings.name + "': all " +
                   std::to_string(view_.rule_count - kFirstRuleId) +
                   " are used by windows and by overrides with numbers of their own, or rest for "
                   "an hour after a change; raise capacity.limits (4 ids each, now " +
                   std::to_string(view_.limit_count) + ") and restart, or wait"};
}

void Publisher::free_rule_id(std::uint32_t id, std::int64_t now) {
  rule(id) = {};
  resting_rules_.push_back({id, now + kRuleRestNs});
}

void Publisher::remove_limit(std::uint32_t index, std::int64_t now) {
  for (const std::uint16_t id : rules_of_[index]) free_rule_id(id, now);
  config(index).windows = 0;
  config(index).incarnation += 1;                        // handles of the old name are told at once
  resting_limits_.push_back({index, now + kRuleRestNs});
}

std::uint32_t Publisher::index_of(std::string_view wanted) noexcept {
  const auto found = index_.find(std::string(wanted));
  return found == index_.end() ? kNone : found->second;
}

std::uint32_t Publisher::free_limit(std::string_view wanted, std::int64_t now) noexcept {
  const auto rests = [&](std::uint32_t index) {
    return std::any_of(resting_limits_.begin(), resting_limits_.end(), [&](const Resting& r) {
      return r.number == index && r.until > now;
    });
  };
  // A name that comes back gets its old place at once: nobody else could be confused by it.
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows == 0 && name(i).length != 0 &&
        std::string_view{name(i).text, name(i).length} == wanted) {
      return i;
    }
  }
  // One that nobody ever had comes first: counters are never zeroed, a used index goes on counting.
  std::uint32_t used = kNone;
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows != 0 || rests(i)) continue;
    if (config(i).incarnation == 0) return i;
    if (used == kNone) used = i;
  }
  return used;
}

std::uint32_t Publisher::free_rule(std::int64_t now) noexcept {
  const auto rests = [&](std::uint32_t id) {
    return std::any_of(resting_rules_.begin(), resting_rules_.end(), [&](const Resting& r) {
      return r.number == id && r.until > now;
    });
  };
  for (; free_from_ < view_.rule_count; ++free_from_) {
    if (rule(free_from_).kind == 0 && !rests(free_from_)) return free_from_++;
  }
  return kNone;
}

}  // namespace cutwater::shm
