// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program under test: its fdatasync() does what the file $TEST_DISK says, which
// the test writes while the program runs. `hold`: it returns when the file says something else,
// after kLongestMs at the latest. `fail`: EIO. Anything else, or no file: as the kernel does it.
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int kLongestMs = 60'000;

/// The first letter of what the file says; 0: nothing.
char order() {
  const char* path = std::getenv("TEST_DISK");
  const int fd = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  char letter = 0;
  if (fd >= 0 && ::read(fd, &letter, 1) != 1) letter = 0;
  if (fd >= 0) ::close(fd);
  return letter;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  for (int waited = 0; order() == 'h' && waited < kLongestMs; ++waited) {
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  if (order() == 'f') {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
