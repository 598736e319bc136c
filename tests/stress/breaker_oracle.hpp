// SPDX-License-Identifier: Apache-2.0
// A circuit breaker as the rules tell it, one call after the other: lists instead of rings, plain
// fields instead of words. It shares no code and no header with the library, so that a mistake in
// the one is not a mistake in the other.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace cutwater::test {

struct OracleSettings {
  bool time = false;
  std::int64_t window = 10;          ///< COUNT: calls; TIME: slots
  std::int64_t slot_ns = 0;          ///< TIME
  std::int64_t span_slot_ns = 0;     ///< COUNT: a tenth of the min-span, 0 = off
  std::int64_t minimum = 5;
  std::int64_t failure_ppm = 500'000, slow_ppm = -1;     ///< -1 = off
  std::int64_t slow_ns = 100'000'000;
  std::int64_t failure_count = 0, consecutive = 0;
  bool only_on_failure = false;
  std::int64_t wait_ns = 1'000'000'000, multiplier_ppm = 1'000'000, max_wait_ns = 0;
  bool exclusive = true;
  std::int64_t max_open_for_ns = 600'000'000'000;
  std::int64_t probes = 2;
  enum { Rate, RateOver, AllSucceed, Successes } decision = Rate;
  std::int64_t decision_value = 0;
  std::int64_t half_open_max_ns = 0;
  bool closes_after_max = false, automatic = false;
  std::int64_t probe_timeout_ns = 30'000'000'000;
  bool release_late = false, ignored_is_success = false, show_late = false;
  bool hanging = false;              ///< calls out for longer than slow_ns count as slow ones
  bool ramp = false;
  std::vector<std::int64_t> ramp_percent{25, 50, 100};
  std::int64_t ramp_ns = 5'000'000'000;
  /// How many users must see it before the host opens: -1 = one is enough and nobody is looked at
  /// alone, 0 = two from three users on, else this many.
  std::int64_t min_users = -1;
};

class BreakerOracle {
 public:
  enum State { Closed, Open, HalfOpen, ForcedOpen, Disabled, MetricsOnly };
  enum Steer { ForceOpen, Disable, Metrics, Auto, Reset, ToOpen, ToHalfOpen, ToClosed };
  enum How { Success, Failure, Ignored, Cancelled };
  enum Recorded { Counted, Nothing, Stale };

  explicit BreakerOracle(OracleSettings settings) : s_(std::move(settings)) {
    cells_.resize(static_cast<std::size_t>(s_.probes));
  }

  struct Answer {
    bool granted = false;
    bool probing = false;            ///< refused: by half-open or a ramp
    std::int64_t retry_ns = 0;       ///< -1: not by itself
    std::uint64_t call = 0;          ///< granted: its number
  };
  Answer enter(int process, std::int64_t now, std::int64_t deadline);
  Recorded outcome(std::uint64_t call, How how, std::int64_t now, bool open_now,
                   std::int64_t open_for_ns);
  void tick(std::int64_t now);
  /// It uses the breaker from now on; of two users the one with the lower order is left out first.
  void join(int process, std::int64_t order) { users_[process] = User(order); }
  void kill(int process) {
    for (Cell& cell : cells_) cell.dead |= cell.process == process;
    for (auto& [number, call] : calls_) call.tracked &= call.process != process;
    ramp_calls_.erase(process);
    users_.at(process).gone = true;                  // until the next tick its counts stand
  }
  /// 0 done, 1 no change, 2 not allowed
  int steer(Steer what, std::int64_t for_ns, std::int64_t now);
  void reload(const OracleSettings& settings, std::int64_t now);

  struct Window { std::int64_t calls = 0, failures = 0, slow = 0; };
  Window window(std::int64_t now) const;

  /// What one user did in the present and the previous turn, and what it has open for itself.
  struct User {
    explicit User(std::int64_t of = 0) : order(of) {}
    std::int64_t order;
    std::map<std::int64_t, Window> turns;            ///< of this epoch
    std::int64_t run = 0;                            ///< failures in a row
    bool open = false, probing = false;
    std::int64_t attempts = 0, deadline = 0;
    std::uint64_t probe = 0;                         ///< its own probe, by number
    bool gone = false;
  };
  const std::map<int, User>& users() const { return users_; }
  Window counts_of(const User& user, std::int64_t now) const;
  std::int64_t local_faults = 0;                     ///< openings for one user, told each

  State state = Closed;
  std::int64_t epoch = 1, attempts = 0, deadline = 0, transitions = 0;
  bool ramping = false;
  std::int64_t held() const;
  std::int64_t spent() const;

 private:
  struct Outcome { bool failed, slow; std::int64_t slot, span_slot; };
  struct Cell {
    enum { Free, Held, Spent } state = Free;
    std::int64_t epoch = 0, until = 0;
    int process = -1;
    bool dead = false, failed = false, slow = false;
    std::uint64_t call = 0;
  };
  enum Kind { InWindow, InCell, Measured, Unrecorded, InView };
  enum Reason { None, FailureRate, SlowRate, FailureCount, Consecutive };
  struct Call {
    Kind kind;
    std::int64_t epoch, start;
    std::size_t cell;
    int process;
    bool tracked;                    ///< counts while it is out
  };

  void move(State next, std::int64_t attempts_next, std::int64_t deadline_next, bool ramp = false);
  std::int64_t wait(std::int64_t attempts_now) const;
  bool is_over(std::int64_t now) const {
    return s_.exclusive ? now > deadline : now >= deadline;
  }
  void open(std::int64_t attempts_next, std::int64_t now) {
    move(Open, attempts_next, now + wait(attempts_next));
  }
  void close_by_probes(std::int64_t now) {
    move(Closed, 0, s_.ramp ? now + s_.ramp_ns : 0, s_.ramp);
  }
  bool step_due(std::int64_t now);
  void settle(std::int64_t now);
  bool lapse(Cell& cell, std::int64_t now);
  Answer grant(Kind kind, int process, std::int64_t now, std::size_t cell = 0);
  std::int64_t out_too_long(std::int64_t now) const;
  /// True: they opened it.
  bool judge_calls_out(std::int64_t now);
  Recorded record(const Outcome& outcome, int process, std::int64_t now, bool judge);
  Reason opens(const Outcome& last, std::int64_t now) const;

  // breaker_oracle_users.cpp: one sick process does not open it for everybody.
  std::int64_t turn(std::int64_t now) const;
  std::int64_t needed_users() const;
  bool is_healthy(Reason reason, const Window& rest) const;
  Window counts_with_calls_out(const User& user, int process, Reason reason,
                               std::int64_t now) const;
  /// True: it is not everybody's matter; whose it is has it open for himself.
  bool some_only(Reason reason, std::int64_t now);
  void count_for(int process, const Outcome& outcome, std::int64_t now);
  void judge_run(int process, std::int64_t now);
  void open_for(User& user, std::int64_t now);
  void open_again(User& user, std::int64_t now);
  /// True: what it has open for itself answers.
  bool enter_alone(int process, std::int64_t now, std::int64_t probe_deadline, Answer& answer);
  void end_alone(const Call& call, std::uint64_t number, bool counts, bool bad, std::int64_t now);

  OracleSettings s_;
  std::vector<Cell> cells_;
  std::deque<Outcome> kept_;         ///< of this epoch, newest last, as far as a window may reach
  std::deque<Outcome> in_span_;      ///< of this epoch, for the min-span
  std::int64_t run_ = 0;
  bool tripped_ = false;             ///< OPEN out of CLOSED: kept_ is of the epoch before
  std::map<std::uint64_t, Call> calls_;
  std::map<int, User> users_;
  std::int64_t recorded_ = 0;        ///< outcomes ever recorded: COUNT's turns
  std::map<int, std::pair<std::int64_t, std::int64_t>> ramp_calls_;   ///< process -> epoch, j
  std::uint64_t next_call_ = 1;
};

}  // namespace cutwater::test
