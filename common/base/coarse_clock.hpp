// SPDX-License-Identifier: Apache-2.0
// A clock that costs 3 to 5 ns instead of 23 and stands still between two ticks of the kernel
// (CLOCK_MONOTONIC_COARSE, 1 to 10 ms): for stamps and sums that need no more, never for a
// decision.
//
// What lies between it and CLOCK_BOOTTIME grows while the machine is suspended, so each thread
// measures it anew in each tick it looks in. Thread safety: everything from any thread. No system
// call; what may not be had from the vdso directly is asked of the C library.
#pragma once
#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/clock.hpp"

namespace cutwater {

using ClockReader = int (*)(clockid_t, timespec*);

/// The vdso's own clock_gettime, clock_gettime where there is none.
ClockReader find_clock_reader() noexcept;

namespace detail {

/// The last tick this thread looked in, and the CLOCK_BOOTTIME at which it began.
struct CoarseTick {
  std::int64_t monotonic_ns = -1;
  std::int64_t boottime_ns = 0;
};
// initial-exec: one instruction instead of a call; 16 bytes, so the library can be loaded late too.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit CoarseTick coarse_tick;
extern std::atomic<ClockReader> coarse_reader;

/// This thread's first look in a tick.
std::int64_t enter_tick(std::int64_t monotonic_ns) noexcept;

}  // namespace detail

/// From now on coarse_boottime_ns() takes the cheapest way. Once is enough.
void prepare_coarse_clock() noexcept;

/// CLOCK_BOOTTIME in ns at the last tick of the kernel; off by what a thread that was stopped
/// between two readings lost, in that tick only.
[[gnu::always_inline]] inline std::int64_t coarse_boottime_ns() noexcept {
  timespec reading;
  // relaxed: either function is right.
  detail::coarse_reader.load(std::memory_order_relaxed)(CLOCK_MONOTONIC_COARSE, &reading);
  const std::int64_t tick = std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec;
  if (tick == detail::coarse_tick.monotonic_ns) [[likely]] return detail::coarse_tick.boottime_ns;
  return detail::enter_tick(tick);
}

}  // namespace cutwater
