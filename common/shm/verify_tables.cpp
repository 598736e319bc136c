// SPDX-License-Identifier: Apache-2.0
// The tables of the current image beside limits and rules: sets, overrides, patterns, calendars.
#include <algorithm>
#include <bit>

#include "rule/limit_settings.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/verify_detail.hpp"

namespace cutwater::shm::detail {
namespace {

bool is_set(const Verifier& verifier, std::uint32_t index) noexcept {
  if (index == kUnlimitedSet || index == kBannedSet) return true;
  return index >= kFirstSet && index < verifier.view.set_count &&
         read_once(verifier.view.set(verifier.c, index).windows) != 0;
}

std::string check_set(const Verifier& verifier, std::uint32_t index) {
  const SetRecord& set = verifier.view.set(verifier.c, index);
  const unsigned windows = read_once(set.windows), kind = read_once(set.kind);
  if (index < kFirstSet) {
    const unsigned wanted = index == 0 ? 0 : index;       // kUnlimitedSet, kBannedSet
    const bool unwritten = read_once(verifier.view.image_head(verifier.c).limits) == 0;
    if (unwritten && kind == 0 && windows == 0) return "";
    return kind == wanted && windows == 0 ? "" : "is not the fixed one of its number";
  }
  if (windows == 0) return "";
  if (windows > kMaxWindows) return "has more windows than there are";
  if (kind != static_cast<unsigned>(rule::LimitKind::Bucket)) return "has a kind without rules";
  for (unsigned window = 0; window < windows; ++window) {
    const std::uint16_t id = read_once(set.rule[window]);
    const RuleRecord* rule = verifier.known_rule(id);
    if (rule == nullptr) return "names rule " + std::to_string(id) + ", which does not exist";
    if (read_once(rule->limit) != read_once(set.limit) || read_once(rule->window) != window) {
      return "names rule " + std::to_string(id) + ", which belongs to another limit or window";
    }
    if ((read_once(rule->flags) & kRuleOfOverride) == 0) {
      return "names rule " + std::to_string(id) + ", which is the limit's own";
    }
  }
  return "";
}

std::string check_override(const Verifier& verifier, std::uint32_t index) {
  const View& view = verifier.view;
  const OverrideRecord& over = view.override_record(verifier.c, index);
  const std::uint64_t hash = read_once(over.key_hash);
  if (hash == 0) return "";
  if (!is_set(verifier, read_once(over.set))) {
    return "names set " + std::to_string(read_once(over.set)) + ", which does not exist";
  }
  const std::uint64_t home = mulhi(hash, view.override_count);
  const std::uint64_t far = (index + view.override_count - home) % view.override_count;
  if (far >= kOverrideProbes) return "lies farther from its home than anybody looks";
  for (std::uint64_t step = 0; step < far; ++step) {
    const auto between = static_cast<std::uint32_t>((home + step) % view.override_count);
    if (read_once(view.override_record(verifier.c, between).key_hash) == 0) {
      return "lies behind a free record, where nobody looks";
    }
  }
  return "";
}

std::string check_pattern(const Verifier& verifier, std::uint32_t index) {
  const PatternRecord& pattern = verifier.view.pattern(verifier.c, index);
  const std::size_t length = read_once(pattern.length);
  if (length == 0) return "";
  if (length > sizeof pattern.text) return "has an impossible length";
  if (!is_set(verifier, read_once(pattern.set))) {
    return "names set " + std::to_string(read_once(pattern.set)) + ", which does not exist";
  }
  std::size_t stars = 0;
  for (std::size_t i = 0; i < length; ++i) stars += read_once(pattern.text[i]) == '*' ? 1 : 0;
  const std::size_t star = read_once(pattern.star);
  if (stars != 1 || star >= length || read_once(pattern.text[star]) != '*') {
    return "does not have its one '*' where it says";
  }
  return "";
}

std::string check_calendar(const Verifier& verifier, std::uint32_t index) {
  const CalendarRecord& calendar = verifier.view.calendar(verifier.c, index);
  const std::size_t edges = read_once(calendar.edges);
  if (edges == 0) return "";
  if (edges > kCalendarEdges) return "has more edges than there is room for";
  if (read_once(calendar.unit) >= rule::kCalendarUnits) return "has a unit that does not exist";
  if (read_once(calendar.period_ns) <= 0) return "has a last period without length";
  if (read_once(calendar.zone[sizeof calendar.zone - 1]) != 0) return "its zone has no end";
  std::int64_t last = 0;
  for (std::size_t i = 0; i < edges; ++i) {
    const std::int64_t edge = read_once(calendar.edge[i]);
    if (edge <= last && i != 0) return "its edges do not rise";
    last = edge;
  }
  return "";
}

std::string check_patterns_of(const Verifier& verifier, std::uint32_t index) {
  const LimitConfig& limit = verifier.view.limit_config(verifier.c, index);
  if (read_once(limit.windows) == 0) return "";
  const unsigned first = read_once(limit.first_pattern), count = read_once(limit.patterns);
  if (count > rule::kMaxPatterns || first + count > verifier.view.pattern_count) {
    return "has patterns beyond those reserved";
  }
  for (unsigned i = first; i < first + count; ++i) {
    const PatternRecord& pattern = verifier.view.pattern(verifier.c, i);
    if (read_once(pattern.length) == 0 || read_once(pattern.limit) != index) {
      return "counts a pattern of another limit as its own";
    }
  }
  return "";
}

}  // namespace

bool steps_fit(const RuleRecord& rule, const View& view) noexcept {
  const std::uint64_t most = std::uint64_t{1} << 38;
  const auto fits = [&](std::uint64_t step) {
    return step == 0 || (std::has_single_bit(step) && step <= most);
  };
  return read_once(rule.f) == 0 && read_once(rule.calendar) < view.calendar_count &&
         fits(read_once(rule.mult)) && fits(read_once(rule.mult0));
}

void verify_tables(Verifier& verifier) {
  const View& view = verifier.view;
  for (std::uint32_t i = 0; i < view.set_count; ++i) {
    verifier.expect("set", i, [&] { return check_set(verifier, i); });
  }
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < view.override_count; ++i) {
    used += read_once(view.override_record(verifier.c, i).key_hash) != 0 ? 1 : 0;
    verifier.expect("override", i, [&] { return check_override(verifier, i); });
  }
  verifier.expect("overrides", Verifier::kNoIndex, [&]() -> std::string {
    return used <= view.override_capacity ? "" : "more than were reserved for";
  });
  for (std::uint32_t i = 0; i < view.pattern_count; ++i) {
    verifier.expect("pattern", i, [&] { return check_pattern(verifier, i); });
  }
  for (std::uint32_t i = 0; i < view.limit_count; ++i) {
    verifier.expect("limit", i, [&] { return check_patterns_of(verifier, i); });
  }
  for (std::uint32_t i = 0; i < view.calendar_count; ++i) {
    verifier.expect("calendar", i, [&] { return check_calendar(verifier, i); });
  }
}

}  // namespace cutwater::shm::detail
