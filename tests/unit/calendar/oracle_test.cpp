// SPDX-License-Identifier: Apache-2.0
// Periods against the C library: a child with TZ set looks at what localtime_r shows around every
// edge, and asks mktime where the edge should be.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

#include "calendar/period.hpp"

namespace cutwater::calendar {
namespace {

using rule::CalendarUnit;

constexpr std::uint64_t kSeed = 20260602;
constexpr int kCases = 100'000;
constexpr int kEdges = 3;

tm shown(std::int64_t at) {
  const time_t seconds = at;
  tm out{};
  localtime_r(&seconds, &out);
  return out;
}

/// Grows with the date and the face of the clock; the same within one period of the unit.
std::int64_t label(CalendarUnit unit, const tm& at) {
  const std::int64_t year = at.tm_year + 1900;
  const std::int64_t day = year * 366 + at.tm_yday;
  switch (unit) {
    case CalendarUnit::Year: return year;
    case CalendarUnit::Month: return year * 12 + at.tm_mon;
    case CalendarUnit::Day: return day;
    case CalendarUnit::Hour: return day * 24 + at.tm_hour;
    case CalendarUnit::Minute: return (day * 24 + at.tm_hour) * 60 + at.tm_min;
    case CalendarUnit::Week: break;
  }
  // The Monday of the week, as a day that timegm can count.
  tm monday{};
  monday.tm_year = at.tm_year;
  monday.tm_mon = at.tm_mon;
  monday.tm_mday = at.tm_mday - (at.tm_wday + 6) % 7;
  return timegm(&monday) / 86'400;
}

bool by_clock(CalendarUnit unit) {
  return unit == CalendarUnit::Minute || unit == CalendarUnit::Hour;
}

bool shows_first_second(CalendarUnit unit, const tm& at) {
  return at.tm_sec == 0 && (unit == CalendarUnit::Minute || at.tm_min == 0);
}

/// Is `at` the first second of a period, by what the clock shows there and a second earlier?
bool is_beginning(CalendarUnit unit, std::int64_t at) {
  const tm before = shown(at - 1);
  const tm now = shown(at);
  if (label(unit, now) > label(unit, before)) return true;
  return by_clock(unit) && shows_first_second(unit, now);
}

/// Where mktime puts the first second of the period behind the one shown at `at`.
std::int64_t mktime_edge(CalendarUnit unit, std::int64_t at) {
  tm first = shown(at);
  first.tm_isdst = -1;
  first.tm_sec = first.tm_min = first.tm_hour = 0;
  if (unit == CalendarUnit::Week) {
    first.tm_mday += 7 - (first.tm_wday + 6) % 7;
  } else if (unit == CalendarUnit::Day) {
    ++first.tm_mday;
  } else {
    first.tm_mday = 1;
    if (unit == CalendarUnit::Month) ++first.tm_mon;
    if (unit == CalendarUnit::Year) {
      first.tm_mon = 0;
      ++first.tm_year;
    }
  }
  const tm wanted = first;
  const std::int64_t edge = mktime(&first);
  // A midnight that does not exist comes back as another time: no answer then.
  return first.tm_hour == 0 && first.tm_mday == wanted.tm_mday ? edge : -1;
}

struct Tally {
  long mktime_agreed = 0;
  long mktime_differed = 0;
};

/// What is wrong with the edges behind one moment, or nothing.
std::string fault(const Zone& zone, CalendarUnit unit, std::int64_t at, std::mt19937_64& random,
                  Tally& tally) {
  const auto periods = next_edges(zone, unit, at, kEdges);
  if (!periods) return periods.error().text();
  std::int64_t from = at;
  for (std::size_t i = 0; i < kEdges; ++i) {
    const std::int64_t edge = periods->edges_s[i];
    if (edge <= from) return "an edge that does not lie ahead";
    if (!is_beginning(unit, edge)) return "nothing begins at edge " + std::to_string(edge);
    const std::int64_t highest = label(unit, shown(from));
    for (int sample = 0; sample < 6; ++sample) {
      const auto width = static_cast<std::uint64_t>(edge - from);
      const std::int64_t inside = sample == 0 ? edge - 1
                                              : from + static_cast<std::int64_t>(random() % width);
      if (inside == from) continue;
      const std::int64_t seen = label(unit, shown(inside));
      const bool later = by_clock(unit) ? seen != highest && is_beginning(unit, inside)
                                        : i > 0 && seen > highest;
      if (later) return "something began before edge " + std::to_string(edge);
    }
    const auto there = next_edges(zone, unit, edge, 1);
    const auto before = next_edges(zone, unit, edge - 1, 1);
    if (!there || there->index != periods->index + i + 1 || there->begin_s != edge) {
      return "the index does not go on by one at " + std::to_string(edge);
    }
    if (!before || before->index != periods->index + i || before->edges_s[0] != edge) {
      return "the second before " + std::to_string(edge) + " has another edge";
    }
    if (!by_clock(unit) && i > 0) {
      const std::int64_t wanted = mktime_edge(unit, from);
      if (wanted >= 0) ++(wanted == edge ? tally.mktime_agreed : tally.mktime_differed);
    }
    from = edge;
  }
  return {};
}

int look(const std::string& name, std::uint64_t seed, int cases, FILE* report) {
  setenv("TZ", (":" + name).c_str(), 1);
  tzset();
  const auto zone = Zone::load(name);
  if (!zone) return 2;
  std::mt19937_64 random(seed);
  Tally tally;
  for (int i = 0; i < cases; ++i) {
    const auto unit = static_cast<CalendarUnit>(random() % 6);
    auto at = static_cast<std::int64_t>(random() % 4'102'444'800);   // to the year 2100
    if (i % 3 == 0) {
      // Close to a change of the clock, where the cases are.
      const Stretch stretch = zone->stretch_at(at);
      if (stretch.end_s < 4'102'444'800) {
        at = stretch.end_s + static_cast<std::int64_t>(random() % 200'000) - 100'000;
      }
      if (at < 0) at = 0;
    }
    const std::string wrong = fault(*zone, unit, at, random, tally);
    if (!wrong.empty()) {
      std::fprintf(report, "%s unit %d moment %lld: %s\n", name.c_str(), static_cast<int>(unit),
                   static_cast<long long>(at), wrong.c_str());
      return 1;
    }
  }
  std::fprintf(report, "%s %ld %ld\n", name.c_str(), tally.mktime_agreed, tally.mktime_differed);
  return 0;
}

TEST(PeriodsAgainstTheCLibrary, EveryEdgeIsOneAndNoneIsMissing) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::vector<std::string> names = {"UTC", "Europe/Berlin", "America/New_York",
      "America/Sao_Paulo", "America/Havana", "America/St_Johns", "America/Nuuk", "America/Caracas",
      "Africa/Casablanca", "Africa/Cairo", "Africa/Monrovia", "Asia/Kathmandu", "Asia/Tehran",
      "Asia/Gaza", "Asia/Pyongyang", "Asia/Beirut", "Australia/Lord_Howe", "Australia/Adelaide",
      "Antarctica/Troll", "Antarctica/Casey", "Europe/Dublin", "Pacific/Apia", "Pacific/Kwajalein",
      "Pacific/Kiritimati", "Pacific/Chatham", "Pacific/Norfolk", "Etc/GMT+12", "Asia/Jerusalem"};
  std::mt19937_64 random(kSeed);
  const auto all = zone_names();
  while (names.size() < 100) {
    const std::string& name = all[random() % all.size()];
    if (Zone::load(name)) names.push_back(name);
  }
  const int cases = kCases / static_cast<int>(names.size());
  FILE* const report = std::tmpfile();
  ASSERT_NE(report, nullptr);
  for (const std::string& name : names) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const int code = look(name, random(), cases, report);
      std::fflush(report);
      _exit(code);
    }
    random();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name;
  }
  std::rewind(report);
  char line[512];
  long agreed = 0;
  long differed = 0;
  while (std::fgets(line, sizeof line, report) != nullptr) {
    long a = 0;
    long d = 0;
    if (std::sscanf(line, "%*s %ld %ld", &a, &d) != 2) ADD_FAILURE() << line;
    agreed += a;
    differed += d;
  }
  std::fclose(report);
  // Where a midnight comes twice, mktime may name the second one: only there may it differ.
  std::printf("mktime agreed %ld times, differed %ld times\n", agreed, differed);
  EXPECT_GT(agreed, kCases / 2);
  EXPECT_LT(differed, kCases / 1000);
}

}  // namespace
}  // namespace cutwater::calendar
