// SPDX-License-Identifier: Apache-2.0
#include "support/wall_clock.hpp"

#include <atomic>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cutwater/export.hpp>

namespace cutwater::test {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

std::atomic<std::int64_t> offset_ns{0};
std::atomic<std::uint64_t> readings{0};

int read_clock(clockid_t clock, timespec* out) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  const bool settable =
      clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
  if (result != 0 || !settable) return result;
  readings.fetch_add(1);
  const std::int64_t ns = out->tv_sec * kSecondNs + out->tv_nsec + offset_ns.load();
  *out = {ns / kSecondNs, ns % kSecondNs};
  return 0;
}

}  // namespace

void step_wall_clock(Nanos by) noexcept { offset_ns.fetch_add(by.count()); }
std::uint64_t wall_clock_readings() noexcept { return readings.load(); }

}  // namespace cutwater::test

// Instead of the C library's: a definition in the program itself comes first, for its shared
// libraries too.
extern "C" {

CUTWATER_EXPORT int clock_gettime(clockid_t clock, timespec* out) noexcept {
  return cutwater::test::read_clock(clock, out);
}

CUTWATER_EXPORT int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  const int result = cutwater::test::read_clock(CLOCK_REALTIME, &now);
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return result;
}

CUTWATER_EXPORT time_t time(time_t* out) noexcept {
  timespec now{};
  cutwater::test::read_clock(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}
