// SPDX-License-Identifier: Apache-2.0
#include "crash/stepper.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/fork_page.hpp"

namespace cutwater::test {
namespace {

constexpr int kNoTrace = 77;             // exit code of a child that may not be traced
constexpr std::uint64_t kEndless = 20'000'000;

[[gnu::noinline]] void run_between_breakpoints(const std::function<void()>& operation) {
  asm volatile("int3" ::: "memory");
  operation();
  asm volatile("int3" ::: "memory");
}

// Parent and child take turns at every instruction: on one processor that is a switch, on two it is
// a wake-up each time (five times slower).
void stay_on_one_processor() {
  static const bool once = [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  }();
  (void)once;
}

}  // namespace

Stepper::Stepper(const std::function<void()>& operation) {
  stay_on_one_processor();
  child_ = fork();
  if (child_ == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNoTrace);
    run_between_breakpoints(operation);
    _exit(0);
  }
  wait_for_stop();
}

void Stepper::wait_for_stop() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFSTOPPED(status)) {
    child_ = -1;
    over_ = true;
  } else if (WSTOPSIG(status) != SIGTRAP) {
    std::fprintf(stderr, "the stepped operation got signal %d\n", WSTOPSIG(status));
    std::abort();
  }
}

bool Stepper::step() {
  if (over_) return false;
  ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr);
  wait_for_stop();
  if (child_ < 0) return false;
  // A breakpoint is the kernel's own signal; a step is a trace, behind a system call a TRAP_BRKPT.
  siginfo_t info{};
  ptrace(PTRACE_GETSIGINFO, child_, nullptr, &info);
  over_ = info.si_code == SI_KERNEL;
  return !over_;
}

void Stepper::step_over(std::uint64_t instructions) {
  for (std::uint64_t i = 0; i < instructions && child_ > 0; ++i) {
    ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr);
    wait_for_stop();
  }
}

void Stepper::finish() {
  if (over_) return;
  ptrace(PTRACE_CONT, child_, nullptr, nullptr);
  wait_for_stop();
  over_ = true;
}

void Stepper::kill() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {}
  child_ = -1;
}

std::string Stepper::unavailable() {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(errno == 0 ? kNoTrace : errno);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return std::string("ptrace of an own child is not permitted here: ") +
         std::strerror(WIFEXITED(status) ? WEXITSTATUS(status) : EPERM);
}

namespace {

bool recovered(World& world, const Operation& operation, std::uint64_t instruction, bool finished) {
  SCOPED_TRACE(operation.name + ", killed after instruction " + std::to_string(instruction) +
               (finished ? " (finished)" : ""));
  operation.recover(world, finished);
  return !testing::Test::HasFailure();
}

// Steps one child to its end; at every instruction the memory is recovered from and put back.
std::uint64_t freeze_everywhere(World& world, const Operation& operation, KillReport& report) {
  if (operation.before) operation.before(world);
  Stepper stepper([&] { operation.run(world); });
  std::uint64_t instruction = 0;
  Snapshot last = world.save();
  for (bool more = true; more && instruction < kEndless;) {
    more = stepper.step();
    ++instruction;
    ++report.frozen;
    // The same bytes as an instruction ago: a kill here leaves what was just recovered from.
    if (more && instruction > 1 && world.same(last)) continue;
    last = world.save();
    if (!recovered(world, operation, instruction, !more)) break;
    world.restore(last);
  }
  EXPECT_LT(instruction, kEndless) << operation.name << " does not end";
  return instruction;
}

bool kill_at(World& world, const Operation& operation, const Snapshot& start, std::uint64_t at,
             KillReport& report) {
  world.restore(start);
  if (operation.before) operation.before(world);
  {
    Stepper stepper([&] { operation.run(world); });
    stepper.step_over(at);
  }
  ++report.killed;
  return recovered(world, operation, at, at >= report.instructions);
}

}  // namespace

KillReport kill_everywhere(World& world, const Operation& operation) {
  KillReport report;
  process_life();                      // what is made once per process is made before the fork
  operation.prepare(world);
  const Snapshot start = world.save();
  report.instructions = freeze_everywhere(world, operation, report);
  const bool everywhere = report.instructions <= kKillEverywhere;
  const std::uint64_t kills =
      std::clamp<std::uint64_t>(2 * kSpreadSteps / report.instructions, 3, kSpreadKills);
  const std::uint64_t gap = everywhere ? 1 : report.instructions / kills;
  for (std::uint64_t at = 1; at <= report.instructions && !testing::Test::HasFailure(); at += gap) {
    if (!kill_at(world, operation, start, at, report)) break;
  }
  world.restore(start);
  std::printf("%-52s %6lu instructions, examined at %6lu, killed at %5lu%s\n",
              operation.name.c_str(), static_cast<unsigned long>(report.instructions),
              static_cast<unsigned long>(report.frozen), static_cast<unsigned long>(report.killed),
              everywhere ? " (every one)" : "");
  std::fflush(stdout);
  return report;
}

}  // namespace cutwater::test
