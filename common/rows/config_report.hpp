// SPDX-License-Identifier: Apache-2.0
// What checking a configuration says, for people: every error and note with its place, and what a
// good one reserves, table by table. `cutwaterd --check-config` and `cutwaterctl config check`
// agree because both take it from here.
// Thread safety: pure functions. Allocates.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "shm/segment.hpp"

namespace cutwater::rows {

/// Name and bytes of each table and file that a capacity reserves; `in all` is last.
std::vector<std::pair<std::string, std::uint64_t>> reservations(const shm::Capacity& capacity);

/// The capacity of a segment, as the configuration asks for it.
shm::Capacity capacity_of(const config::Capacity& capacity) noexcept;

/// Errors with the line that counts them, notes, then the verdict and the reservations.
std::string config_report(const config::LoadOutcome& outcome, const std::string& file);

}  // namespace cutwater::rows
