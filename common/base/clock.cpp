// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cpuid.h>
#include <x86intrin.h>

#include <algorithm>
#include <string_view>

namespace cutwater {
namespace {

constexpr std::int64_t kRecalibrateNs = 1'000'000;
constexpr int kPairAttempts = 4;

/// A reading of the counter and of CLOCK_BOOTTIME at one moment.
struct Pair {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;
};

/// What one thread knows. ns = base.ns + (ticks - base.ticks) * mult / 2^32.
struct Calibration {
  Pair base;
  std::uint64_t mult = 0;        ///< ns per tick in 1/2^32; 0 = not known yet
  std::uint64_t valid_ticks = 0; ///< a reading farther from base than this is taken anew
  std::int64_t last_ns = 0;      ///< what this thread was told last
};

thread_local Calibration calibration;

/// The pair with the shortest time between its two counter readings, of a few attempts: a thread
/// that lost the processor between counter and clock would else be off by a time slice.
Pair read_pair() noexcept {
  Pair best;
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < kPairAttempts; ++i) {
    const std::uint64_t before = __rdtsc();
    const std::int64_t ns = boottime_ns();
    const std::uint64_t width = __rdtsc() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {before + width / 2, ns};
  }
  return best;
}

/// Takes a new base and, when enough time lies between, the slope from the old base to it.
std::int64_t recalibrate(Calibration& known) noexcept {
  const Pair pair = read_pair();
  const std::int64_t elapsed_ns = pair.ns - known.base.ns;
  const bool forward = pair.ticks > known.base.ticks && elapsed_ns > 0;
  if (known.base.ticks == 0) {
    known.base = pair;
  } else if (!forward) {          // the counter was set back (suspend): begin again
    known.base = pair;
    known.mult = 0;
  } else if (elapsed_ns >= kRecalibrateNs) {
    const std::uint64_t ticks = pair.ticks - known.base.ticks;
    const auto scaled = (static_cast<unsigned __int128>(elapsed_ns) << 32) / ticks;
    known.mult = static_cast<std::uint64_t>(scaled);
    const auto valid = static_cast<unsigned __int128>(ticks) * kRecalibrateNs / elapsed_ns;
    known.valid_ticks = static_cast<std::uint64_t>(valid);
    known.base = pair;
  }
  return pair.ns;
}

}  // namespace

bool tsc_usable() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kInvariantTsc = 1U << 8;
  if (__get_cpuid(0x80000007U, &a, &b, &c, &d) == 0 || (d & kInvariantTsc) == 0) return false;

  const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                      O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[16] = {};
  const ssize_t length = read(fd, text, sizeof text);
  close(fd);
  return length > 0 && std::string_view(text, static_cast<std::size_t>(length)) == "tsc\n";
}

std::int64_t tsc_boottime_ns() noexcept {
  Calibration& known = calibration;
  const std::uint64_t ticks = __rdtsc() - known.base.ticks;
  std::int64_t ns;
  if (known.mult != 0 && ticks < known.valid_ticks) [[likely]] {
    const auto product = static_cast<unsigned __int128>(ticks) * known.mult;
    ns = known.base.ns + static_cast<std::int64_t>(product >> 32);
  } else {
    ns = recalibrate(known);
  }
  known.last_ns = std::max(known.last_ns, ns);
  return known.last_ns;
}

}  // namespace cutwater
