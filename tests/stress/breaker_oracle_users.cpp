// SPDX-License-Identifier: Apache-2.0
// The rules of one sick process: from three users on the breaker asks whose failures these are.
#include <algorithm>
#include <vector>

#include "stress/breaker_oracle.hpp"

namespace cutwater::test {

namespace {

BreakerOracle::Window operator+(const BreakerOracle::Window& a, const BreakerOracle::Window& b) {
  return {a.calls + b.calls, a.failures + b.failures, a.slow + b.slow};
}

}  // namespace

std::int64_t BreakerOracle::turn(std::int64_t now) const {
  return s_.time ? now / s_.slot_ns / s_.window : recorded_ / s_.window;
}

std::int64_t BreakerOracle::needed_users() const {
  const auto there = static_cast<std::int64_t>(users_.size());
  if (s_.min_users < 0 || there < 3) return 1;
  return s_.min_users == 0 ? 2 : std::min(s_.min_users, there);
}

BreakerOracle::Window BreakerOracle::counts_of(const User& user, std::int64_t now) const {
  Window sum;
  for (const auto& [at, counts] : user.turns) {
    if (at == turn(now) || at == turn(now) - 1) sum = sum + counts;
  }
  return sum;
}

bool BreakerOracle::is_healthy(Reason reason, const Window& rest) const {
  if (rest.calls == 0) return false;
  std::int64_t threshold = reason == SlowRate ? s_.slow_ppm : s_.failure_ppm;
  threshold = threshold < 0 ? 500'000 : threshold;   // below half of it, or below 25 %
  const std::int64_t bad = reason == SlowRate ? rest.slow : rest.failures;
  return 2 * bad * 1'000'000 < threshold * rest.calls;
}

BreakerOracle::Window BreakerOracle::counts_with_calls_out(const User& user, int process,
                                                           Reason reason,
                                                           std::int64_t now) const {
  Window sum = counts_of(user, now);
  if (reason != SlowRate || !s_.hanging) return sum;
  for (const auto& [number, call] : calls_) {
    const bool out = call.tracked && call.epoch == epoch && now - call.start > s_.slow_ns;
    if (!out || call.process != process) continue;
    ++sum.calls;
    ++sum.slow;
  }
  return sum;
}

bool BreakerOracle::some_only(Reason reason, std::int64_t now) {
  const std::int64_t needed = needed_users();
  if (needed < 2) return false;
  struct Share {
    User* user;
    Window counts;
    std::int64_t bad;
  };
  std::vector<Share> shares;
  for (auto& [process, user] : users_) {
    const Window counts = counts_with_calls_out(user, process, reason, now);
    shares.push_back({&user, counts, reason == SlowRate ? counts.slow : counts.failures});
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.bad != b.bad ? a.bad > b.bad : a.user->order < b.user->order;
  });
  const auto left_out = static_cast<std::size_t>(needed - 1);
  Window rest;
  for (std::size_t i = left_out; i < shares.size(); ++i) rest = rest + shares[i].counts;
  if (!is_healthy(reason, rest)) return false;
  for (std::size_t i = 0; i < left_out; ++i) {
    if (shares[i].bad != 0) open_for(*shares[i].user, now);
  }
  return true;
}

void BreakerOracle::count_for(int process, const Outcome& outcome, std::int64_t now) {
  if (s_.min_users < 0 || users_.size() < 3) return;
  User& user = users_.at(process);
  Window& counts = user.turns[turn(now)];
  ++counts.calls;
  counts.failures += outcome.failed;
  counts.slow += outcome.slow;
  if (!user.open) user.run = outcome.failed ? user.run + 1 : 0;
}

void BreakerOracle::judge_run(int process, std::int64_t now) {
  if (state != Closed || needed_users() < 2) return;
  User& user = users_.at(process);
  const std::int64_t minimum = s_.time ? s_.minimum : std::min(s_.minimum, s_.window);
  if (user.run < std::max<std::int64_t>(minimum, 5)) return;
  Window rest;
  for (const auto& [other, counted] : users_) {
    if (other != process) rest = rest + counts_of(counted, now);
  }
  if (is_healthy(Consecutive, rest)) open_for(user, now);
}

void BreakerOracle::open_for(User& user, std::int64_t now) {
  if (!user.open) open_again(user, now);
}

void BreakerOracle::open_again(User& user, std::int64_t now) {
  user.open = true;
  user.probing = false;
  user.run = 0;
  ++user.attempts;
  user.deadline = now + wait(user.attempts);
  ++local_faults;
}

bool BreakerOracle::enter_alone(int process, std::int64_t now, std::int64_t probe_deadline,
                                Answer& answer) {
  const auto found = users_.find(process);
  if (found == users_.end() || !found->second.open) return false;
  User& user = found->second;
  const bool over = user.probing || !s_.exclusive ? now >= user.deadline : now > user.deadline;
  if (over && user.probing && !s_.release_late) {
    open_again(user, now);
  } else if (over) {
    user.probing = true;
    const std::int64_t most = now + 600'000'000'000;
    user.deadline = probe_deadline > 0 ? std::min(std::max(probe_deadline, now + 1), most)
                                       : now + s_.probe_timeout_ns;
    answer = grant(InView, process, now);
    user.probe = answer.call;
    return true;
  }
  answer.probing = user.probing;
  answer.retry_ns = user.deadline - now + (s_.exclusive && !user.probing ? 1 : 0);
  return true;
}

void BreakerOracle::end_alone(const Call& call, std::uint64_t number, bool counts, bool bad,
                              std::int64_t now) {
  const auto found = users_.find(call.process);
  if (found == users_.end()) return;
  User& user = found->second;
  if (epoch != call.epoch || !user.open || !user.probing || user.probe != number) return;
  if (counts && bad) {
    open_again(user, now);
  } else if (counts) {                               // well again: nothing is held against it
    user = User(user.order);
  } else {
    user.probing = false;
    user.deadline = now - (s_.exclusive ? 1 : 0);
  }
}

}  // namespace cutwater::test
