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
    "  odd: {rate: 9973/s, burst: 100}\n";
constexpr std::array<const char*, 6> kNames = {"fast", "slow", "two", "watched", "empty", "odd"};

/// Every field of an answer, as text: what differs is then seen at once.
std::string all_of(const Decision& d) {
  std::ostringstream out;
  out << d.limit_name() << ' ' << name_of(d.reason()) << " remaining " << d.remaining()
      << " retry " << d.retry_after().count() << " reset " << d.reset_after().count()
      << " starts " << d.starts_in().count() << " window " << int{d.window()} << " flags "
      << int{d.data().flags} << " would " << name_of(d.would()) << " charged " << d.charged();
  return out.str();
}

std::string all_of(const Result<std::uint64_t>& given) {
  return given ? "gave back " + std::to_string(*given)
               : "refund: " + std::string(name_of(given.error().code()));
}

std::string all_of(const Admission& a) {
  std::ostringstream out;
  // Not which of several equals is named: their order is that of a keyed hash.
  out << "all: " << name_of(a.reason()) << " remaining " << a.remaining() << " retry "
      << a.retry_after().count() << " reset " << a.reset_after().count() << " flags "
      << int{a.verdict().data().flags};
  return out.str();
}

/// One way, and what it was granted.
struct Asker {
  const char* name;
  std::unique_ptr<Way> way;
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

std::string take(Asker& asker, const Step& step) {
  Limit limit = asker.way->limit(kNames[step.limit]);
  switch (step.what) {
    case 0: case 1: case 2: {
      Decision d = limit.try_acquire(step.key, step.cost);
      std::string text = all_of(d);
      asker.granted.push_back(std::move(d));
      return text;
    }
    case 3: return all_of(limit.peek(step.key, step.cost));
    case 4: {
      Decision d = limit.reserve(step.key, {.cost = step.cost, .max_wait = step.wait});
      std::string text = all_of(d);
      asker.granted.push_back(std::move(d));
      return text;
    }
    case 5: {
      Key key = limit.key(step.key);
      std::string text = all_of(key.peek(step.cost));
      return text + " | " + all_of(key.try_acquire(step.cost));
    }
    case 6: {
      const std::string_view keys[] = {step.key, step.other, step.key};
      std::array<Decision, 3> out;
      limit.acquire_batch(keys, out, step.cost);
      return all_of(out[0]) + " | " + all_of(out[1]) + " | " + all_of(out[2]);
    }
    case 7: {
      if (asker.granted.empty()) return "";
      Decision& d = asker.granted[step.pick % asker.granted.size()];
      return all_of(asker.way->limit(d.limit_name()).refund(d));
    }
    default: {
      Limit second = asker.way->limit(kNames[step.second]);
      Client& client = asker.way->client();
      const LimitAsk asks[] = {{limit, step.key, step.cost}, {second, step.other, 1},
                               {limit, step.other, 2}};
      if (step.what == 8) {
        // Over the socket each limit is looked at by itself: the verdict is the same, not what it
        // says of the others.
        const Admission look = client.peek_all(asks);
        return std::string(name_of(look.reason())) + " " +
               std::to_string(look.retry_after().count());
      }
      Admission made = client.acquire_all(asks);
      std::string text = all_of(made);
      if (made && step.pick % 3 == 0) text += " " + all_of(client.refund(made));
      return text;
    }
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
    askers.push_back({maker.name, maker.make(), {}});
    const auto opened = askers.back().way->open(kLimits);
    ASSERT_TRUE(opened) << opened.error().text();
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
    step.what = static_cast<int>(random() % 10);
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

INSTANTIATE_TEST_SUITE_P(Seeds, SameAnswers, ::testing::Range(0, 3));

}  // namespace
}  // namespace cutwater::test
