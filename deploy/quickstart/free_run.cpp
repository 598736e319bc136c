// SPDX-License-Identifier: Apache-2.0
#include "free_run.hpp"

#include <cstdio>
#include <functional>
#include <optional>

#include <cutwater/client.hpp>

#include "base/clock.hpp"
#include "ctl/table.hpp"
#include "processes.hpp"
#include "redis.hpp"

namespace cutwater::quickstart {
namespace {

constexpr int kIdleMs = 500;
/// Decisions between two looks at the clock: 64 take a few microseconds here, and for Redis 1 does.
constexpr std::uint32_t kOursPerLook = 64, kRedisPerLook = 1;

/// Answers whether the key's request is admitted; nothing when it cannot go on.
using AskOne = std::function<std::optional<bool>(std::string_view key)>;

struct Figure {
  double per_second = 0;
  std::uint64_t decided = 0, admitted = 0;
};

/// Asks for the log's clients in its order, from a place of its own, until the time is over.
void ask_until(const SharedLog& log, std::uint32_t number, std::int64_t end_ns,
               std::uint32_t per_look, const AskOne& ask_one) {
  std::uint32_t at = number * 7919U % log.size();
  std::uint64_t decided = 0, admitted = 0;
  while (boottime_ns() < end_ns) {
    for (std::uint32_t i = 0; i < per_look; ++i) {
      const std::optional<bool> allowed = ask_one(log.client(log.request(at).client));
      if (!allowed) return log.fail("a process could not go on asking");
      admitted += *allowed ? 1 : 0;
      at = at + 1 == log.size() ? 0 : at + 1;
    }
    decided += per_look;
  }
  log.control().decided[number] = decided;
  log.control().admitted[number] = admitted;
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
    figure.admitted += control.admitted[i];
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

Result<AskOne> prepare_redis(const std::string& socket) {
  auto connected = RedisClient::connect(socket);
  if (!connected) return connected.error();
  auto redis = std::make_shared<RedisClient>(std::move(*connected));
  return AskOne([redis](std::string_view key) -> std::optional<bool> {
    const auto answer = redis->ask(key, 20, 500'000'000);  // the per-client limit of the example
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

}  // namespace

int run_free(const FreeRunAsk& ask, SharedLog& log) {
  const auto server = RedisServer::start();
  const bool redis = server.ok();
  if (!redis) std::printf("beside Redis: not measured, %s\n", server.error().text().c_str());

  using Align = ctl::Table::Align;
  ctl::Table table({{"PROCESSES", Align::Right},
                    {"DECISIONS/S", Align::Right},
                    {"NS EACH", Align::Right},
                    {"ADMITTED", Align::Right},
                    {redis ? "REDIS EVALSHA/S" : "", Align::Right},
                    {redis ? "RATIO" : "", Align::Right}});
  for (const std::uint32_t count : ask.processes) {
    const auto ours =
        measure(log, count, ask.seconds, kOursPerLook, [&] { return prepare_ours(ask); });
    if (!ours) return fail(ours.error().text());
    std::vector<ctl::Table::Cell> cells = {
        std::to_string(count), thousands(ours->per_second),
        std::to_string(static_cast<std::uint64_t>(1e9 / ours->per_second * count)),
        thousands(static_cast<double>(ours->admitted))};
    if (redis) {
      const auto theirs = measure(log, count, ask.seconds, kRedisPerLook,
                                  [&] { return prepare_redis(server->socket()); });
      if (!theirs) return fail(theirs.error().text());
      cells.emplace_back(thousands(theirs->per_second));
      cells.emplace_back(ratio_text(ours->per_second, theirs->per_second));
    }
    table.add(std::move(cells));
  }
  std::printf("%s", table.text(ask.colour).c_str());
  return 0;
}

}  // namespace cutwater::quickstart
