// SPDX-License-Identifier: Apache-2.0
#include "rows/config_report.hpp"

#include <algorithm>
#include <cstdio>

#include "config/count.hpp"
#include "config/problem.hpp"
#include "shm/breaker/publisher.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/pattern_publish.hpp"

namespace cutwater::rows {

std::vector<std::pair<std::string, std::uint64_t>> reservations(const shm::Capacity& capacity) {
  const std::uint64_t names = capacity.remember_keys ? sizeof(shm::KeyName) : 0;
  return {{"keys", capacity.keys * 2 * sizeof(Word16)},
          {"remember-keys", capacity.keys * 2 * names},
          {"processes", std::uint64_t{capacity.processes} * sizeof(shm::ProcessRow)},
          {"events", std::uint64_t{capacity.events} * sizeof(shm::EventRecord)},
          {"stripes", std::uint64_t{capacity.stripes} *
                          (sizeof(shm::StripeOwner) +
                           std::uint64_t{capacity.limits} * sizeof(shm::LimitCounters))},
          {"tops", std::uint64_t{capacity.limits} * capacity.tops * sizeof(shm::TopRecord)},
          {"breaker-memory", capacity.breaker_memory},
          {"bulkhead-cells", std::uint64_t{capacity.bulkhead_cells} * 2 * sizeof(std::uint64_t)},
          {"waiters", std::uint64_t{capacity.waiters} * sizeof(shm::WaiterRecord)},
          {"file rules", shm::file_length(capacity, shm::FileKind::Rules)},
          {"file state", shm::file_length(capacity, shm::FileKind::State)},
          {"file stats", shm::file_length(capacity, shm::FileKind::Stats)},
          {"in all", shm::total_length(capacity)}};
}

shm::Capacity capacity_of(const config::Config& config) noexcept {
  const config::Capacity& capacity = config.capacity;
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
          .waiters = capacity.waiters,
          .remember_keys = config.instance.remember_keys};
}

std::vector<Needed> needed_of(const config::Config& config, const config::Capacity& capacity) {
  std::uint64_t breakers = 0, bulkheads = 0, places = 0, waiting = 0;
  for (const rule::BreakerSettings& one : config.breakers) {
    breakers += shm::entries_of(one);
  }
  for (const rule::BulkheadSettings& one : config.bulkheads) {
    const std::uint64_t instances = shm::entries_of(one);
    bulkheads += instances;
    places += instances * one.max_concurrent;
    waiting += one.max_wait_ns == 0 ? 0 : instances * one.max_waiting;
  }
  const std::uint64_t memory = shm::breaker_memory_needed(config.breakers);
  std::vector<Needed> all = {{"breakers", breakers, capacity.breakers},
                             {"breaker-memory", memory, capacity.breaker_memory},
                             {"bulkheads", bulkheads, capacity.bulkheads},
                             {"bulkhead-cells", places, capacity.bulkhead_cells},
                             {"waiters", waiting, capacity.waiters}};
  std::erase_if(all, [](const Needed& one) { return one.needed == 0; });
  return all;
}

std::vector<config::Finding> fit_errors(const config::Config& config,
                                        const config::Capacity& capacity) {
  const auto words = [](const std::string& what) -> std::string {
    if (what == "breaker-memory") return "bytes of windows and probes of breakers";
    if (what == "bulkhead-cells") return "places of bulkheads";
    return what == "waiters" ? "calls in line at bulkheads" : what;
  };
  std::vector<config::Finding> out;
  for (const Needed& one : needed_of(config, capacity)) {
    if (one.needed <= one.reserved) continue;
    const std::string key = "capacity." + one.what, number = std::to_string(one.needed);
    const config::Value* value = config.find_value(key);
    out.push_back(
        {value == nullptr ? config.file_name : config::where_text(value->place, config.file_name),
         key,
         number + " " + words(one.what) + " are needed and " + std::to_string(one.reserved) +
             " reserved; set " + key + " to at least " + number + " and restart"});
  }
  return out;
}

void grow_breaker_memory(config::Config& config) {
  constexpr std::uint64_t kStep = 64 << 10;
  const auto value = std::find_if(
      config.values.begin(), config.values.end(),
      [](const config::Value& one) { return one.path == "capacity.breaker-memory"; });
  if (value == config.values.end() || value->place.source != config::Source::Default) return;
  const std::uint64_t needed = shm::breaker_memory_needed(config.breakers);
  if (needed <= config.capacity.breaker_memory || needed > kBreakerMemoryGrowsTo) return;
  config.capacity.breaker_memory = (needed + kStep - 1) / kStep * kStep;
  value->text = config::format_size(config.capacity.breaker_memory);
}

config::LoadOutcome fitting(config::LoadOutcome outcome) {
  if (!outcome.ok()) return outcome;
  grow_breaker_memory(*outcome.config);
  outcome.errors = fit_errors(*outcome.config, outcome.config->capacity);
  if (!outcome.errors.empty()) outcome.config.reset();
  return outcome;
}

std::string config_report(const config::LoadOutcome& outcome, const std::string& file) {
  std::string out = outcome.report("nothing was changed");
  if (!out.empty() && out.back() != '\n') out += '\n';
  for (const config::Finding& finding : outcome.notes) out += "note: " + finding.line() + '\n';
  if (!outcome.config) return out;
  const config::Config& config = *outcome.config;
  char text[128];
  std::snprintf(
      text, sizeof text, ": good, %zu limits, config %016llx\n\nmemory reserved, bytes:\n",
      outcome.config->limits.size(), static_cast<unsigned long long>(outcome.config->hash));
  out += file + text;
  for (const auto& [name, bytes] : reservations(capacity_of(config))) {
    std::snprintf(text, sizeof text, "  %-12s %14llu\n", name.c_str(),
                  static_cast<unsigned long long>(bytes));
    out += text;
  }
  for (const Needed& one : needed_of(config, config.capacity)) {
    out += "  " + one.what + ": " + std::to_string(one.needed) + " of " +
           std::to_string(one.reserved) + " needed\n";
  }
  return out;
}

}  // namespace cutwater::rows
