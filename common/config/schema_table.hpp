// SPDX-License-Identifier: Apache-2.0
// The parts of the table in schema.hpp, one for each file that writes one. Only schema.cpp puts
// them together. Thread safety: constant data.
#pragma once
#include <span>

#include "config/schema.hpp"

namespace cutwater::config {

std::span<const Key> daemon_rows();   ///< instance, listen, access, capacity
std::span<const Key> limit_rows();    ///< limits and what stands in them
std::span<const Key> breaker_rows();  ///< breakers
std::span<const Key> bulkhead_rows(); ///< bulkheads
std::span<const Key> log_rows();      ///< log

/// The number of a value in a field's type; its range was checked by the row.
template <class Int>
Int narrow(const Parsed& value) {
  return static_cast<Int>(value.number);
}

}  // namespace cutwater::config
