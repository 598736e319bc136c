// SPDX-License-Identifier: Apache-2.0
#include "rows/config_report.hpp"

#include <cstdio>

namespace cutwater::rows {

std::vector<std::pair<std::string, std::uint64_t>> reservations(const shm::Capacity& capacity) {
  return {{"keys", capacity.keys * 2 * sizeof(Word16)},
          {"processes", std::uint64_t{capacity.processes} * sizeof(shm::ProcessRow)},
          {"events", std::uint64_t{capacity.events} * sizeof(shm::EventRecord)},
          {"stripes", std::uint64_t{capacity.stripes} *
                          (sizeof(shm::StripeOwner) +
                           std::uint64_t{capacity.limits} * sizeof(shm::LimitCounters))},
          {"tops", std::uint64_t{capacity.limits} * capacity.tops * sizeof(shm::TopRecord)},
          {"file rules", shm::file_length(capacity, shm::FileKind::Rules)},
          {"file state", shm::file_length(capacity, shm::FileKind::State)},
          {"file stats", shm::file_length(capacity, shm::FileKind::Stats)},
          {"in all", shm::total_length(capacity)}};
}

shm::Capacity capacity_of(const config::Capacity& capacity) noexcept {
  return {.keys = capacity.keys,
          .limits = capacity.limits,
          .processes = capacity.processes,
          .stripes = capacity.stripes,
          .events = capacity.events,
          .overrides = capacity.overrides,
          .tops = capacity.tops,
          .breakers = capacity.breakers,
          .breaker_memory = capacity.breaker_memory,
          .trips = capacity.trips,
          .bulkheads = capacity.bulkheads,
          .bulkhead_cells = capacity.bulkhead_cells,
          .waiters = capacity.waiters};
}

std::string config_report(const config::LoadOutcome& outcome, const std::string& file) {
  std::string out = outcome.report("nothing was changed");
  if (!out.empty() && out.back() != '\n') out += '\n';
  for (const config::Finding& finding : outcome.notes) out += "note: " + finding.line() + '\n';
  if (!outcome.config) return out;
  char text[128];
  std::snprintf(text, sizeof text,
                ": good, %zu limits, config %016llx\n\nmemory reserved, bytes:\n",
                outcome.config->limits.size(),
                static_cast<unsigned long long>(outcome.config->hash));
  out += file + text;
  for (const auto& [name, bytes] : reservations(capacity_of(outcome.config->capacity))) {
    std::snprintf(text, sizeof text, "  %-12s %14llu\n", name.c_str(),
                  static_cast<unsigned long long>(bytes));
    out += text;
  }
  return out;
}

}  // namespace cutwater::rows
