// SPDX-License-Identifier: Apache-2.0
#include <cutwater/client.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <new>

#include "outage.hpp"
#include "peers.hpp"
#include "reference.hpp"

namespace cutwater::bench {
namespace {

constexpr std::string_view kBreakers =
    "breakers:\n"
    "  dependency:\n"
    "    sliding-window-type: COUNT_BASED\n"
    "    sliding-window-size: 20\n"
    "    minimum-number-of-calls: 10\n"
    "    failure-rate-threshold: 50\n"
    "    wait-duration-in-open-state: 1s\n"
    "    permitted-number-of-calls-in-half-open-state: 2\n";

constexpr int kPaceMs = 20;  // between two calls of a worker
constexpr int kHealthyMs = 500, kBackMs = 1000;
constexpr std::uint32_t kGoodBefore = 25, kGoodAfter = 10;

enum Phase : std::uint32_t { kHealthy, kHanging, kBack, kOver };

/// What all processes of a run share; one line for each worker of each kind.
struct Board {
  std::atomic<std::uint32_t> phase{kHealthy};
  std::int64_t start_ns = 0;
  struct Line {
    std::atomic<std::uint32_t> good[kOver] = {};  // calls begun in each phase
    std::atomic<std::uint32_t> refused{0};        // while it hangs
    std::atomic<std::uint32_t> failed{0};         // it could not begin
    std::uint32_t events = 0;
    OutageEvent event[kMostEvents];
  } line[2 * kMostWorkers];
};

std::int64_t now_us(const Board& board) { return (read_boottime() - board.start_ns) / 1000; }

/// Answers while the phase says so; what comes while it hangs is never answered.
[[noreturn]] void serve_dependency(int listener, const Board& board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int poll_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = listener;
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &wanted);
  std::array<epoll_event, 64> ready;
  char byte = 0;
  for (;;) {
    const int n = epoll_wait(poll_fd, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = ready[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        wanted.data.fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (wanted.data.fd >= 0) epoll_ctl(poll_fd, EPOLL_CTL_ADD, wanted.data.fd, &wanted);
      } else if (read(fd, &byte, 1) <= 0) {
        close(fd);
      } else if (board.phase.load() != kHanging) {
        (void)!send(fd, &byte, 1, MSG_NOSIGNAL);
      }
    }
  }
}

/// A worker's way to the dependency: one connection, given up with a call that timed out.
class Dependency {
 public:
  Dependency(const Peer& peer, int timeout_ms) : peer_(peer), timeout_ms_(timeout_ms) {}

  bool call() {
    if (fd_ < 0) fd_ = connect_to(peer_.socket());
    char byte = 'x';
    pollfd answer{fd_, POLLIN, 0};
    const bool good = fd_ >= 0 && send(fd_, &byte, 1, MSG_NOSIGNAL) == 1 &&
                      poll(&answer, 1, timeout_ms_) == 1 && read(fd_, &byte, 1) == 1;
    if (!good && fd_ >= 0) {
      close(fd_);
      fd_ = -1;
    }
    return good;
  }

 private:
  const Peer& peer_;
  const int timeout_ms_;
  int fd_ = -1;
};

void note(Board::Line& line, std::int64_t at_us, std::int64_t took_us, What what) {
  if (line.events >= kMostEvents) return;
  line.event[line.events++] = {static_cast<std::uint32_t>(at_us),
                               static_cast<std::uint32_t>(took_us), what};
}

/// `daemon`: whose breaker it shares; nullptr: one of its own.
[[noreturn]] void work(const Peer* daemon, Dependency dependency, Board& board, Board::Line& line) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ClientOptions quiet;
  quiet.log = [](std::string_view) {};
  auto client = daemon != nullptr ? Client::open("unix:" + daemon->socket(), std::move(quiet))
                                  : Client::in_memory(std::string(kBreakers));
  auto breaker = client ? client->breaker("dependency") : Result<Breaker>(client.error());
  if (!breaker) {
    std::fprintf(stderr, "cutwater-bench: %s\n", breaker.error().text().c_str());
    line.failed.store(1);
    _exit(1);
  }
  for (std::uint32_t phase = kHealthy; (phase = board.phase.load()) != kOver;) {
    const std::int64_t begin = now_us(board);
    if (Entered entered = breaker->try_enter()) {
      const bool good = dependency.call();
      if (good)
        entered->succeeded();
      else
        entered->failed("timeout");
      note(line, begin, now_us(board) - begin, good ? What::Good : What::TimeOut);
      if (good) line.good[phase].fetch_add(1);
    } else {
      const bool open = entered.refusal().reason() == Reason::Open;
      note(line, begin, 0, open ? What::Refused : What::Probing);
      if (open && phase == kHanging) line.refused.fetch_add(1);
    }
    poll(nullptr, 0, kPaceMs);
  }
  _exit(0);
}

template <class Seen>
bool all_lines(const Board& board, int workers, Seen seen) {
  for (int i = 0; i < 2 * workers; ++i) {
    if (!seen(board.line[i])) return false;
  }
  return true;
}

/// Waits until it was seen by all, `at_least` long. False: a worker failed, or it takes too long.
template <class Seen>
bool pass(const Board& board, int workers, int at_least_ms, Seen seen) {
  const std::int64_t from = now_us(board) / 1000;
  for (;;) {
    const std::int64_t now = now_us(board) / 1000;
    const bool failed =
        !all_lines(board, workers, [](const Board::Line& line) { return line.failed.load() == 0; });
    if (failed) return false;
    if (now - from >= at_least_ms && all_lines(board, workers, seen)) return true;
    if (now >= kGiveUpMs) {
      std::fprintf(stderr, "cutwater-bench: not every worker has seen it after %d s\n",
                   kGiveUpMs / 1000);
      return false;
    }
    poll(nullptr, 0, 5);
  }
}

/// Leads the run through its phases.
bool conduct(Board& board, const OutagePlan& plan, Outage& out) {
  const auto enter = [&](Phase phase) {
    board.phase.store(phase);
    return static_cast<std::uint32_t>(now_us(board));
  };
  const bool began = pass(board, plan.workers, kHealthyMs, [](const Board::Line& line) {
    return line.good[kHealthy].load() >= kGoodBefore;
  });
  if (began) out.hangs_us = enter(kHanging);
  const bool refused =
      began && pass(board, plan.workers, plan.hang_ms, [&plan](const Board::Line& line) {
        return !plan.until_all_refused || line.refused.load() > 0;
      });
  if (refused) out.recovers_us = enter(kBack);
  const bool good = refused && pass(board, plan.workers, kBackMs, [](const Board::Line& line) {
                      return line.good[kBack].load() >= kGoodAfter;
                    });
  out.ends_us = enter(kOver);
  return good;
}

void collect(const Board& board, int first, int workers, OutageMode& out) {
  for (int i = 0; i < workers; ++i) {
    const Board::Line& line = board.line[first + i];
    out.lanes.emplace_back(line.event, line.event + line.events);
  }
}

}  // namespace

bool run_outage(const OutagePlan& plan, Outage& out) {
  auto& board = *new (shared_pages(sizeof(Board))) Board;
  board.start_ns = read_boottime();
  const Peer dependency =
      Peer::of("dependency", [&](int listener) { serve_dependency(listener, board); });
  const Peer daemon = Peer::daemon(program_beside("cutwaterd").c_str(), kBreakers);
  bool good = dependency.pid() > 0 && daemon.pid() > 0;
  std::vector<pid_t> workers;
  for (int i = 0; good && i < 2 * plan.workers; ++i) {
    const pid_t worker = fork();
    if (worker == 0) {
      work(i < plan.workers ? nullptr : &daemon, {dependency, plan.timeout_ms}, board,
           board.line[i]);
    }
    if (worker > 0) workers.push_back(worker);
    good = worker > 0;
  }
  good = good && conduct(board, plan, out);
  board.phase.store(kOver);
  for (const pid_t worker : workers) {
    if (!good) kill(worker, SIGKILL);
    waitpid(worker, nullptr, 0);
  }
  out.plan = plan;
  out.own = {"a breaker in each worker", false, {}};
  out.one = {"one breaker for the host", true, {}};
  collect(board, 0, plan.workers, out.own);
  collect(board, plan.workers, plan.workers, out.one);
  release_pages(&board, sizeof(Board));
  return good;
}

}  // namespace cutwater::bench
