// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/calendar_writer.hpp"

#include <algorithm>
#include <cstring>

#include "base/guard.hpp"
#include "calendar/period.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

std::int64_t floor_seconds(std::int64_t ns) noexcept {
  return ns / kSecondNs - (ns % kSecondNs < 0 ? 1 : 0);
}

/// Edges of `record` beyond t.
std::size_t ahead_of(const CalendarRecord& record, std::int64_t t) noexcept {
  return static_cast<std::size_t>(
      std::count_if(record.edge, record.edge + record.edges, [&](auto e) { return e > t; }));
}

bool agrees(const CalendarRecord& old, const StampedPeriods& periods, std::int64_t t) noexcept {
  const std::size_t ahead = ahead_of(old, t);
  if (ahead < kEdgesAhead || ahead > periods.edges.size()) return false;
  if (old.last_index - static_cast<std::int64_t>(ahead) != periods.index) return false;
  for (std::size_t i = 0; i < ahead; ++i) {
    const std::int64_t apart = old.edge[old.edges - ahead + i] - periods.edges[i];
    if (apart > kEdgeToleranceNs || apart < -kEdgeToleranceNs) return false;
  }
  return true;
}

void push(CalendarRecord& record, std::int64_t edge) noexcept {
  if (record.edges < kCalendarEdges) record.edge[record.edges++] = edge;
}

/// Fills up with the edges to come; `before`: where the present period began.
void push_all(CalendarRecord& record, const StampedPeriods& periods, std::int64_t before) {
  std::size_t used = 0;
  while (record.edges < kCalendarEdges && used < periods.edges.size()) {
    push(record, periods.edges[used++]);
  }
  record.last_index = periods.index + static_cast<std::int64_t>(used);
  const std::int64_t from = record.edges >= 2 ? record.edge[record.edges - 2] : before;
  record.period_ns = std::max<std::int64_t>(1, record.edge[record.edges - 1] - from);
}

}  // namespace

Result<WallPeriods> system_periods(rule::CalendarUnit unit, const std::string& zone_name,
                                   std::int64_t unix_s, std::size_t count) {
  const auto zone = calendar::Zone::load(zone_name);
  if (!zone) return zone.error();
  auto found = calendar::next_edges(*zone, unit, unix_s, count);
  if (!found) return found.error();
  return WallPeriods{static_cast<std::int64_t>(found->index), std::move(found->edges_s)};
}

std::uint64_t calendar_hash(rule::CalendarUnit unit, const std::string& zone) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;     // FNV-1a
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  add(static_cast<unsigned char>(unit));
  for (const char c : zone.empty() ? std::string("UTC") : zone) add(static_cast<unsigned char>(c));
  return hash | 1;
}

Result<StampedPeriods> stamped_periods(const PeriodSource& source, rule::CalendarUnit unit,
                                       const std::string& zone, std::int64_t t,
                                       std::int64_t wall_offset_ns) {
  const std::int64_t wall_s = std::max<std::int64_t>(0, floor_seconds(t + wall_offset_ns));
  auto found = source(unit, zone, wall_s, kCalendarEdges);
  if (!found) return found.error();
  StampedPeriods out;
  out.index = found->index;
  for (const std::int64_t edge_s : found->edges_s) {
    const std::int64_t stamp = edge_s * kSecondNs - wall_offset_ns;
    if (stamp > t && (out.edges.empty() || stamp > out.edges.back())) out.edges.push_back(stamp);
  }
  if (out.edges.empty()) {
    return Error{Errc::InvalidArgument,
                 "zone '" + zone + "' has no further calendar edge; set the clock of this machine"};
  }
  return out;
}

CalendarRecord fresh_calendar(rule::CalendarUnit unit, const std::string& zone,
                              const StampedPeriods& periods, std::int64_t t) {
  CalendarRecord record{};
  record.valid_from = t;
  record.zone_hash = calendar_hash(unit, zone);
  record.unit = static_cast<std::uint8_t>(unit);
  const std::string& shown = zone.empty() ? std::string("UTC") : zone;
  std::memcpy(record.zone, shown.data(), std::min(shown.size(), sizeof record.zone - 1));
  push_all(record, periods, t);
  return record;
}

CalendarRecord renewed_calendar(const CalendarRecord& old, const StampedPeriods& periods,
                                std::int64_t base_t) {
  if (agrees(old, periods, base_t)) return old;
  CalendarRecord record = old;
  std::memset(record.edge, 0, sizeof record.edge);
  record.edges = 0;
  // The edge that began the present period stays, and k before it.
  const std::uint64_t k = period_at(old, base_t);
  const std::int64_t begin = period_start(old, k);
  std::int64_t old_index = old.last_index - static_cast<std::int64_t>(ahead_of(old, base_t));
  if (is_extrapolated(old, base_t)) {
    const std::uint64_t last_k = period_at(old, old.edge[old.edges - 1]);
    old_index = old.last_index + static_cast<std::int64_t>(k - last_k);
  }
  record.base_k = k;
  if (k > old.base_k) {
    record.base_k = k - 1;
    record.valid_from = std::max(old.valid_from, period_start(old, k - 1));
    push(record, begin);
  }
  if (periods.index > old_index && begin < base_t) push(record, base_t);
  if (periods.index < old_index && !guarded(Guard::WindowNumberNeverFalls)) {
    record.base_k -= std::min<std::uint64_t>(record.base_k,
                                             static_cast<std::uint64_t>(old_index - periods.index));
  }
  push_all(record, periods, begin);
  return record;
}

std::int64_t renew_calendar_at(const CalendarRecord& calendar) noexcept {
  if (calendar.edges == 0) return rule::kNeverNs;
  if (calendar.edges < kEdgesAhead) return calendar.valid_from;
  return calendar.edge[calendar.edges - kEdgesAhead];
}

}  // namespace cutwater::shm
