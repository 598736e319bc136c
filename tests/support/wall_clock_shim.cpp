// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program under test: its wall clock is off by the nanoseconds that stand, as one
// i64, in the file $TEST_WALL_CLOCK_OFFSET. Clocks that nobody can set are left alone. The test
// writes the file, so the clock jumps while the program runs.
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

const volatile std::int64_t* offset() {
  static const volatile std::int64_t* at = [] {
    const char* path = std::getenv("TEST_WALL_CLOCK_OFFSET");
    const int fd = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return static_cast<const std::int64_t*>(nullptr);
    void* map = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    return map == MAP_FAILED ? nullptr : static_cast<const std::int64_t*>(map);
  }();
  return at;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* now) noexcept {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (clock == CLOCK_REALTIME && result == 0 && offset() != nullptr) {
    const std::int64_t ns = std::int64_t{now->tv_sec} * 1'000'000'000 + now->tv_nsec + *offset();
    now->tv_sec = ns / 1'000'000'000;
    now->tv_nsec = ns % 1'000'000'000;
  }
  return result;
}
