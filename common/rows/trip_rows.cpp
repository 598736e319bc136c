// SPDX-License-Identifier: Apache-2.0
#include "rows/trip_rows.hpp"

#include <algorithm>

#include "rows/breaker_rows.hpp"
#include "rows/breaker_settings_row.hpp"
#include "rows/words_of_event.hpp"
#include "shm/breaker/trips.hpp"

namespace cutwater::rows {
namespace {

std::uint64_t positive(std::int64_t ns) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
}

wire::Value row_of(const shm::BreakerTrip& trip, std::int64_t now, std::int64_t offset) {
  wire::Value row;
  row.set("breaker", trip.name);
  row.set("number", trip.number);
  row.set("unix_ms", unix_ms(trip.t_ns, offset));
  row.set("ago_ns", positive(now - trip.t_ns));
  row.set("epoch", trip.epoch);
  row.set("attempts", trip.attempts);
  row.set("from", rule::name_of(trip.from));
  row.set("reason", rule::name_of(trip.reason));
  row.set("wait_ns", positive(trip.until_ns - trip.t_ns));
  row.set("calls", trip.window.calls);
  row.set("failures", trip.window.failures);
  row.set("slow", trip.window.slow);
  if (trip.numbers.consecutive != 0) row.set("run", trip.window.run);
  row.set("hanging", trip.hanging);
  row.set("looked_at", trip.looked_at);
  wire::Value classes(wire::Value::Map{});
  for (const auto& one : trip.classes) {
    classes.set(one.name.empty() ? "other" : std::string(one.name), one.failures);
  }
  row.set("classes", std::move(classes));
  wire::Value::Array processes;
  for (const shm::TripRow& one : trip.contributors) {
    processes.push_back(wire::Value::map(
        {{"row", one.row}, {"pid", one.pid}, {"failures", one.failures}, {"slow", one.slow}}));
  }
  row.set("processes", std::move(processes));
  if (trip.durations != 0) {
    wire::Value durations;
    durations.set("calls", trip.durations);
    durations.set("p50_ns", positive(trip.p50_ns));
    durations.set("p99_ns", positive(trip.p99_ns));
    durations.set("max_ns", positive(trip.max_ns));
    if (trip.durations_since_ns != 0) {
      durations.set("span_ns", positive(trip.t_ns - trip.durations_since_ns));
    }
    row.set("durations", std::move(durations));
  }
  row.set("settings", settings_row(trip.numbers));
  return row;
}

}  // namespace

Result<Rows> trip_rows(const shm::View& view, std::string_view name, std::size_t most) {
  Rows rows;
  const std::int64_t now = view.clock.now(), offset = unix_offset_ns(view);
  for (const auto& trip : shm::read_trips(view, name, std::min(most, kMaxTrips))) {
    rows.push_back(row_of(trip, now, offset));
  }
  if (!rows.empty() || name.empty()) return rows;
  if (const auto row = breaker_row(view, name); !row) return row.error();
  return rows;
}

}  // namespace cutwater::rows
