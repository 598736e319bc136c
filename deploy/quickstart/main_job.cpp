// SPDX-License-Identifier: Apache-2.0
#include "main_job.hpp"

#include <cstdio>
#include <ctime>
#include <vector>

#include <cutwater/client.hpp>

#include "conductor.hpp"
#include "ctl/replay.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"
#include "processes.hpp"
#include "support/exact_limiter.hpp"

namespace cutwater::quickstart {
namespace {

constexpr int kIdleMs = 500;
constexpr std::size_t kShownDifferences = 10;

double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// One worker: takes requests while there are any, decides them in shared memory.
int work(const SharedLog& log, const JobAsk& ask, std::uint32_t number) {
  ClientOptions options;
  options.name = "quickstart-worker-" + std::to_string(number);
  auto client = Client::open(ask.address, options);
  if (!client) return log.fail("worker: " + client.error().text()), 1;
  auto limit = client->limit(ask.limit);
  if (!limit) return log.fail("worker: " + limit.error().text()), 1;

  Control& control = log.control();
  std::uint64_t decided = 0;
  for (;;) {
    // acquire: pairs with the conductor's release, so the clock's step is seen before a decision.
    const std::uint32_t until = control.open_until.load(std::memory_order_acquire);
    std::uint32_t at = control.cursor.load(std::memory_order_relaxed);
    if (at >= until) {
      if (at >= log.size()) break;
      futex_wait(control.open_until, until, kIdleMs);
      continue;
    }
    // relaxed: the cursor only deals out numbers; what they name was there before the fork.
    if (!control.cursor.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;

    Request& request = log.request(at);
    const Decision decision = limit->try_acquire(log.client(request.client));
    const Verdict verdict = decision.allowed() ? Verdict::Admitted : Verdict::Refused;
    const bool overflowed = decision.overflow() || decision.degraded();
    request.verdict = static_cast<std::uint8_t>(
        static_cast<int>(verdict) | (overflowed ? static_cast<int>(Verdict::Overflowed) : 0));
    ++decided;
    // PUBLISHES the verdict to the conductor.
    if (control.done.fetch_add(1, std::memory_order_release) + 1 == until) {
      futex_wake(control.done);
    }
  }
  control.decided[number] = decided;
  return 0;
}

struct Sum {
  std::uint64_t requests = 0, admitted = 0, expected = 0;
};

struct Comparison {
  std::vector<Sum> sums;  // by client
  std::uint64_t admitted = 0, overflowed = 0;
  std::uint64_t differences = 0;  // clients whose sums differ after some stamp
  std::string text;               // the first of them
};

/// The same requests through the exact limiter; the sums of each client must agree after each
/// stamp.
Comparison compare(const SharedLog& log, const Policy& policy) {
  Comparison out;
  out.sums.resize(log.clients());
  std::vector<bool> differs(log.clients());
  std::vector<test::ExactBucket> exact(
      log.clients(), test::ExactBucket(policy.rate_count, policy.rate_period_ns, policy.burst));
  for (std::uint32_t begin = 0; begin < log.size();) {
    const std::uint32_t end = log.end_of_group(begin);
    for (std::uint32_t i = begin; i < end; ++i) {
      const Request& request = log.request(i);
      Sum& sum = out.sums[request.client];
      const bool ours = (request.verdict & static_cast<int>(Verdict::Admitted)) != 0;
      const auto now = static_cast<std::uint64_t>(request.at_ns);
      ++sum.requests;
      sum.admitted += ours ? 1 : 0;
      sum.expected += exact[request.client].take(now, 1).allowed ? 1 : 0;
      out.admitted += ours ? 1 : 0;
      out.overflowed += (request.verdict & static_cast<int>(Verdict::Overflowed)) != 0 ? 1 : 0;
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t client = log.request(i).client;
      const Sum& sum = out.sums[client];
      if (sum.admitted == sum.expected || differs[client]) continue;
      differs[client] = true;
      if (++out.differences > kShownDifferences) continue;
      out.text += "  " + ctl::escape_short(log.client(client)) + ": admitted " +
                  std::to_string(sum.admitted) + ", exact " + std::to_string(sum.expected) +
                  " of " + std::to_string(sum.requests) + " requests, " +
                  ctl::duration_text(static_cast<std::uint64_t>(log.request(i).at_ns)) +
                  " behind the first\n";
    }
    begin = end;
  }
  return out;
}

void print_line(const char* word, const std::string& text) {
  std::printf("%-10s %s\n", word, text.c_str());
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  return std::to_string(part) + " (" + ctl::permille_text(part * 1000 / whole) + ")";
}

void print_most_refused(const SharedLog& log, const Comparison& result, bool colour) {
  std::vector<ctl::ClientSum> clients;
  for (std::uint32_t i = 0; i < log.clients(); ++i) {
    const Sum& sum = result.sums[i];
    clients.push_back({std::string(log.client(i)), sum.requests, sum.requests - sum.admitted});
  }
  const auto top = ctl::most_refused_of(std::move(clients), ctl::kTopClients);
  if (!top.empty()) std::printf("\n%s", ctl::most_refused_text(top, colour).c_str());
}

int fail(const std::string& why) {
  std::fprintf(stderr, "cutwater-quickstart: %s\n", why.c_str());
  return 1;
}

}  // namespace

int run_main_job(const JobAsk& ask, SharedLog& log) {
  auto conductor = Conductor::connect(ask.address);
  if (!conductor) return fail(conductor.error().text());
  const auto policy = conductor->policy(ask.limit);
  if (!policy) return fail(policy.error().text());
  if (const auto settled = conductor->settle(*policy); !settled) {
    return fail(settled.error().text());
  }

  const double begun = seconds_now();
  Processes workers;
  const auto started = workers.start(ask.workers, [&](std::uint32_t number) {
    conductor->abandon();
    return work(log, ask, number);
  });
  if (!started) return fail(started.error().text());
  if (const auto ran = conductor->run(log, workers); !ran) return fail(ran.error().text());
  if (!workers.wait()) return fail(workers.ended(false));
  const double seconds = seconds_now() - begun;

  const Comparison result = compare(log, *policy);
  const std::uint64_t requests = log.size();
  print_line("limit", ask.limit + ": " +
                          ctl::rate_text(policy->rate_count, policy->rate_period_ns) + ", burst " +
                          std::to_string(policy->burst));
  std::string shares;
  for (std::uint32_t i = 0; i < ask.workers; ++i) {
    shares += (i == 0 ? "" : " + ") + std::to_string(log.control().decided[i]);
  }
  print_line("processes", std::to_string(ask.workers) + ", which decided " + shares);
  print_line("requests", std::to_string(requests));
  print_line("admitted", share_text(result.admitted, requests));
  print_line("refused", share_text(requests - result.admitted, requests));
  print_line("clients", std::to_string(log.clients()));
  char text[80];
  std::snprintf(text, sizeof text, "%.2f, with %llu steps of the clock", seconds,
                static_cast<unsigned long long>(conductor->steps()));
  print_line("seconds", text);
  print_most_refused(log, result, ask.colour);
  std::printf("\n");
  if (result.overflowed > 0) {
    print_line("no place", std::to_string(result.overflowed) +
                               " decisions were not made by the client's own bucket; raise "
                               "capacity.keys");
  }
  if (result.differences > 0) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s", result.text.c_str());
    return fail(std::to_string(result.differences) + " clients differ from the exact limiter");
  }
  print_line("exact", "equal to the exact limiter for each of " + std::to_string(log.clients()) +
                          " clients after each of " + std::to_string(conductor->steps() - 1) +
                          " stamps");
  return 0;
}

}  // namespace cutwater::quickstart
