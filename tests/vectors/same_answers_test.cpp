// SPDX-License-Identifier: Apache-2.0
// One rule, one counter, one answer: a random history asked in every way at once, and every field
// of every answer compared, to the nanosecond.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

constexpr char kLimits[] =
    "limits:\n"
    "  fast: {rate: 7/s, burst: 9, max-wait: 2s}\n"
    "  slow: {rate: 3 per min, burst: 4, max-wait: 1m}\n"
    "  two: {windows: [{rate: 5/s, burst: 5}, {rate: 40/min, burst: 12}]}\n"
    "  watched: {rate: 2/s, burst: 2, mode: shadow}\n"
    "  empty: {rate: 1/s, burst: 6, initial: empty}\n"
    "  odd: {rate: 9973/s, burst: 100}\n"
    "  late: {rate: 4/s, burst: 5, max-debt: 3}\n"
    "  spaced: {spacing: 700ms, max-wait: 3s}\n"
    "  free: {unlimited: true}\n"
    "  shut: {blocked: true}\n"
    "  mixed:\n"
    "    rate: 2/s\n"
    "    burst: 3\n"
    "    keys:\n"
    "      key 0: {rate: 6/s, burst: 8}\n"
    "      key 1: unlimited\n"
    "      key 2: {banned: true}\n"
    "      \"k*\": {windows: [{rate: 3/s, burst: 4}, {rate: 50/min, burst: 9}]}\n"
    "  yearly: {calendar: {count: 60, per: year}}\n";
constexpr std::array<const char*, 12> kNames = {"fast", "slow",   "two",  "watched", "empty", "odd",
                                                "late", "spaced", "free", "shut",    "mixed",
                                                "yearly"};

/// An edge of the calendar is as far away as each memory's wall clock says.
enum class Times { All, NotOfCalendars };

/// Every public accessor of an answer, as text: what differs is then seen at once. `zero`: a stamp
/// of its memory that all ways share. Not decided_by(): that is the way.
std::string all_of(const Decision& d, Nanos zero, Times times = Times::NotOfCalendars) {
  std::ostringstream out;
  out << d.limit_name() << ' ' << name_of(d.reason()) << (d.allowed() ? " yes" : " no")
      << (static_cast<bool>(d) ? "" : "!") << " remaining " << d.remaining();
  if (times == Times::All || d.limit_name() != "yearly") {
    out << " retry " << d.retry_after().count() << " reset " << d.reset_after().count();
  }
  out << " starts " << d.starts_in().count() << " stamp " << (d.stamp() - zero).count()
      << " window " << int{d.window()} << (d.degraded() ? " degraded" : "")
      << (d.overflow() ? " overflow" : "") << (d.is_hint() ? " hint" : "")
      << (d.shadow() ? " shadow" : "") << (d.extrapolated() ? " extrapolated" : "") << " flags "
      << int{d.data().flags} << " would " << name_of(d.would()) << " charged " << d.charged();
  return out.str();
}

std::string all_of(const Result<std::uint64_t>& given) {
  return given ? "gave back " + std::to_string(*given)
               : "refund: " + std::string(name_of(given.error().code()));
}

std::string all_of(const Admission& a, Nanos zero) {
  std::ostringstream out;
  // Not which of several equals decides: their order is that of a keyed hash.
  const Decision& v = a.verdict();
  const bool hopeless = a.retry_after() == kNever;
  out << "all: " << (hopeless ? "never, whyever" : name_of(a.reason()))
      << (a.allowed() ? " yes" : " no") << " remaining " << a.remaining()
      << (a.degraded() ? " degraded" : "") << (a.shadow() ? " shadow" : "")
      << " flags " << int{v.data().flags} << " starts " << v.starts_in().count() << " stamp "
      << (v.stamp() - zero).count() << " charged " << v.charged();
  bool yearly = false;
  for (const Decision& one : a.each()) {
    out << "\n  " << all_of(one, zero);
    yearly = yearly || one.limit_name() == "yearly";
  }
  if (!yearly) {
    out << "\n  retry " << a.retry_after().count() << " reset " << a.reset_after().count();
  }
  return out.str();
}

/// One way, and what it was granted.
struct Asker {
  const char* name;
  std::unique_ptr<Way> way;
  Nanos zero{0};                       ///< stamp at the beginning
  std::vector<Decision> granted;
};

/// What a step of the history does, the same for every way.
struct Step {
  int what = 0;
  std::size_t limit = 0, second = 0;
  std::string key, other;
  std::uint64_t cost = 1;
  Nanos wait{0};
  std::size_t pick = 0;
};

std::string take_all(Asker& asker, Limit limit, const Step& step) {
  Limit second = asker.way->limit(kNames[step.second]);
  Client& client = asker.way->client();
  const LimitAsk asks[] = {{limit, step.key, step.cost}, {second, step.other, 1},
                           {limit, step.other, 2}};
  if (step.what == 8) return all_of(client.peek_all(asks), asker.zero);
  Admission made = client.acquire_all(asks);
  std::string text = all_of(made, asker.zero);
  if (made && step.pick % 3 == 0) text += " " + all_of(client.refund(made));
  return text;
}

std::string take(Asker& asker, const Step& step) {
  Limit limit = asker.way->limit(kNames[step.limit]);
  const auto keep = [&](Decision d) {
    std::string text = all_of(d, asker.zero);
    asker.granted.push_back(std::move(d));
    return text;
  };
  switch (step.what) {
    case 0: case 1: case 2: return keep(limit.try_acquire(step.key, step.cost));
    case 3: return all_of(limit.peek(step.key, step.cost), asker.zero);
    case 4: return keep(limit.reserve(step.key, {.cost = step.cost, .max_wait = step.wait}));
    case 5: {
      Key key = limit.key(step.key);
      std::string text = all_of(key.peek(step.cost), asker.zero);
      return text + " | " + all_of(key.try_acquire(step.cost), asker.zero);
    }
    case 6: {
      const std::string_view keys[] = {step.key, step.other, step.key};
      std::array<Decision, 3> out;
      limit.acquire_batch(keys, out, step.cost);
      return all_of(out[0], asker.zero) + " | " + all_of(out[1], asker.zero) + " | " +
             all_of(out[2], asker.zero);
    }
    case 7: {
      if (asker.granted.empty()) return "";
      Decision& d = asker.granted[step.pick % asker.granted.size()];
      return all_of(asker.way->limit(d.limit_name()).refund(d));
    }
    case 10: return keep(limit.charge(step.key, step.cost));
    default: return take_all(asker, limit, step);
  }
}

class SameAnswers : public ::testing::TestWithParam<int> {};

// covers: C007, C009, C011, C022, C088 (in memory, mapped, socket)
TEST_P(SameAnswers, WhicheverWayIsAsked) {
  const std::uint64_t seed = GetParam() == 0 ? 20'261'130 : std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<Asker> askers;
  for (const WayMaker& maker : every_way()) {
    askers.push_back({maker.name, maker.make(), Nanos{0}, {}});
    Asker& asker = askers.back();
    const auto opened = asker.way->open(kLimits);
    ASSERT_TRUE(opened) << opened.error().text();
    asker.zero = asker.way->limit(kNames[0]).peek("").stamp();
  }
  Nanos now{0};
  std::uint64_t allowed = 0;
  for (int i = 0; i < 1500; ++i) {
    if (random() % 3 == 0) {
      now += Nanos{static_cast<std::int64_t>(random() % (1ULL << (20 + random() % 13)))};
      for (Asker& asker : askers) {
        asker.way->at(now);
        // A full entry may make room for another key, and where it lies is each table's own
        // chance: what was charged before is too late in one and given back in another.
        asker.granted.clear();
      }
    }
    Step step;
    step.what = static_cast<int>(random() % 11);
    step.limit = random() % kNames.size();
    step.second = random() % kNames.size();
    step.key = "key " + std::to_string(random() % 4);
    step.other = std::string(random() % 3, 'k');
    step.cost = std::array<std::uint64_t, 8>{1, 1, 1, 2, 3, 5, 0, 200}[random() % 8];
    step.wait = Nanos{static_cast<std::int64_t>(random() % 3'000'000'000)};
    step.pick = random();

    const std::string first = take(askers[0], step);
    allowed += first.find("allowed") != std::string::npos ? 1 : 0;
    for (std::size_t other = 1; other < askers.size(); ++other) {
      ASSERT_EQ(take(askers[other], step), first)
          << askers[other].name << " beside " << askers[0].name << ", step " << i << " kind "
          << step.what << " at " << now.count();
    }
  }
  EXPECT_GT(allowed, 300U);
}

/// Two clients of one daemon, one that maps its memory and one that asks: the same to the
/// nanosecond, also where a wall clock is behind it, whichever of them charged before.
TEST(SameAnswers, OnOneMemoryMappedAndAsked) {
  const std::unique_ptr<Way> way = every_way().back().make();
  const auto opened = way->open(kLimits);
  ASSERT_TRUE(opened) << opened.error().text();
  auto mapped = Client::open(way->address());
  ASSERT_TRUE(mapped) << mapped.error().text();
  Client* const clients[] = {&*mapped, &way->client()};
  const std::string keys[] = {"key 0", "key 1", "key 2", "k", "other", "", std::string(5000, 'x')};
  std::size_t compared = 0;
  for (int round = 0; round < 4; ++round) {
    way->at(std::chrono::seconds(round * round));
    for (const char* const name : kNames) {
      Limit limit[] = {clients[0]->limit(name).value(), clients[1]->limit(name).value()};
      for (const std::string& key : keys) {
        for (const std::uint64_t cost : {0ULL, 1ULL, 3ULL, 200ULL, 2'000'000'000ULL}) {
          const Decision there = limit[0].peek(key, cost);
          const Decision here = limit[1].peek(key, cost);
          ASSERT_EQ(all_of(here, Nanos{0}, Times::All), all_of(there, Nanos{0}, Times::All))
              << name << " key \"" << key.substr(0, 9) << "\" cost " << cost;
          EXPECT_EQ(there.decided_by(), DecidedBy::Memory);
          if (key.size() < 5000 && cost < 2'000'000'000) {
            EXPECT_EQ(here.decided_by(), DecidedBy::Socket);
          }
          ++compared;
        }
        (void)limit[compared % 2].try_acquire(key, 1 + compared % 3);
        if (round == 2) (void)limit[compared % 2].charge(key, 4);
      }
    }
  }
  EXPECT_EQ(compared, 4 * kNames.size() * 7 * 5);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SameAnswers, ::testing::Range(0, 3));

}  // namespace
}  // namespace cutwater::test
