// SPDX-License-Identifier: Apache-2.0
// Rows about limits: settings, counters, and what a key would be answered.
#include <algorithm>
#include <array>
#include <cstring>

#include <cutwater/decision.hpp>

#include "rows/limits_of_image.hpp"
#include "rows/segment_rows.hpp"
#include "rule/limit_settings.hpp"
#include "shm/counters.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/admit_detail.hpp"
#include "shm/verify.hpp"

namespace cutwater::rows {

namespace {

/// Readings of the rules are repeated when a publication came in between, at most this often.
constexpr int kReadings = 8;

std::vector<FoundLimit> limits_of_image(const shm::View& view, std::uint64_t current) {
  std::vector<FoundLimit> found;
  const std::uint32_t count = std::min(view.image_head(current).limits, view.limit_count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const shm::LimitConfig& config = view.limit_config(current, i);
    if (config.windows == 0) continue;
    const shm::NameRecord& name = view.limit_name(current, i);
    FoundLimit limit;
    limit.index = i;
    limit.name.assign(name.text, std::min<std::size_t>(name.length, sizeof name.text));
    limit.config = config;
    limit.config.windows = std::min<std::uint8_t>(config.windows, shm::kMaxWindows);
    for (std::size_t w = 0; w < limit.config.windows; ++w) {
      const std::uint16_t rule = config.rule[w];
      if (rule >= view.rule_count) continue;
      limit.rule[w] = view.rule(current, rule);
      const std::uint32_t calendar = limit.rule[w].calendar;
      if (static_cast<shm::RuleKind>(limit.rule[w].kind) == shm::RuleKind::Calendar &&
          calendar < view.calendar_count) {
        limit.calendar[w] = view.calendar(current, calendar);
      }
    }
    found.push_back(std::move(limit));
  }
  return found;
}

const char* on_full_word(std::uint8_t value) noexcept {
  constexpr const char* kWords[] = {"share", "deny", "allow"};
  return value < std::size(kWords) ? kWords[value] : "?";
}

const char* kind_word_of(std::uint8_t flags) noexcept {
  if ((flags & shm::kLimitUnlimited) != 0) return "unlimited";
  return (flags & shm::kLimitBlocked) != 0 ? "blocked" : "bucket";
}

const char* unit_word(std::uint8_t unit) noexcept {
  constexpr const char* kWords[] = {"minute", "hour", "day", "week", "month", "year"};
  return unit < std::size(kWords) ? kWords[unit] : "?";
}

const char* show_keys_word(std::uint8_t value) noexcept {
  constexpr const char* kWords[] = {"hashed", "shown", "hidden"};
  return value < std::size(kWords) ? kWords[value] : "?";
}

/// One element of `windows`.
wire::Value window_of(const shm::RuleRecord& rule, const shm::CalendarRecord& calendar) {
  wire::Value row;
  row.set("count", rule.rate_count);
  if (static_cast<shm::RuleKind>(rule.kind) == shm::RuleKind::Calendar) {
    row.set("calendar", unit_word(calendar.unit));
    row.set("zone", std::string(calendar.zone, ::strnlen(calendar.zone, sizeof calendar.zone)));
  } else {
    row.set("period_ns", rule.rate_period_ns);
  }
  row.set("burst", rule.burst_tokens);
  return row;
}

/// The first window's numbers stand beside `windows`, since most limits have only one.
wire::Value row_of(const FoundLimit& limit) {
  const std::uint8_t flags = limit.config.flags;
  wire::Value row;
  row.set("limit", limit.name);
  row.set("kind", kind_word_of(flags));
  row.set("mode", (flags & shm::kLimitShadow) != 0 ? "shadow" : "enforce");
  if ((flags & (shm::kLimitUnlimited | shm::kLimitBlocked)) == 0) {
    row.set("rate_count", limit.rule[0].rate_count);
    row.set("rate_period_ns", limit.rule[0].rate_period_ns);
    row.set("burst", limit.rule[0].burst_tokens);
    wire::Value::Array windows;
    for (std::size_t w = 0; w < limit.config.windows; ++w) {
      windows.push_back(window_of(limit.rule[w], limit.calendar[w]));
    }
    row.set("windows", std::move(windows));
  }
  row.set("on_full", on_full_word(limit.config.on_full));
  row.set("max_wait_ns", limit.config.max_wait_ns);
  row.set("max_waiting", limit.config.max_waiting);
  row.set("max_debt", limit.config.max_debt);
  row.set("thread_lease", limit.config.thread_lease);
  row.set("overrides", (flags & shm::kLimitHasOverrides) != 0);
  row.set("patterns", limit.config.patterns);
  row.set("show_keys", show_keys_word(limit.config.show_keys));
  return row;
}

constexpr const char* kCounterNames[shm::kLimitCounters] = {
    "allowed",   "refused",  "tokens",         "no_place", "degraded", "undone",
    "waited",    "contention", "shadow_refused", "banned",   "charged",  "uncharged",
    "credited",  "drained",  "unlimited",      "overridden"};
constexpr auto kNoPlace = static_cast<std::size_t>(shm::LimitCounter::NoPlace);

void add_counters(wire::Value& row, const shm::View& view, std::uint32_t limit) {
  const auto sums = shm::sum_counters(view, limit);
  for (std::size_t i = 0; i < sums.size(); ++i) row.set(kCounterNames[i], sums[i]);
}

wire::Value answer_of(const Decision& decision) {
  wire::Value row;
  row.set("reason", name_of(decision.reason()));
  row.set("allowed", decision.allowed());
  row.set("remaining", decision.remaining());
  const auto nanos = [](Nanos time) {
    return time == kNever ? ~std::uint64_t{0} : static_cast<std::uint64_t>(time.count());
  };
  row.set("retry_after_ns", nanos(decision.retry_after()));
  row.set("reset_after_ns", nanos(decision.reset_after()));
  row.set("window", decision.window());
  row.set("hint", decision.is_hint());
  row.set("shadow", decision.shadow());
  if (decision.shadow()) row.set("would", name_of(decision.would()));
  row.set("extrapolated", decision.extrapolated());
  row.set("overflow", decision.overflow());
  row.set("degraded", decision.degraded());
  const std::uint8_t notes = decision.data().notes;
  row.set("by", (notes & shm::kNoteOverridden) != 0 ? "override" : "limit");
  row.set("unlimited", (notes & shm::kNoteUnlimited) != 0);
  return row;
}

/// The windows of the override that judges the key; empty: none does, or it has none.
wire::Value::Array windows_of_override(const shm::View& view, const shm::AdmitAsk& ask) {
  wire::Value::Array out;
  shm::detail::Subject subject;
  const auto outcome =
      shm::detail::read_subject(view, ask, shm::detail::Bans::Judge, subject);
  const bool has = outcome == shm::Outcome::Answered && subject.overridden &&
                   subject.kind == shm::detail::SubjectKind::Bucket;
  for (std::size_t w = 0; has && w < subject.windows; ++w) {
    if (subject.rule[w] >= view.rule_count) return {};
    const shm::RuleRecord rule = view.rule(subject.c, subject.rule[w]);
    const bool calendar = static_cast<shm::RuleKind>(rule.kind) == shm::RuleKind::Calendar &&
                          rule.calendar < view.calendar_count;
    out.push_back(window_of(rule, calendar ? view.calendar(subject.c, rule.calendar)
                                           : shm::CalendarRecord{}));
  }
  return view.current() == subject.c ? out : wire::Value::Array{};
}

}  // namespace

std::vector<FoundLimit> read_limits(const shm::View& view) {
  std::vector<FoundLimit> found;
  for (int i = 0; i < kReadings; ++i) {
    const std::uint64_t current = view.current();
    found = limits_of_image(view, current);
    if (view.current() == current) break;
  }
  return found;
}

Rows counter_rows(const shm::View& view) {
  Rows rows;
  for (const FoundLimit& limit : read_limits(view)) {
    wire::Value row;
    row.set("limit", limit.name);
    add_counters(row, view, limit.index);
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows limit_rows(const shm::View& view) {
  Rows rows;
  for (const FoundLimit& limit : read_limits(view)) rows.push_back(row_of(limit));
  return rows;
}

std::map<std::string, std::uint64_t> debts_by_limit(const shm::View& view) {
  const shm::VerifyReport report = shm::verify(view);
  std::map<std::string, std::uint64_t> debts;
  for (const FoundLimit& limit : read_limits(view)) {
    if (limit.index < report.in_debt_of_limit.size()) {
      debts[limit.name] = report.in_debt_of_limit[limit.index];
    }
  }
  return debts;
}

Result<wire::Value> limit_row(const shm::View& view, std::string_view name,
                              std::optional<std::string_view> key, std::uint64_t cost) {
  const std::vector<FoundLimit> limits = read_limits(view);
  const auto found =
      std::find_if(limits.begin(), limits.end(), [&](const auto& l) { return l.name == name; });
  if (found == limits.end()) {
    std::vector<std::string> known;
    for (const FoundLimit& limit : limits) known.push_back(limit.name);
    return unknown_limit(name, known);
  }
  wire::Value row = row_of(*found);
  add_counters(row, view, found->index);
  if (!key) return row;

  const shm::LimitHandle handle{{found->index, found->config.incarnation},
                                shm::make_limit_secret(view.secret, name)};
  const shm::AdmitAsk ask{
      .limit = handle.ref, .key = shm::key_of(handle, *key), .cost = cost, .max_wait_ns = 0};
  DecisionData data;
  if (shm::look(view, ask, data) != shm::Outcome::Answered) {
    return Error{Errc::UnknownName,
                 "limit '" + std::string(name) + "' was changed just now; ask again"};
  }
  row.set("key", wire::Value::binary(std::string(*key)));
  wire::Value answer = answer_of(Decision(data));
  wire::Value::Array windows = windows_of_override(view, ask);
  if (!windows.empty()) answer.set("windows", std::move(windows));
  row.set("answer", std::move(answer));
  return row;
}

}  // namespace cutwater::rows
