// SPDX-License-Identifier: Apache-2.0
#include "free_run.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>

#include <cutwater/client.hpp>

#include "base/clock.hpp"
#include "ctl/table.hpp"
#include "policy.hpp"
#include "processes.hpp"
#include "redis.hpp"

namespace cutwater::quickstart {
namespace {

constexpr int kIdleMs = 500;
/// Turns of ours and theirs; of each the median counts.
constexpr int kRounds = 5;
/// Decisions between two looks at the clock: 64 take a few microseconds here, and for Redis 1 does.
constexpr std::uint32_t kOursPerLook = 64, kRedisPerLook = 1;

/// Answers whether the key's request is admitted; nothing when it cannot go on.
using AskOne = std::function<std::optional<bool>(std::string_view key)>;

struct Figure {
  double per_second = 0;
  std::uint64_t decided = 0;
};

/// Asks for the log's clients in its order, from a place of its own, until the time is over.
void ask_until(const SharedLog& log, std::uint32_t number, std::int64_t end_ns,
               std::uint32_t per_look, const AskOne& ask_one) {
  std::uint32_t at = number * 7919U % log.size();
  std::uint64_t decided = 0;
  while (boottime_ns() < end_ns) {
    for (std::uint32_t i = 0; i < per_look; ++i) {
      const std::optional<bool> allowed = ask_one(log.client(log.request(at).client));
      if (!allowed) return log.fail("a process could not go on asking");
      at = at + 1 == log.size() ? 0 : at + 1;
    }
    decided += per_look;
  }
  log.control().decided[number] = decided;
}

/// Runs `count` processes at once: each prepares, says that it is ready, and starts with the
/// others.
Result<Figure> measure(SharedLog& log, std::uint32_t count, double seconds, std::uint32_t per_look,
                       const std::function<Result<AskOne>()>& prepare) {
  Control& control = log.control();
  control.ready.store(0, std::memory_order_relaxed);  // nobody else is there yet
  control.open_until.store(0, std::memory_order_relaxed);
  const auto length_ns = static_cast<std::int64_t>(seconds * 1e9);
  Processes processes;
  const auto started = processes.start(count, [&](std::uint32_t number) {
    auto ask_one = prepare();
    if (!ask_one) return log.fail(ask_one.error().text()), 1;
    control.ready.fetch_add(1, std::memory_order_release);
    futex_wake(control.ready);
    while (control.open_until.load(std::memory_order_acquire) == 0) {
      futex_wait(control.open_until, 0, kIdleMs);
    }
    ask_until(log, number, boottime_ns() + length_ns, per_look, *ask_one);
    return 0;
  });
  if (!started) return started.error();
  for (;;) {
    const std::uint32_t ready = control.ready.load(std::memory_order_acquire);
    if (control.failed.load(std::memory_order_acquire) == 2) {
      return Error{Errc::System, control.failure};
    }
    if (ready == count) break;
    futex_wait(control.ready, ready, kIdleMs);
    if (const std::string ended = processes.ended(true); !ended.empty()) {
      return Error{Errc::System, ended + " before it began"};
    }
  }
  const std::int64_t begun = boottime_ns();
  control.open_until.store(1, std::memory_order_release);
  futex_wake(control.open_until);
  if (!processes.wait()) return Error{Errc::System, processes.ended(false)};
  const double elapsed = static_cast<double>(boottime_ns() - begun) * 1e-9;
  if (control.failed.load(std::memory_order_acquire) == 2) {
    return Error{Errc::System, control.failure};
  }
  Figure figure;
  for (std::uint32_t i = 0; i < count; ++i) {
    figure.decided += control.decided[i];
  }
  figure.per_second = static_cast<double>(figure.decided) / elapsed;
  return figure;
}

/// Each process opens its own client; the limit it asks belongs to that client.
Result<AskOne> prepare_ours(const FreeRunAsk& ask) {
  ClientOptions options;
  options.name = "quickstart-free-run";
  auto opened = Client::open(ask.address, options);
  if (!opened) return opened.error();
  auto client = std::make_shared<Client>(std::move(*opened));
  auto limit = client->limit(ask.limit);
  if (!limit) return limit.error();
  return AskOne([client, limit = *limit](std::string_view key) mutable -> std::optional<bool> {
    return limit.try_acquire(key).allowed();
  });
}

Result<AskOne> prepare_redis(const std::string& socket, const Policy& policy) {
  auto connected = RedisClient::connect(socket);
  if (!connected) return connected.error();
  auto redis = std::make_shared<RedisClient>(std::move(*connected));
  return AskOne([redis, policy](std::string_view key) -> std::optional<bool> {
    const auto answer = redis->ask(key, policy.burst, policy.rate_period_ns / policy.rate_count);
    if (!answer) return std::nullopt;
    return *answer;
  });
}

std::string thousands(double value) {
  std::string digits = std::to_string(static_cast<std::uint64_t>(value));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), " ");
  }
  return digits;
}

std::string ratio_text(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0fx", whole > 0 ? part / whole : 0.0);
  return text;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "cutwater-quickstart: %s\n", why.c_str());
  return 1;
}

/// The middle one by speed.
Figure median_of(std::vector<Figure> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::nth_element(figures.begin(), middle, figures.end(),
                   [](const Figure& a, const Figure& b) { return a.per_second < b.per_second; });
  return *middle;
}

/// Ours and theirs in turns, so that what else the machine does meets both; the medians.
Result<std::pair<Figure, Figure>> measure_both(const FreeRunAsk& ask, SharedLog& log,
                                               const RedisServer* redis, const Policy& policy,
                                               std::uint32_t count) {
  std::vector<Figure> ours, theirs(redis == nullptr ? 1 : 0);
  for (int round = 0; round < kRounds; ++round) {
    const auto figure =
        measure(log, count, ask.seconds / kRounds, kOursPerLook, [&] { return prepare_ours(ask); });
    if (!figure) return figure.error();
    ours.push_back(*figure);
    if (redis == nullptr) continue;
    const auto other = measure(log, count, ask.seconds / kRounds, kRedisPerLook,
                               [&] { return prepare_redis(redis->socket(), policy); });
    if (!other) return other.error();
    theirs.push_back(*other);
  }
  return std::pair{median_of(std::move(ours)), median_of(std::move(theirs))};
}

}  // namespace

int run_free(const FreeRunAsk& ask, SharedLog& log) {
  auto policy = [&]() -> Result<Policy> {
    auto link = open_link(ask.address);
    if (!link) return link.error();
    return read_policy(*link, ask.limit);  // and the connection is closed before anybody forks
  }();
  if (!policy) return fail(policy.error().text());
  const auto server = RedisServer::start();
  const RedisServer* redis = server ? &*server : nullptr;
  if (redis == nullptr) {
    std::printf("beside Redis: not measured, %s\n", server.error().text().c_str());
    std::fflush(stdout);
  }

  using Align = ctl::Table::Align;
  std::vector<ctl::Table::Column> columns = {
      {"PROCESSES", Align::Right}, {"DECISIONS/S", Align::Right}, {"NS EACH", Align::Right}};
  if (redis != nullptr) {
    columns.push_back({"REDIS EVALSHA/S", Align::Right});
    columns.push_back({"RATIO", Align::Right});
  }
  ctl::Table table(std::move(columns));
  for (const std::uint32_t count : ask.processes) {
    const auto both = measure_both(ask, log, redis, *policy, count);
    if (!both) return fail(both.error().text());
    const auto& [ours, theirs] = *both;
    std::vector<ctl::Table::Cell> cells = {
        std::to_string(count), thousands(ours.per_second),
        std::to_string(static_cast<std::uint64_t>(1e9 / ours.per_second * count))};
    if (redis != nullptr) {
      cells.emplace_back(thousands(theirs.per_second));
      cells.emplace_back(ratio_text(ours.per_second, theirs.per_second));
    }
    table.add(std::move(cells));
  }
  std::printf("%s", table.text(ask.colour).c_str());
  return 0;
}

}  // namespace cutwater::quickstart
