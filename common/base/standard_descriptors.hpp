// SPDX-License-Identifier: Apache-2.0
// For programs, first thing in main(): a program that was started with descriptor 0, 1 or 2 closed
// would get the next file it opens there, and then write its log or its table into it.
#pragma once
#include <fcntl.h>
#include <unistd.h>

namespace cutwater {

/// What becomes of output for which there is no descriptor.
enum class ClosedOutput {
  Discarded,     ///< a daemon: goes nowhere
  Refused,       ///< a tool: writing fails, so that it can say so by its exit code
};

/// Opens /dev/null on each of 0, 1 and 2 that is closed. One thread, before any file is opened.
inline void open_standard_descriptors(ClosedOutput output) noexcept {
  const int flags = output == ClosedOutput::Discarded ? O_WRONLY : O_RDONLY;
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    const int opened = open("/dev/null", fd == 0 ? O_RDONLY : flags);   // the lowest free: fd
    if (opened > 2) close(opened);
  }
}

}  // namespace cutwater
