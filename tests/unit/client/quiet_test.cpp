// SPDX-License-Identifier: Apache-2.0
// No allocation and no system call per decision (P5, L8). Allocations are counted by replacing the
// C library's entry points in this program; of system calls, a filter kills whoever makes one.
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <thread>

#include "unit/client/client_fixture.hpp"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

// The sanitizers bring their own allocator; there the count stays 0 and the test says nothing.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* malloc(std::size_t size) { ++allocations; return __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
}
constexpr bool kCounting = true;
#else
constexpr bool kCounting = false;
#endif

namespace cutwater::test {
namespace {

constexpr char kLimits[] =
    "limits:\n"
    "  api: {rate: 1000/s, burst: 1000}\n"
    "  leased: {rate: 1000/s, burst: 1000, thread-lease: 50}\n"
    "  tiny: {rate: 1/d, burst: 1}\n"
    "breakers:\n"
    "  healthy: {sliding-window-type: COUNT_BASED, sliding-window-size: 100}\n"
    "  timed: {}\n"
    "  sick: {sliding-window-size: 2, minimum-number-of-calls: 1,\n"
    "    wait-duration-in-open-state: 1ms}\n"
    "bulkheads:\n"
    "  free: {max-concurrent-calls: 16}\n"
    "  taken: {max-concurrent-calls: 1}\n";

/// Every way to decide, over some keys: grants, refusals, first sights, looks, undos, batches.
class Everything {
 public:
  explicit Everything(Client& client)
      : api_(client.limit("api").value()), leased_(client.limit("leased").value()),
        tiny_(client.limit("tiny").value()), handle_(api_.key("handle")),
        healthy_(client.breaker("healthy").value()), timed_(client.breaker("timed").value()),
        sick_(client.breaker("sick").value()), free_(client.bulkhead("free").value()),
        taken_(client.bulkhead("taken").value()), holder_(taken_.try_enter().take()),
        client_(client) {}

  /// At least 20 decisions.
  void run(int round) noexcept {
    char key[] = "key 00000000";
    for (int i = 0; i < 8; ++i) key[4 + i] = static_cast<char>('0' + (round >> i) % 8);
    const std::string_view name(key, sizeof key - 1);
    Decision d = api_.try_acquire(name);
    (void)api_.refund(std::move(d));
    api_.peek(name);
    handle_.try_acquire();
    handle_.peek();
    leased_.try_acquire("hot");
    tiny_.try_acquire(name);
    tiny_.try_acquire("always refused");
    api_.reserve(name, {.max_wait = 1ms});
    api_.acquire(name, {});
    const std::string_view keys[8] = {name, "a", "b", "c", name, "d", "e", "f"};
    api_.acquire_batch(keys, out_);
    Key copy = handle_;              // making a handle keeps the key's bytes; a copy shares them
    copy.try_acquire(2);
    api_.try_acquire(name, 2000);
    // Closed, and one that opens, refuses, probes and opens again.
    if (auto call = healthy_.try_enter()) call->succeeded();
    if (auto call = timed_.try_enter()) call->succeeded(1ms);
    if (auto call = sick_.try_enter()) call->failed("timeout");
    sick_.would_enter();
    // A place that is free, one that is not, and everything in one step.
    if (auto place = free_.try_enter()) place->leave();
    taken_.try_enter();
    free_.enter();
    client_.enter({.breaker = &timed_, .bulkhead = &free_, .limits = {{api_, name}}});
    client_.enter({.bulkhead = &taken_, .limits = {{api_, name}, {tiny_, name}}});
    client_.enter({.breaker = &sick_, .bulkhead = &free_, .limits = {{api_, name}}}).give_up();
  }

 private:
  Limit api_, leased_, tiny_;
  Key handle_;
  Breaker healthy_, timed_, sick_;
  Bulkhead free_, taken_;
  Place holder_;
  Client& client_;
  Decision out_[8];
};

class QuietTest : public InMemory {};

TEST_F(QuietTest, DecisionsAllocateNothing) {
  start(kLimits);
  Everything everything(*client);

  const std::uint64_t before = allocations;
  for (int round = 0; round < 10'000; ++round) everything.run(round);

  EXPECT_EQ(allocations - before, 0U);
  EXPECT_TRUE(before > 0 || !kCounting) << "the count itself works";
}

TEST_F(QuietTest, AThreadsFirstDecisionAllocatesNothing) {
  start(kLimits);
  Limit api = limit();
  Limit leased = limit("leased");
  std::uint64_t during = 1;

  std::thread([&] {
    const std::uint64_t before = allocations;
    api.try_acquire("k");
    leased.try_acquire("k");
    during = allocations - before;
  }).join();

  EXPECT_EQ(during, 0U);
}

// A sanitizer's runtime makes system calls of its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// From here on every system call but exit_group kills this process.
bool forbid_system_calls(bool clock_by_kernel) {
  const auto number = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  const std::uint32_t clock_call = clock_by_kernel ? SYS_clock_gettime : SYS_exit_group;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, clock_call, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof rules / sizeof rules[0], rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/// On some machines the vdso cannot read the clock and enters the kernel: nothing we could avoid.
bool clock_needs_the_kernel() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  file >> source;
  return source != "tsc" && source != "kvm-clock" && source != "hyperv_clocksource_tsc_page";
}

/// Exit status of a child that forbids itself system calls and then runs `rounds` of everything.
int run_without_system_calls(Client& client, int rounds) {
  Everything everything(client);
  everything.run(0);                        // binds the library's lazy symbols
  const bool clock_by_kernel = clock_needs_the_kernel();
  const pid_t pid = fork();
  if (pid == 0) {
    if (!forbid_system_calls(clock_by_kernel)) _exit(99);
    for (int round = 0; round < rounds; ++round) everything.run(round);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

TEST_F(QuietTest, AMillionDecisionsMakeNoSystemCallOnASteppedClock) {
  start(kLimits);

  EXPECT_EQ(run_without_system_calls(*client, 50'000), 0);
}

TEST(QuietRealClock, AMillionDecisionsMakeNoSystemCallOnBoottime) {
  Client client = Client::in_memory(kLimits).value();

  EXPECT_EQ(run_without_system_calls(client, 50'000), 0);
}

TEST(QuietRealClock, WhoHasARowMakesNoSystemCallForAPlaceEither) {
  const bool clock_by_kernel = clock_needs_the_kernel();
  const pid_t pid = fork();
  if (pid == 0) {
    // Opened here: a child of the one that opened it has no row and gets no place.
    Client client = Client::in_memory(kLimits).value();
    Everything everything(client);
    everything.run(0);
    if (!client.bulkhead("free").value().would_enter()) _exit(98);
    if (!forbid_system_calls(clock_by_kernel)) _exit(99);
    for (int round = 0; round < 10'000; ++round) everything.run(round);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);

  EXPECT_EQ(status, 0);
}

TEST_F(QuietTest, TheFilterCatchesASystemCall) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!forbid_system_calls(false)) _exit(99);
    syscall(SYS_getppid);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);

  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

#endif

}  // namespace
}  // namespace cutwater::test
