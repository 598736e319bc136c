// SPDX-License-Identifier: Apache-2.0
// R1: one decision in flight, asked of the daemon over its Unix socket, against a Redis script and
// an echo; R3: 64 decisions in one frame. With 1, 8 and 50 client processes, and the CPU time of
// one decision on both sides.
//
// Each case of a round forks its clients; they connect, wait for each other, then ask for a fixed
// time, each with one round trip in flight. Bounds are on the median round trip of one client, for
// R3 divided by its decisions; with more clients (decisions a second) and for CPU there are none.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <new>

#include "harness.hpp"
#include "peers.hpp"
#include "reference.hpp"

namespace cutwater::bench {
namespace {

constexpr std::size_t kMostClients = 50;
constexpr std::size_t kLatencies = 4096;   // kept of each client: the last ones
constexpr std::size_t kAskBytes = 64;      // of an ask of one key, and about of its answer
constexpr std::size_t kBatchBytes = 2048;  // of an ask of 64 keys, and about of its answer

double now_ns(clockid_t clock) {
  timespec reading;
  clock_gettime(clock, &reading);
  return static_cast<double>(reading.tv_sec) * 1e9 + static_cast<double>(reading.tv_nsec);
}

/// What the clients of a case share with the one who waits for them.
struct Shared {
  std::atomic<std::uint32_t> ready{0};
  std::atomic<bool> go{false}, over{false};
  struct Client {
    std::uint64_t done = 0;
    double cpu_ns = 0;
    double median_ns = 0;
    bool good = true;
  } client[kMostClients];
};

struct System {
  const char* name;
  const Peer* peer;
  std::function<RoundTrip()> connect;
  double decisions;  ///< of one round trip
};

/// One system with some clients, over all rounds.
struct Measured {
  std::vector<double> median_ns;                     ///< of a round trip
  std::vector<double> wall_ns;                       ///< of one decision, all clients together
  std::vector<double> client_cpu_ns, server_cpu_ns;  ///< of one decision
  bool good = true;
};

[[noreturn]] void be_client(const System& system, Shared& shared, std::size_t index) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Shared::Client& mine = shared.client[index];
  const RoundTrip round_trip = system.connect();
  mine.good = round_trip && round_trip(index);
  shared.ready.fetch_add(1);
  if (!mine.good) _exit(1);
  while (!shared.go.load()) usleep(100);
  std::vector<double> latencies(kLatencies);
  const double cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  double last = now_ns(CLOCK_MONOTONIC);
  std::uint64_t done = 0;
  for (; !shared.over.load(std::memory_order_relaxed); ++done) {
    if (!round_trip(index + done)) {
      mine.good = false;
      break;
    }
    const double now = now_ns(CLOCK_MONOTONIC);
    latencies[done % kLatencies] = now - last;
    last = now;
  }
  mine.cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  latencies.resize(std::min<std::uint64_t>(done, kLatencies));
  mine.median_ns = median(std::move(latencies));
  mine.done = done;
  _exit(0);
}

void measure(const System& system, std::size_t clients, unsigned milliseconds, Measured& out) {
  auto& shared = *new (shared_pages(sizeof(Shared))) Shared;
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < clients; ++i) {
    const pid_t child = fork();
    if (child == 0) be_client(system, shared, i);
    if (child > 0) children.push_back(child);
  }
  while (shared.ready.load() < children.size()) usleep(200);
  const double cpu = system.peer->cpu_ns(), wall = now_ns(CLOCK_MONOTONIC);
  shared.go.store(true);
  usleep(milliseconds * 1000);
  shared.over.store(true);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  const double wall_took = now_ns(CLOCK_MONOTONIC) - wall;
  const double server_took = system.peer->cpu_ns() - cpu;

  double decisions = 0, client_cpu = 0;
  std::vector<double> medians;
  for (std::size_t i = 0; i < clients; ++i) {
    out.good = out.good && shared.client[i].good && children.size() == clients;
    decisions += static_cast<double>(shared.client[i].done) * system.decisions;
    client_cpu += shared.client[i].cpu_ns;
    medians.push_back(shared.client[i].median_ns);
  }
  if (decisions > 0) {
    out.median_ns.push_back(median(medians));
    out.wall_ns.push_back(wall_took / decisions);
    out.client_cpu_ns.push_back(client_cpu / decisions);
    out.server_cpu_ns.push_back(server_took / decisions);
  }
  release_pages(&shared, sizeof(Shared));
}

/// Ratio round by round, as everywhere.
double ratio_of_lists(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

/// The lines of one number of clients: each system, then what is compared.
void figures_of(const std::vector<System>& systems, const std::vector<Measured>& m,
                std::size_t clients, std::vector<Figure>& out) {
  enum { kEcho, kBigEcho, kAsk, kBatch, kEvalsha };
  const std::string with = clients == 1 ? "1 client" : std::to_string(clients) + " clients";
  for (std::size_t i = 0; i < systems.size(); ++i) {
    const auto line = [&](const char* what, const std::vector<double>& ns) {
      out.push_back({"R", std::string(systems[i].name) + ", " + with + ", " + what, median(ns),
                     median(ns), 0, "", 0});
    };
    line("round trip p50", m[i].median_ns);
    line("wall per decision", m[i].wall_ns);
    line("CPU of the client", m[i].client_cpu_ns);
    line("CPU of the server", m[i].server_cpu_ns);
  }
  const auto trip_of = [&](int i) {
    std::vector<double> ns = m[i].median_ns;
    for (double& one : ns) one /= systems[i].decisions;
    return ns;
  };
  const auto compare = [&](const char* id, int of, int to, bool batch, double must, double gate) {
    // One client by its median round trip, which a crowded machine disturbs least.
    const std::vector<double> mine = clients == 1 ? trip_of(of) : m[of].wall_ns;
    const std::vector<double> theirs = clients == 1 ? trip_of(to) : m[to].wall_ns;
    // A batch is better by as much as it takes less.
    const double ratio = batch ? ratio_of_lists(theirs, mine) : ratio_of_lists(mine, theirs);
    // The gate holds what is reached where the bound is not: bench/README.md.
    const std::string suffix = clients == 1 ? "" : "c" + std::to_string(clients);
    out.push_back({id + suffix, std::string(systems[of].name) + ", " + with, median(mine),
                   median(mine), ratio, systems[to].name, clients == 1 ? must : 0, batch,
                   clients == 1 ? gate : 0});
  };
  if (systems.size() > kEvalsha) compare("R1", kAsk, kEvalsha, false, 0.4, 0.7);
  compare("R1e", kAsk, kEcho, false, 1.4, 1.5);
  if (systems.size() > kEvalsha) compare("R3", kBatch, kEvalsha, true, 20, 0);
  compare("R3e", kBatch, kBigEcho, true, 0.4, 0.28);
}

}  // namespace

std::vector<Figure> round_trip_figures(const Plan& plan) {
  const Peer echo = Peer::echo(), redis = Peer::redis();
  const Peer daemon = Peer::daemon(program_beside("cutwaterd").c_str(), kAskConfig);
  if (echo.pid() <= 0 || daemon.pid() <= 0) return {};
  std::vector<System> systems = {
      {"echo of 64 bytes", &echo, [&] { return echo_client(echo, kAskBytes); }, 1},
      {"echo of 2 KiB", &echo, [&] { return echo_client(echo, kBatchBytes); }, kBatchKeys},
      {"daemon, one key", &daemon, [&] { return ask_client(daemon); }, 1},
      {"daemon, 64 keys a frame", &daemon, [&] { return batch_client(daemon); }, kBatchKeys},
  };
  if (redis.pid() > 0) {
    const auto command = [&redis](RedisCommand which) {
      return [&redis, which] { return redis_client(redis, which); };
    };
    systems.push_back({"Redis EVALSHA", &redis, command(RedisCommand::Evalsha), 1});
    systems.push_back({"Redis EVALSHA, bare", &redis, command(RedisCommand::BareEvalsha), 1});
    systems.push_back({"Redis INCR", &redis, command(RedisCommand::Incr), 1});
    systems.push_back({"Redis PING", &redis, command(RedisCommand::Ping), 1});
  }
  std::vector<Figure> out;
  for (const std::size_t clients : {std::size_t{1}, std::size_t{8}, kMostClients}) {
    std::vector<Measured> measured(systems.size());
    // Lines with a bound get more rounds: those that fell into a pause of the machine are outvoted.
    const int rounds = plan.quick ? (clients == 1 ? 11 : 3) : (clients == 1 ? 15 : 9);
    const unsigned milliseconds = plan.quick ? 40 : 200;
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < systems.size(); ++i) {
        measure(systems[i], clients, milliseconds, measured[i]);
      }
    }
    for (std::size_t i = 0; i < systems.size(); ++i) {
      if (!measured[i].good) {
        std::fprintf(stderr, "cutwater-bench: %s: not every answer was right\n", systems[i].name);
        return {};
      }
    }
    figures_of(systems, measured, clients, out);
  }
  return out;
}

}  // namespace cutwater::bench
