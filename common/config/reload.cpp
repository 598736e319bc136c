// SPDX-License-Identifier: Apache-2.0
#include "config/count.hpp"
#include "config/problem.hpp"
#include "config/schema.hpp"

namespace cutwater::config {
namespace {

std::uint64_t reserved_of(const Capacity& capacity, std::string_view name) {
  if (name == "keys") return capacity.keys;
  if (name == "limits") return capacity.limits;
  if (name == "processes") return capacity.processes;
  if (name == "stripes") return capacity.stripes;
  if (name == "overrides") return capacity.overrides;
  if (name == "tops") return capacity.tops;
  if (name == "breakers") return capacity.breakers;
  if (name == "breaker-memory") return capacity.breaker_memory;
  if (name == "bulkheads") return capacity.bulkheads;
  if (name == "bulkhead-cells") return capacity.bulkhead_cells;
  if (name == "waiters") return capacity.waiters;
  if (name == "trips") return capacity.trips;
  return capacity.events;
}

std::string spelled(const Key& key, std::uint64_t number) {
  return key.kind == Kind::Size ? format_size(number) : std::to_string(number);
}

}  // namespace

std::vector<Finding> reload_errors(const Config& running, const Config& next) {
  return reload_errors(running, next, running.capacity);
}

std::vector<Finding> reload_errors(const Config& running, const Config& next,
                                   const Capacity& reserved) {
  std::vector<Problem> problems;
  for (const Key& key : schema()) {
    if (key.reload == Reload::Live) continue;
    const std::string path = std::string(key.block) + "." + std::string(key.name);
    const Value* before = running.find_value(path);
    const Value* after = next.find_value(path);
    if (before == nullptr || after == nullptr || before->text == after->text) continue;
    const std::string change = "changed from '" + before->text + "' to '" + after->text + "', ";
    if (key.reload == Reload::Start) {
      problems.push_back({after->key, path, change + "which needs a restart"});
      continue;
    }
    const std::uint64_t room = reserved_of(reserved, key.name);
    const bool grown = reserved_of(next.capacity, key.name) > room;
    if (grown && after->place.source == Source::Default) {
      problems.push_back({after->key, path,
                          "the blocks take " + after->text + " now, and " + spelled(key, room) +
                              " were reserved at start; restart the daemon (nothing is "
                              "forgotten), or let them take less: a pattern takes its "
                              "max-instances and one"});
    } else if (grown) {
      problems.push_back({after->key, path, change + "above the " + spelled(key, room) +
                                                " reserved at start, which needs a restart"});
    }
  }
  return to_findings(std::move(problems), next.file_name);
}

}  // namespace cutwater::config
