// SPDX-License-Identifier: Apache-2.0
#include "base/cas16.hpp"

#include <cpuid.h>

namespace cutwater {

bool processor_supported() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kCx16 = 1U << 13, kAvx = 1U << 28;
  return (c & kCx16) != 0 && (c & kAvx) != 0;
}

}  // namespace cutwater
