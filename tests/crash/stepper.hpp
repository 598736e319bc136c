// SPDX-License-Identifier: Apache-2.0
// Stepper: a child process that runs one operation instruction by instruction under ptrace, so that
// a test can stop or kill it between any two of them.
//
// The child is stopped right before the operation and right after it, by a breakpoint each; what
// lies between is the operation as it ships. Where ptrace is not permitted, unavailable() says so.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "stress/world.hpp"

namespace cutwater::test {

class Stepper {
 public:
  /// Forks a child that stops right before `operation`.
  explicit Stepper(const std::function<void()>& operation);
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;
  /// Kills the child when it still lives.
  ~Stepper() { kill(); }

  /// Executes one instruction. False: the operation is over.
  bool step();
  /// Executes that many, which the operation is known to have.
  void step_over(std::uint64_t instructions);
  /// Lets the operation run to its end.
  void finish();
  /// SIGKILL, here and now; gone when this returns.
  void kill();

  /// Empty, or why this system does not let us trace a child.
  static std::string unavailable();

 private:
  void wait_for_stop();

  pid_t child_ = -1;
  bool over_ = false;
};

/// One mutating operation and what must hold when its process was killed anywhere within it.
struct Operation {
  std::string name;
  std::function<void(World&)> prepare;                   ///< the state it starts from
  std::function<void(World&)> run;                       ///< in the child
  std::function<void(World&, bool finished)> recover;    ///< somebody else goes on; has the EXPECTs
  std::function<void(World&)> before = {};               ///< private things, anew for each child
};

struct KillReport {
  std::uint64_t instructions = 0;      ///< of the operation
  std::uint64_t killed = 0;            ///< children killed, one at each instruction
  std::uint64_t frozen = 0;            ///< instructions at which the memory was examined in place
};

/// Instructions up to which a child is killed at every single one; each needs a child of its own,
/// stepped to that place. Longer operations are stepped once: at every instruction the memory is
/// what a kill there leaves behind, is recovered from and put back; and some children are killed at
/// places spread over the whole, at most kSpreadKills and about kSpreadSteps instructions together.
inline constexpr std::uint64_t kKillEverywhere = 450;
inline constexpr std::uint64_t kSpreadKills = 16;
inline constexpr std::uint64_t kSpreadSteps = 40'000;

/// Kills the operation everywhere. Stops at the first failed expectation. Prints the counts.
KillReport kill_everywhere(World& world, const Operation& operation);

}  // namespace cutwater::test
