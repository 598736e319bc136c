// SPDX-License-Identifier: Apache-2.0
// Bulkheads as tests want them, whatever world they are asked in. Thread safety: pure.
#pragma once
#include <cstdint>

#include "rule/bulkhead_settings.hpp"

namespace cutwater::test {

struct BulkheadShape {
  std::uint32_t limit = 2;
  std::uint64_t max_wait_ns = 0;
  std::uint32_t max_waiting = 8;
  std::uint64_t max_hold_ns = 0;
};
inline rule::BulkheadSettings bulkhead_of(BulkheadShape shape = {}) {
  rule::BulkheadSettings settings;
  settings.name.push_back('b');
  settings.max_concurrent = shape.limit;
  settings.max_wait_ns = shape.max_wait_ns;
  settings.max_waiting = shape.max_waiting;
  settings.max_hold_ns = shape.max_hold_ns;
  return settings;
}
/// A line of eight, a second at most.
inline rule::BulkheadSettings waiting_bulkhead(std::uint32_t limit = 2) {
  BulkheadShape shape;
  shape.limit = limit;
  shape.max_wait_ns = 1'000'000'000;
  return bulkhead_of(shape);
}

}  // namespace cutwater::test
