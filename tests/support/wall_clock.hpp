// SPDX-License-Identifier: Apache-2.0
// The wall clock as this test program sees it: a test may set it, and may ask whether anybody
// looked at it. It stands in for the C library's clock_gettime, gettimeofday and time, for every
// caller in the process; clocks that nobody can set are left alone. Nothing outside the process
// changes. Thread safety: any thread.
#pragma once
#include <cstdint>

#include <cutwater/units.hpp>

namespace cutwater::test {

/// From now on the wall clock shows `by` more than it did (less when negative).
void step_wall_clock(Nanos by) noexcept;

/// How often the wall clock was read in this process.
std::uint64_t wall_clock_readings() noexcept;

}  // namespace cutwater::test
