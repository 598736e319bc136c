// SPDX-License-Identifier: Apache-2.0
#include "base/coarse_clock.hpp"

#include <dlfcn.h>

namespace cutwater {

ClockReader find_clock_reader() noexcept {
  // Mapped by the kernel into every process, and never unmapped.
  void* const vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (vdso == nullptr) return clock_gettime;
  const auto found = reinterpret_cast<ClockReader>(dlsym(vdso, "__vdso_clock_gettime"));
  dlclose(vdso);
  timespec tried;
  return found != nullptr && found(CLOCK_MONOTONIC_COARSE, &tried) == 0 ? found : clock_gettime;
}

namespace detail {

thread_local constinit CoarseTick coarse_tick;
constinit std::atomic<ClockReader> coarse_reader{clock_gettime};

std::int64_t enter_tick(std::int64_t monotonic_ns) noexcept {
  timespec reading;
  clock_gettime(CLOCK_MONOTONIC, &reading);
  const std::int64_t since =
      std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec - monotonic_ns;
  coarse_tick = {monotonic_ns, boottime_ns() - since};
  return coarse_tick.boottime_ns;
}

}  // namespace detail

void prepare_coarse_clock() noexcept {
  // relaxed: either function is right.
  detail::coarse_reader.store(find_clock_reader(), std::memory_order_relaxed);
}

}  // namespace cutwater
