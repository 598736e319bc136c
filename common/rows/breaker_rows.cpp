// SPDX-License-Identifier: Apache-2.0
#include "rows/breaker_rows.hpp"

#include <algorithm>
#include <string>

#include "rows/breaker_settings_row.hpp"
#include "rule/breaker_class.hpp"
#include "shm/breaker/words.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"

namespace cutwater::rows {
namespace {

using shm::BreakerInfo;

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint32_t kEventsAtOnce = 256;

/// By BreakerCounter; nullptr: no word for people.
constexpr const char* kCounterWords[] = {
    "success",         "failure",         "ignored",          "cancelled",      "stale",
    "slow_success",    "slow_failure",    "used_twice",       "stale_failure",  "refused_open",
    "refused_probing", "refused_process", "refused_degraded", "probes_expired", "probes_reclaimed",
    "local_faults",    "probes_granted",  "hinted",           "untracked",      "granted_off"};
constexpr auto kFirstClass = static_cast<std::size_t>(shm::BreakerCounter::FirstClass);
static_assert(std::size(kCounterWords) ==
              static_cast<std::size_t>(shm::BreakerCounter::DurationUs));

std::uint64_t permille(std::uint64_t part, std::uint64_t all) { return part * 1000 / all; }

/// What a caller without a history in this process would be answered; writes nothing.
void add_answer(wire::Value& row, const shm::View& view, shm::BreakerRef ref) {
  const shm::BreakerEntry entry = shm::look_at_breaker(view, ref, {});
  row.set("allowed", entry.granted);
  row.set("answer", entry.granted ? std::string_view("allowed") : name_of(entry.reason));
  const std::uint64_t wait = entry.granted ? 0
                             : entry.retry_after_ns < 0
                                 ? kNever
                                 : static_cast<std::uint64_t>(entry.retry_after_ns);
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
  if (info.numbers.consecutive != 0) row.set("run", window.run);   // else nobody counts it
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

void add_counters(wire::Value& row, const shm::BreakerSums& sums) {
  wire::Value counters(wire::Value::Map{}), classes(wire::Value::Map{});
  for (std::size_t i = 0; i < std::size(kCounterWords); ++i) {
    counters.set(kCounterWords[i], sums.value[i]);
  }
  counters.set("expired_in_queue", sums.of(shm::BreakerCounter::ExpiredInQueue));
  for (std::size_t i = 0; i < shm::kBreakerClasses; ++i) {
    const std::string_view name = rule::counter_name(static_cast<std::uint8_t>(i));
    const std::uint64_t count = sums.value[kFirstClass + i];
    if (count == 0) continue;
    classes.set(name.empty() ? "other-" + std::to_string(i) : std::string(name), count);
  }
  counters.set("beyond_instances", sums.of(shm::BreakerCounter::BeyondInstances));
  row.set("counters", std::move(counters));
  row.set("classes", std::move(classes));
}

void add_moves(wire::Value& row, const shm::BreakerFigures& figures) {
  wire::Value::Array moves;
  wire::Value times(wire::Value::Map{});
  for (std::uint8_t from = 0; from < rule::kBreakerStates; ++from) {
    const auto state = static_cast<rule::BreakerState>(from);
    if (figures.time_ns[from] > 0) {
      times.set(std::string(rule::name_of(state)),
                static_cast<std::uint64_t>(figures.time_ns[from]));
    }
    for (std::uint8_t to = 0; to < rule::kBreakerStates; ++to) {
      for (std::uint8_t why = 0; why < shm::kBreakerReasons; ++why) {
        const std::uint32_t count = figures.moves[from][to][why];
        if (count == 0) continue;
        const auto reason = static_cast<rule::BreakerReason>(why);
        moves.push_back(
            wire::Value::map({{"from", rule::name_of(state)},
                              {"to", rule::name_of(static_cast<rule::BreakerState>(to))},
                              {"reason", rule::name_of(reason)},
                              {"count", count}}));
      }
    }
  }
  if (moves.size() > wire::kMaxArray) moves.resize(wire::kMaxArray);
  row.set("transitions", std::move(moves));
  row.set("time_in_state_ns", std::move(times));
}

/// What the window spans now: a TIME window what it is set to; a COUNT window as long as so many
/// outcomes took in the last minute.
void add_span(wire::Value& row, const BreakerInfo& info, const shm::BreakerFigures& figures) {
  if (info.window_span_ns != 0) {
    row.set("window_span_ns", static_cast<std::uint64_t>(info.window_span_ns));
    return;
  }
  if (figures.minute_outcomes == 0 || figures.minute_span_ns <= 0) return;
  const double span = static_cast<double>(info.window.calls) *
                      static_cast<double>(figures.minute_span_ns) /
                      static_cast<double>(figures.minute_outcomes);
  row.set("window_span_ns", static_cast<std::uint64_t>(span));
}

void add_users(wire::Value& row, const shm::View& view, std::uint32_t index, std::int64_t now) {
  shm::BreakerUserInfo users[shm::kBreakerUsers];
  wire::Value::Array out;
  const std::size_t count = shm::read_breaker_users(view, index, users);
  for (std::size_t i = 0; i < count; ++i) {
    const shm::BreakerUserInfo& user = users[i];
    shm::RowInfo process;
    wire::Value one;
    one.set("row", user.row);
    if (shm::read_row(view, user.row, process)) one.set("pid", process.pid);
    one.set("forked", user.forked);
    one.set("calls", user.calls);
    one.set("failures", user.failures);
    one.set("slow", user.slow);
    one.set("run", user.run);
    one.set("open", user.open);
    if (user.open) {
      one.set("retry_after_ns",
              static_cast<std::uint64_t>(std::max<std::int64_t>(user.deadline_ns - now, 0)));
    }
    out.push_back(std::move(one));
  }
  if (!out.empty()) row.set("processes", std::move(out));
}

/// METRICS_ONLY tells each reason once a visit: the first event of the present one that is kept.
void find_would_open(const shm::View& view, std::uint32_t index, const BreakerInfo& info,
                     rule::BreakerAround& out) {
  if (info.word.state != rule::BreakerState::MetricsOnly) return;
  std::uint64_t from = 0;
  for (;;) {
    const shm::EventPage page = shm::read_events(view, from, kEventsAtOnce);
    for (const shm::Event& event : page.events) {
      const bool ours = event.kind == shm::EventKind::BreakerWouldOpen && event.object == index &&
                        event.t_ns >= info.since_ns && event.t_ns <= info.now_ns &&
                        std::string_view(info.name).starts_with(event.text);
      if (!ours) continue;
      out.would_open = static_cast<rule::BreakerReason>(event.reason);
      out.would_open_ns = info.now_ns - event.t_ns;
      return;
    }
    if (page.next <= from || page.events.empty()) return;
    from = page.next;
  }
}

void add_would_open(wire::Value& row, const BreakerInfo& info, const rule::BreakerAround& around) {
  if (info.word.state != rule::BreakerState::MetricsOnly) return;
  wire::Value would(wire::Value::Map{});
  const auto now = rule::would_open_now(info.numbers, info.window);
  if (now != rule::BreakerReason::None) would.set("now", rule::name_of(now));
  if (around.would_open != rule::BreakerReason::None) {
    would.set("first", rule::name_of(around.would_open));
    would.set("first_ns", static_cast<std::uint64_t>(around.would_open_ns));
  }
  row.set("would_open", std::move(would));
}

/// Everything of one breaker.
wire::Value whole_row_of(const shm::View& view, std::uint32_t index, const BreakerInfo& info) {
  wire::Value row = row_of(view, index, info);
  rule::BreakerAround around = shm::around(info);
  find_would_open(view, index, info, around);
  add_would_open(row, info, around);
  wire::Value::Array words;
  for (std::string& line : rule::explain_lines(info.numbers, shm::story_of(info), around)) {
    words.emplace_back(std::move(line));
  }
  row.set("explain", std::move(words));
  row.set("settings", settings_row(info.numbers));
  shm::BreakerFigures figures;
  if (!shm::read_breaker_figures(view, index, figures)) return row;
  add_span(row, info, figures);
  add_counters(row, figures.sums);
  add_moves(row, figures);
  row.set("measured", info.numbers.slow_ppm != rule::kOffPpm);
  wire::Value total = durations_row(figures.total), minute = durations_row(figures.minute);
  if (!total.is_nil()) row.set("durations", std::move(total));
  if (!minute.is_nil()) row.set("durations_minute", std::move(minute));
  add_users(row, view, index, info.now_ns);
  return row;
}

}  // namespace

wire::Value durations_row(const shm::DurationFigures& figures) {
  if (figures.calls == 0) return {};
  wire::Value row;
  row.set("calls", figures.calls);
  row.set("mean_ns", figures.mean_ns);
  row.set("p50_ns", figures.p50_ns);
  row.set("p99_ns", figures.p99_ns);
  row.set("max_ns", figures.max_ns);
  if (figures.span_ns > 0) row.set("span_ns", figures.span_ns);
  return row;
}

Rows breaker_rows(const shm::View& view, Which which) {
  Rows rows;
  for (const Named& one : breakers_by_name(view, which)) {
    wire::Value row = breaker_row_of(view, one);
    if (!row.is_nil()) rows.push_back(std::move(row));
  }
  return rows;
}

wire::Value breaker_row_of(const shm::View& view, const Named& one) {
  BreakerInfo info;
  const bool there = shm::read_breaker(view, one.index, info) &&
                     info.incarnation == one.incarnation;
  return there ? row_of(view, one.index, info) : wire::Value();
}

Result<wire::Value> breaker_row(const shm::View& view, std::string_view name) {
  const shm::BreakerRef ref = shm::find_breaker(view, name);
  BreakerInfo info;
  if (ref.index != shm::kNoLine && shm::read_breaker(view, ref.index, info)) {
    return whole_row_of(view, ref.index, info);
  }
  return unknown_name("breaker", name, names_of(breakers_by_name(view)),
                      [&](std::string_view p) { return breaker_pattern_is_full(view, p); });
}

}  // namespace cutwater::rows
