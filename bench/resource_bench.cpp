// SPDX-License-Identifier: Apache-2.0
// L8: system calls and allocations of a local decision. M1: bytes per key in debt.
#include <cutwater/client.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "harness.hpp"
#include "shm/segment.hpp"

namespace {
std::uint64_t allocations = 0;      // counted in this executable and whatever it calls into
}

// Every allocation of C++ code in the process, the library's included, goes through these.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* place = std::malloc(bytes)) return place;
  std::abort();
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }

namespace cutwater::bench {
namespace {

constexpr int kDecisions = 100'000;

// From here on every system call but exit kills this process. A filter and not strict seccomp: that
// one also forbids the time-stamp counter, which the clock of the vdso reads.
bool forbid_system_calls() {
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof rules / sizeof rules[0], rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// A child that ends by itself has made no system call. Where the vdso cannot read the clock (a
// clock source like hpet) it enters the kernel, and the figure says so.
bool decides_without_system_calls(Limit& limit) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    keep(limit.try_acquire("k").allowed());                       // a forked child's first
    if (!forbid_system_calls()) _exit(2);
    for (int i = 0; i < kDecisions; ++i) keep(limit.try_acquire("k").allowed());
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::vector<Figure> resource_figures(const Plan&) {
  Client client = Client::in_memory("limits: { api: { rate: 1/s, burst: 50000 } }").value();
  Limit limit = client.limit("api").value();
  keep(limit.try_acquire("k").allowed());
  const std::uint64_t before = allocations;
  for (int i = 0; i < kDecisions; ++i) keep(limit.try_acquire("k").allowed());
  const auto allocated = static_cast<double>(allocations - before);
  const double calls = decides_without_system_calls(limit) ? 0 : 1;

  shm::Capacity small, large;
  small.keys = 1 << 20;
  large.keys = 1 << 22;
  const double bytes = static_cast<double>(shm::total_length(large) - shm::total_length(small)) /
                       static_cast<double>(large.keys - small.keys);
  Figure no_calls{"L8", "system calls in 100000 decisions (0 = none)", 0, 0, calls, "", 0.5, false};
  Figure no_allocations{"L8a", "allocations in 100000 decisions", 0, 0, allocated, "", 0.5, false};
  Figure memory{"M1", "bytes per key and window in debt", 0, 0, bytes, "", 40, false};
  return {no_calls, no_allocations, memory};
}

}  // namespace cutwater::bench
