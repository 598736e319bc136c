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
shm::Capacity capacity_of(const config::Config& config) noexcept;

/// What of a good configuration does not fit this capacity: breakers, the memory of their windows
/// and probes, bulkheads, their places, their lines. A start or reload would refuse it in the same
/// words. A pattern counts as max-instances of them and one more, as where it is published.
std::vector<config::Finding> fit_errors(const config::Config& config,
                                        const config::Capacity& capacity);

/// A capacity.breaker-memory that is not written becomes what the breakers need, up to so many
/// bytes; beyond, memory is not taken without being asked for.
inline constexpr std::uint64_t kBreakerMemoryGrowsTo = 16ULL << 20;
void grow_breaker_memory(config::Config& config);

/// The same outcome, grown, and refused by fit_errors() for its own capacity where it was good:
/// what checking a file says.
config::LoadOutcome fitting(config::LoadOutcome outcome);

/// How much of it is needed: `breaker-memory` 21120 of 524288, ...; what is not used is left out.
struct Needed {
  std::string what;                  ///< key below `capacity`
  std::uint64_t needed = 0, reserved = 0;
};
std::vector<Needed> needed_of(const config::Config& config, const config::Capacity& capacity);

/// Errors with the line that counts them, notes, then the verdict and the reservations.
std::string config_report(const config::LoadOutcome& outcome, const std::string& file);

}  // namespace cutwater::rows
