// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm {
namespace {

std::size_t edges_of(const CalendarRecord& calendar) noexcept {
  return std::clamp<std::size_t>(read_once(calendar.edges), 1, kCalendarEdges);
}

std::int64_t period_of(const CalendarRecord& calendar) noexcept {
  return std::max<std::int64_t>(read_once(calendar.period_ns), 1);
}

// Numbers of shared memory may be anything until `current` was read again: wraps, never overflows.
rule::Units wrapping(std::uint64_t value) noexcept { return static_cast<rule::Units>(value); }

}  // namespace

std::uint64_t period_at(const CalendarRecord& calendar, std::int64_t t) noexcept {
  const std::size_t edges = edges_of(calendar);
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < edges && read_once(calendar.edge[i]) <= t; ++i) ++passed;
  if (passed == edges) {
    const auto since = static_cast<std::uint64_t>(t) -
                       static_cast<std::uint64_t>(read_once(calendar.edge[edges - 1]));
    passed += since / static_cast<std::uint64_t>(period_of(calendar));
  }
  return read_once(calendar.base_k) + passed;
}

std::int64_t period_start(const CalendarRecord& calendar, std::uint64_t k) noexcept {
  const std::uint64_t base_k = read_once(calendar.base_k);
  if (k <= base_k) return read_once(calendar.valid_from);
  const std::uint64_t index = k - base_k - 1;
  const std::size_t edges = edges_of(calendar);
  if (index < edges) return read_once(calendar.edge[index]);
  const auto further = static_cast<unsigned __int128>(index - (edges - 1)) *
                       static_cast<std::uint64_t>(period_of(calendar));
  if (further > static_cast<unsigned __int128>(rule::kClockHorizonNs)) return rule::kNeverNs;
  return wrapping(static_cast<std::uint64_t>(read_once(calendar.edge[edges - 1])) +
                  static_cast<std::uint64_t>(further));
}

bool is_extrapolated(const CalendarRecord& calendar, std::int64_t t) noexcept {
  return t >= read_once(calendar.edge[edges_of(calendar) - 1]);
}

rule::Units steps_at(const CalendarRecord& calendar, const rule::Piece& piece,
                     std::int64_t t) noexcept {
  return wrapping(static_cast<std::uint64_t>(piece.base_n) + period_at(calendar, t) * piece.mult);
}

std::int64_t step_when(const CalendarRecord& calendar, const rule::Piece& piece,
                       rule::Units units) noexcept {
  if (units <= piece.base_n) return read_once(calendar.valid_from);
  if (piece.mult == 0) return rule::kNeverNs;
  const auto above =
      static_cast<std::uint64_t>(units) - static_cast<std::uint64_t>(piece.base_n);
  return period_start(calendar, (above - 1) / piece.mult + 1);
}

}  // namespace cutwater::shm
