// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_users.hpp"

#include <algorithm>

#include "base/guard.hpp"

namespace cutwater::rule {
namespace {

constexpr std::uint32_t kQuarterPpm = 250'000;

std::uint64_t bad_of(BreakerReason reason, const UserCounts& user) noexcept {
  return reason == BreakerReason::SlowRate ? user.slow : user.failures;
}

}  // namespace

UserCounts operator+(const UserCounts& a, const UserCounts& b) noexcept {
  return {a.calls + b.calls, a.failures + b.failures, a.slow + b.slow, a.order,
          a.present || b.present};
}

bool is_healthy(const BreakerNumbers& n, BreakerReason reason, const UserCounts& rest) noexcept {
  if (!guarded(Guard::BreakerRestHealthy)) return true;
  if (rest.calls == 0) return false;
  const std::uint32_t ppm = reason == BreakerReason::SlowRate ? n.slow_ppm : n.failure_ppm;
  const std::uint64_t bad = bad_of(reason, rest);
  if (ppm == kOffPpm) return bad * kPpm < std::uint64_t{kQuarterPpm} * rest.calls;
  return 2 * bad * kPpm < std::uint64_t{ppm} * rest.calls;
}

UsersVerdict judge_users(const BreakerNumbers& n, BreakerReason reason,
                         std::span<const UserCounts> users) noexcept {
  const auto count = static_cast<std::uint32_t>(
      std::count_if(users.begin(), users.end(), [](const UserCounts& u) { return u.present; }));
  const std::uint32_t needed = needed_users(n, count);
  if (count < kUsersThatCount || needed < 2) return {};
  UsersVerdict verdict;
  std::uint32_t left_out = 0;
  for (std::uint32_t taken = 1; taken < needed; ++taken) {
    std::size_t worst = users.size();
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (!users[i].present || (left_out >> i & 1) != 0) continue;
      const auto bad = bad_of(reason, users[i]);
      const bool more = worst == users.size() || bad > bad_of(reason, users[worst]) ||
                        (bad == bad_of(reason, users[worst]) &&
                         users[i].order < users[worst].order);
      if (more) worst = i;
    }
    if (worst == users.size()) return {};            // everybody would be left out
    left_out |= 1u << worst;
    if (bad_of(reason, users[worst]) != 0) verdict.alone |= 1u << worst;
  }
  UserCounts rest;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (users[i].present && (left_out >> i & 1) == 0) rest = rest + users[i];
  }
  if (!is_healthy(n, reason, rest)) return {};
  verdict.host = false;
  return verdict;
}

std::uint32_t own_run(const BreakerNumbers& n) noexcept {
  return std::clamp(n.minimum, kMinOwnRun, kMaxOwnRun);
}

}  // namespace cutwater::rule
