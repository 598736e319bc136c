// SPDX-License-Identifier: Apache-2.0
// The limits of one whole rule image, copied out: what rows about limits are made from.
// Private to rows/. Thread safety: one thread; beside any publisher.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shm/view.hpp"

namespace cutwater::rows {

struct FoundLimit {
  std::uint32_t index = 0;
  std::string name;
  shm::LimitConfig config{};
  std::array<shm::RuleRecord, shm::kMaxWindows> rule{};
  std::array<shm::CalendarRecord, shm::kMaxWindows> calendar{};  ///< of RuleKind::Calendar
};

/// Read again when another image was published meanwhile, a few times.
std::vector<FoundLimit> read_limits(const shm::View& view);

}  // namespace cutwater::rows
