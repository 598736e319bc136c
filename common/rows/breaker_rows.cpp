// SPDX-License-Identifier: Apache-2.0
#include "rows/breaker_rows.hpp"

#include <algorithm>
#include <string>

#include "rows/breaker_settings_row.hpp"
#include "rule/breaker_class.hpp"
#include "shm/breaker_story.hpp"
#include "shm/breaker_words.hpp"

namespace cutwater::rows {
namespace {

using shm::BreakerInfo;

constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// By BreakerCounter; nullptr: no word for people.
constexpr const char* kCounterWords[] = {
    "success",          "failure",          "ignored",        "cancelled",
    "stale",            "slow_success",     "slow_failure",   "used_twice",
    "stale_failure",    "refused_open",     "refused_probing", "refused_process",
    "refused_degraded", "probes_expired",   "probes_reclaimed", "local_faults",
    "probes_granted",   "hinted",           "untracked",      "granted_off"};
constexpr auto kDurationUs = static_cast<std::size_t>(shm::BreakerCounter::DurationUs);
constexpr auto kFirstClass = static_cast<std::size_t>(shm::BreakerCounter::FirstClass);
static_assert(std::size(kCounterWords) == kDurationUs);

std::uint64_t permille(std::uint64_t part, std::uint64_t all) { return part * 1000 / all; }

/// What a caller without a history in this process would be answered; writes nothing.
void add_answer(wire::Value& row, const shm::View& view, shm::BreakerRef ref) {
  const shm::BreakerEntry entry = shm::look_at_breaker(view, ref, {});
  row.set("allowed", entry.granted);
  row.set("answer", entry.granted ? std::string_view("allowed") : name_of(entry.reason));
  const std::uint64_t wait = entry.granted              ? 0
                             : entry.retry_after_ns < 0 ? kNever
                                                        : static_cast<std::uint64_t>(
                                                              entry.retry_after_ns);
  row.set("retry_after_ns", wait);
  row.set("hint", !entry.granted && entry.hint);
}

void add_state(wire::Value& row, const BreakerInfo& info) {
  row.set("state", rule::name_of(info.word.state));
  row.set("ready", info.effective.ready);
  if (info.effective.ready) {
    row.set("next", rule::name_of(rule::state_after(info.numbers, info.word.state)));
  }
  row.set("reason", rule::name_of(info.word.reason));
  if (info.since_ns != 0) {
    row.set("since_ns",
            static_cast<std::uint64_t>(std::max<std::int64_t>(info.now_ns - info.since_ns, 0)));
  }
  row.set("epoch", info.word.epoch);
  row.set("attempts", info.word.attempts);
  row.set("ramping", info.word.ramping);
  row.set("enabled", (info.numbers.flags & rule::kBreakerSwitchedOff) == 0);
  const bool by_hand = info.word.state == rule::BreakerState::ForcedOpen ||
                       info.word.state == rule::BreakerState::Disabled ||
                       info.word.state == rule::BreakerState::MetricsOnly;
  if (by_hand && info.word.deadline_ns != 0) {
    row.set("expires_ns", static_cast<std::uint64_t>(
                              std::max<std::int64_t>(info.word.deadline_ns - info.now_ns, 0)));
  }
}

void add_window(wire::Value& row, const BreakerInfo& info) {
  const rule::BreakerWindow& window = info.window;
  row.set("window", rule::window_words(info.numbers));
  row.set("calls", window.calls);
  row.set("failures", window.failures);
  row.set("slow", window.slow);
  row.set("run", window.run);
  if (window.calls > 0 && window.calls >= info.numbers.minimum) {
    row.set("failure_permille", permille(window.failures, window.calls));
    row.set("slow_permille", permille(window.slow, window.calls));
  }
}

wire::Value row_of(const shm::View& view, std::uint32_t index, const BreakerInfo& info) {
  wire::Value row;
  row.set("breaker", std::string(info.name));
  add_state(row, info);
  add_answer(row, view, {index, info.incarnation});
  add_window(row, info);
  row.set("probes", info.numbers.probes);
  row.set("probes_held", info.probes_held);
  row.set("probes_spent", info.probes.spent);
  row.set("users", info.users);
  row.set("users_open", info.users_open);
  row.set("hanging", info.hanging);
  row.set("flapping", info.flapping);
  return row;
}

void add_counters(wire::Value& row, const shm::View& view, std::uint32_t index) {
  const shm::BreakerSums sums = shm::sum_breaker_counters(view, index);
  wire::Value counters(wire::Value::Map{}), classes(wire::Value::Map{});
  for (std::size_t i = 0; i < std::size(kCounterWords); ++i) {
    counters.set(kCounterWords[i], sums.value[i]);
  }
  for (std::size_t i = 0; i < shm::kBreakerClasses; ++i) {
    const std::string_view name = rule::counter_name(static_cast<std::uint8_t>(i));
    const std::uint64_t count = sums.value[kFirstClass + i];
    if (count == 0) continue;
    classes.set(name.empty() ? "other-" + std::to_string(i) : std::string(name), count);
  }
  row.set("counters", std::move(counters));
  row.set("classes", std::move(classes));
  wire::Value durations = durations_row(sums.durations, sums.value[kDurationUs]);
  if (!durations.is_nil()) row.set("durations", std::move(durations));
}

}  // namespace

wire::Value durations_row(std::span<const std::uint32_t> cells, std::uint64_t sum_us) {
  std::uint64_t calls = 0;
  for (const std::uint32_t count : cells) calls += count;
  if (calls == 0) return {};
  /// The longest duration of the cell that holds the call of this rank, from 1.
  const auto at_rank = [&](std::uint64_t rank) {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      seen += cells[i];
      if (seen >= rank) return static_cast<std::uint64_t>(shm::histogram_upper_ns(i));
    }
    return static_cast<std::uint64_t>(shm::histogram_upper_ns(cells.size() - 1));
  };
  wire::Value row;
  row.set("calls", calls);
  if (sum_us != 0) row.set("mean_ns", sum_us * 1000 / calls);
  row.set("p50_ns", at_rank((calls + 1) / 2));
  row.set("p99_ns", at_rank(calls - calls / 100));
  row.set("max_ns", at_rank(calls));
  return row;
}

Rows breaker_rows(const shm::View& view) {
  Rows rows;
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    BreakerInfo info;
    if (shm::read_breaker(view, i, info)) rows.push_back(row_of(view, i, info));
  }
  std::sort(rows.begin(), rows.end(), [](const wire::Value& a, const wire::Value& b) {
    return *a.find("breaker")->as_string() < *b.find("breaker")->as_string();
  });
  return rows;
}

Result<wire::Value> breaker_row(const shm::View& view, std::string_view name) {
  std::vector<std::string> known;
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    BreakerInfo info;
    if (!shm::read_breaker(view, i, info)) continue;
    if (name != info.name) {
      known.emplace_back(info.name);
      continue;
    }
    wire::Value row = row_of(view, i, info);
    wire::Value::Array words;
    for (std::string& line :
         rule::explain_lines(info.numbers, shm::story_of(info), shm::around(info))) {
      words.emplace_back(std::move(line));
    }
    row.set("explain", std::move(words));
    row.set("settings", settings_row(info.numbers));
    if (info.window_span_ns != 0) {
      row.set("window_span_ns", static_cast<std::uint64_t>(info.window_span_ns));
    }
    add_counters(row, view, i);
    return row;
  }
  return unknown_name("breaker", name, known);
}

}  // namespace cutwater::rows
