// SPDX-License-Identifier: Apache-2.0
#include "ctl/replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/exact_limiter.hpp"

namespace cutwater::ctl {
namespace {

constexpr std::time_t kStart = 1'767'600'000;

std::string line_of(const std::string& client, std::time_t second) {
  std::tm parts{};
  ::gmtime_r(&second, &parts);
  char stamp[40];
  std::strftime(stamp, sizeof stamp, "%d/%b/%Y:%H:%M:%S +0000", &parts);
  return client + " - - [" + stamp + "] \"GET / HTTP/1.1\" 200 1\n";
}

AccessLog log_of(std::string text) {
  return AccessLog(
      [text = std::move(text), at = std::size_t{0}](char* place, std::size_t size) mutable {
        const std::size_t count = text.copy(place, size, at);
        at += count;
        return count;
      });
}

config::Config config_of(const std::string& yaml) {
  auto outcome = config::load_text(yaml, "test.yaml");
  EXPECT_TRUE(outcome.ok()) << outcome.report();
  return std::move(*outcome.config);
}

ReplayResult replay_of(const std::string& text, const std::string& yaml,
                       std::size_t max_clients = kMaxReplayClients,
                       const std::string& against_yaml = {}) {
  AccessLog log = log_of(text);
  const config::Config config = config_of(yaml), against = config_of(against_yaml);
  auto result = replay(log,
                       {.config = &config,
                        .against = against_yaml.empty() ? nullptr : &against,
                        .limit = "api",
                        .max_clients = max_clients},
                       [](unsigned) {});
  EXPECT_TRUE(result.ok()) << result.error().text();
  return result.ok() ? *result : ReplayResult{};
}

const std::string kYaml = "limits: { api: { rate: 2/s, burst: 3 } }\n";

TEST(Replay, DecidesByTheStampsOfTheLog) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += line_of("a", kStart);     // 3 of 5
  text += line_of("a", kStart + 1) + line_of("a", kStart + 1);  // 2 came back
  text += line_of("a", kStart + 1);

  const ReplayResult result = replay_of(text, kYaml);

  EXPECT_EQ(result.requests, 8U);
  EXPECT_EQ(result.admitted, 5U);
  EXPECT_EQ(result.refused, 3U);
  EXPECT_EQ(result.clients, 1U);
  EXPECT_EQ(result.last_ns - result.first_ns, 1'000'000'000);
}

// Its periods and the ends of bans are those of the log's wall clock, however many they are.
TEST(Replay, DaysAndBansAreThoseOfTheLog) {
  constexpr std::time_t kDay = 86'400, kMidnight = 1'767'571'200;   // 2026-01-05T00:00:00Z
  std::string text;
  for (int day = 1; day <= 40; ++day) {
    const std::time_t midnight = kMidnight + day * kDay;
    text += line_of("a", midnight - 2) + line_of("a", midnight - 1);   // one of each day's
    if (day == 3) text += line_of("b", midnight - 1) + line_of("b", midnight + 1);
  }

  const ReplayResult result = replay_of(
      text, "limits: { api: { calendar: { count: 1, per: day }, keys: { b: { banned: true, "
            "until: 2026-01-08T00:00:00Z } } } }\n");

  EXPECT_EQ(result.admitted, 40U + 1U);
  EXPECT_EQ(result.refused, 40U + 1U);
}

TEST(Replay, CountsAnEarlierStampAsAskedAtTheLatest) {
  const std::string text = line_of("a", kStart + 10) + line_of("a", kStart) +
                           line_of("a", kStart + 5) + line_of("a", kStart + 10);

  const ReplayResult result = replay_of(text, kYaml);

  EXPECT_EQ(result.admitted, 3U);
  EXPECT_EQ(result.refused, 1U);
  EXPECT_EQ(result.out_of_order, 2U);
}

TEST(Replay, EqualsTheExactLimiterForEachClient) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 dice(seed);
  std::string text;
  std::map<std::string, test::ExactBucket> exact;
  std::map<std::string, std::uint64_t> refused;
  std::uint64_t admitted = 0;
  std::time_t second = 0, latest = 0;
  for (int i = 0; i < 20'000; ++i) {
    second += dice() % 3 == 0 ? static_cast<std::time_t>(dice() % 3) : 0;
    const std::string client = "client-" + std::to_string(dice() % (1 + dice() % 40));
    const std::time_t stamp = std::max<std::time_t>(
        second - (dice() % 20 == 0 ? static_cast<std::time_t>(dice() % 5) : 0), 0);
    latest = std::max(latest, stamp);
    text += line_of(client, kStart + stamp);
    const auto found = exact.try_emplace(client, 2, 7'000'000'000, 3).first;
    const bool allowed =
        found->second.take(static_cast<std::uint64_t>(latest) * 1'000'000'000, 1).allowed;
    ++(allowed ? admitted : refused[client]);
  }

  const ReplayResult result =
      replay_of(text, "limits: { api: { rate: { count: 2, per: 7s }, burst: 3 } }\n");

  EXPECT_EQ(result.admitted, admitted);
  EXPECT_EQ(result.clients, exact.size());
  ASSERT_FALSE(result.most_refused.empty());
  for (const ClientSum& sum : result.most_refused) {
    EXPECT_EQ(sum.refused, refused[sum.client]) << sum.client;
  }
}

TEST(Replay, TellsSoManyClientsApartAndDecidesTheRest) {
  std::string text;
  for (const char* client : {"a", "b", "c", "c", "c", "c", "a"}) text += line_of(client, kStart);

  const ReplayResult result = replay_of(text, kYaml, 2);

  EXPECT_EQ(result.requests, 7U);
  EXPECT_EQ(result.refused, 1U);
  EXPECT_EQ(result.clients, 2U);
  EXPECT_EQ(result.clients_unknown, 4U);
}

TEST(Replay, PassesOverATimeBeyondItsClock) {
  const ReplayResult result = replay_of(
      line_of("a", kStart) + line_of("a", kStart + 400'000'000) + line_of("a", kStart), kYaml);

  EXPECT_EQ(result.requests, 2U);
  EXPECT_EQ(result.skipped, 1U);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].line, 2U);
}

TEST(Replay, NamesTheNearestLimits) {
  AccessLog log = log_of(line_of("a", kStart));

  const config::Config config = config_of(kYaml);
  const auto result = replay(log, {.config = &config, .limit = "appi"}, [](unsigned) {});

  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::UnknownName);
  EXPECT_NE(result.error().text().find("api"), std::string::npos);
}

TEST(Replay, AsksASecondConfigurationTheSameRequests) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += line_of("a", kStart);
  for (int i = 0; i < 2; ++i) text += line_of("b", kStart);

  const ReplayResult result =
      replay_of(text, kYaml, kMaxReplayClients, "limits: { api: { rate: 1/s, burst: 1 } }\n");

  EXPECT_TRUE(result.compared);
  EXPECT_EQ(result.admitted, 5U);          // 3 of a, 2 of b
  EXPECT_EQ(result.admitted_against, 2U);  // 1 of each
  EXPECT_EQ(result.refused_against, 5U);
  EXPECT_EQ(result.better_off, 0U);
  EXPECT_EQ(result.worse_off, 2U);
  ASSERT_EQ(result.most_changed.size(), 2U);
  EXPECT_EQ(result.most_changed[0].client, "a");
  EXPECT_EQ(result.most_changed[0].refused_against - result.most_changed[0].refused, 2U);
}

TEST(MostRefused, OrdersByRefusalsThenByName) {
  const auto top =
      most_refused_of({{"z", 5, 2}, {"a", 9, 2}, {"none", 9, 0}, {"most", 9, 8}, {"few", 2, 1}}, 3);

  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].client, "most");
  EXPECT_EQ(top[1].client, "a");
  EXPECT_EQ(top[2].client, "z");
}

}  // namespace
}  // namespace cutwater::ctl
