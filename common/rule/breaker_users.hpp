// SPDX-License-Identifier: Apache-2.0
// One sick process must not open a breaker for everybody: who opens when a threshold is reached.
//
// A worker with an expired token or no descriptors left fails every call of its own; shared with
// the others, its failures would reach their threshold too. From three users on each has counts of
// its own (shm/breaker/user.cpp), and what a breaker does then is decided here:
//   - the m - 1 users with the most failures are left out (m: needed_users());
//   - the rest called at all and is healthy: those left out open for themselves, nobody else;
//   - else the breaker opens for the host. A dependency that is down fails for everybody, so the
//     host opens on the very same outcome as without this rule.
//   - a user whose last calls all failed beside a healthy rest opens for itself too, although its
//     share is too small to reach the threshold.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <span>

#include "rule/breaker_rule.hpp"

namespace cutwater::rule {

/// Users with counts of their own; further ones share the last one's.
inline constexpr std::uint32_t kMaxBreakerUsers = 32;
/// From this many users on each has its own counts.
inline constexpr std::uint32_t kUsersThatCount = 3;
/// A run of failures shorter than this says nothing, whatever the minimum number of calls.
inline constexpr std::uint32_t kMinOwnRun = 5;
inline constexpr std::uint32_t kMaxOwnRun = 65'535;   ///< what a run saturates at

/// What one user did in the present and the previous turn of the window.
struct UserCounts {
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
  std::uint64_t slow = 0;
  std::uint64_t order = 0;           ///< of two with as many failures the lower one is left out
  bool present = false;              ///< false: this place has no user
};
UserCounts operator+(const UserCounts& a, const UserCounts& b) noexcept;

/// Who opens when the window says `reason`.
struct UsersVerdict {
  bool host = true;                  ///< the breaker, for everybody
  std::uint32_t alone = 0;           ///< not the host: bit i = user i, for itself
};
/// `users`: at most kMaxBreakerUsers. Of those left out only one that failed (for SlowRate: was
/// slow) opens for itself.
UsersVerdict judge_users(const BreakerNumbers& numbers, BreakerReason reason,
                         std::span<const UserCounts> users) noexcept;

/// True when these called and their rate lies below half of the threshold that `reason` is about;
/// 25 % where that is off.
bool is_healthy(const BreakerNumbers& numbers, BreakerReason reason,
                const UserCounts& rest) noexcept;

/// Failures in a row after which a user beside a healthy rest opens for itself.
std::uint32_t own_run(const BreakerNumbers& numbers) noexcept;

}  // namespace cutwater::rule
