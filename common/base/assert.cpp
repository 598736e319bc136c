// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace cutwater {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "cutwater: assertion failed: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace cutwater
