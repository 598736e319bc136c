// SPDX-License-Identifier: Apache-2.0
// Whole sessions: both machines, a line that splits and cuts, an application that answers in any
// order. Each byte of the input is one choice of tests/support/session_world.hpp, which also says
// what must hold; when the input ends, everything comes to its end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/session_world.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kStepsMax = 4096;
  std::size_t at = 0;
  const auto choose = [&](std::uint32_t below) -> std::uint32_t {
    if (at >= size) return 0;
    std::uint32_t number = data[at++];
    if (below > 256 && at < size) number |= std::uint32_t{data[at++]} << 8;
    return number % below;
  };
  cutwater::test::SessionWorld world(choose);
  const std::string fault = world.run(size < kStepsMax ? size : kStepsMax);
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
