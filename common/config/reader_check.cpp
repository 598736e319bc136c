// SPDX-License-Identifier: Apache-2.0
// The part of Reader that looks at several keys at once.
#include <algorithm>
#include <set>
#include <utility>

#include "config/count.hpp"
#include "config/reader.hpp"

namespace cutwater::config {
namespace {

// What the memory reserves (LAYOUT.md); the publisher refuses the same, later and without a place.
constexpr std::uint64_t kRulesPerLimit = 4;
constexpr std::uint64_t kFirstPatterns = 16;         // of capacity.overrides may all be patterns,
constexpr std::uint64_t kOverridesPerPattern = 16;   // and of the others one in so many
constexpr std::size_t kMaxCalendars = 64;
constexpr std::size_t kMaxCompared = 1024;  // sets of windows of one limit; bounds the time

/// What may be taken of one thing that the memory reserves.
struct Room {
  const char* key;                     ///< of `capacity`
  const char* what;                    ///< in words
  std::uint64_t grows_to;              ///< where nothing is written; more is taken only when asked
  std::uint64_t most;                  ///< that may be written
  std::string_view each_by;            ///< the setting of a block that makes one take more; or ""
};
constexpr Room kBreakerRoom{"breakers", "breakers", 1024, 65535, ""};
constexpr Room kBulkheadRoom{"bulkheads", "bulkheads", 1024, 65535, ""};
constexpr Room kCellRoom{"bulkhead-cells", "places of bulkheads", 1 << 16, 1 << 20, ""};
constexpr Room kWaiterRoom{"waiters", "calls in line at bulkheads", 1 << 14, 1 << 18,
                           "max-waiting"};

/// What all blocks of a section take of one thing that the memory reserves.
struct Need {
  std::uint64_t all = 0;
  std::string widest;                  ///< the pattern that takes most; empty: there is none
  std::uint64_t widest_takes = 0, instances = 0, each = 0;

  /// Why it is too much, and what to set. Empty: it fits. `reserved`: what is, `written` or not.
  std::string beyond(std::uint64_t reserved, bool written, const Room& room) const {
    if (all <= reserved) return {};
    const std::uint64_t there = written ? reserved : room.grows_to;
    std::string text = std::to_string(all) + " " + room.what + " do not fit capacity." + room.key;
    text += written ? ", which is " + std::to_string(reserved)
                    : ", which is not written and grows by itself to " + std::to_string(there);
    if (!widest.empty()) {
      text += ": '" + widest + "' takes " + std::to_string(widest_takes) +
              ", its max-instances of " + std::to_string(instances) + " and one";
      if (each > 1) text += ", " + std::to_string(each) + " each";
    }
    const bool settable = all <= room.most;
    text += settable ? std::string("; set capacity.") + room.key + " to at least "
                     : std::string("; more than ");
    text += settable ? std::to_string(all) : std::to_string(room.most) + " cannot be set";
    return text + smaller(there, room, settable);
  }

 private:
  /// What the blocks may do instead, or must.
  std::string smaller(std::uint64_t there, const Room& room, bool settable) const {
    const std::string link = settable ? ", or " : ": set ";
    if (widest.empty()) {
      if (settable) return {};
      return std::string(": write fewer") + (room.each_by.empty() ? "" : ", or a smaller ") +
             std::string(room.each_by);
    }
    // Without a written capacity, and none that could be, the most of all is what can be had.
    const std::uint64_t can = settable ? there : room.most;
    const std::uint64_t others = all - instances * each, rest = all - widest_takes;
    std::string out;
    if (others + each <= can) {
      out = link + "its max-instances to at most " + std::to_string((can - others) / each);
    }
    const std::uint64_t one = rest <= can ? (can - rest) / (instances + 1) : 0;
    if (!room.each_by.empty() && one > 0) {
      out += (out.empty() ? link : ", or ") + "its " + std::string(room.each_by) + " to at most " +
             std::to_string(one);
    }
    if (!settable && !out.empty()) {
      out += std::string(", and capacity.") + room.key + " to " + std::to_string(room.most);
    }
    if (!out.empty()) return out;
    return (settable ? ", or " : ": write ") + std::string("smaller max-instances and fewer ") +
           room.what;
  }
};

template <class Settings, class Each>
Need needed(const std::vector<Settings>& blocks, Each each) {
  Need need;
  for (const Settings& one : blocks) {
    const std::uint64_t instances = rule::is_pattern(one) ? one.max_instances : 0;
    const std::uint64_t takes = (instances + 1) * each(one);
    need.all += takes;
    if (instances == 0 || takes <= need.widest_takes) continue;
    need.widest = one.name;
    need.widest_takes = takes;
    need.instances = instances;
    need.each = each(one);
  }
  return need;
}

}  // namespace

void Reader::check_limit(const rule::LimitSettings& limit, const std::string& path,
                         const Values& values) {
  const auto place_of = [&](std::string_view name) {
    const auto found = std::find_if(values.begin(), values.end(), [&](const Value& value) {
      return value.path == joined(path, name);
    });
    return found == values.end() ? Place{} : found->place;
  };
  std::uint64_t burst = rule::kMaxBurst;
  for (const rule::WindowSettings& window : limit.windows) burst = std::min(burst, window.burst);
  const std::uint64_t slice = burst / 16;
  if (burst != 0 && limit.thread_lease > slice) {
    std::string remedy = "write off";
    if (slice > 0) remedy = "write at most " + std::to_string(slice);
    fail(place_of("thread-lease"), path + ".thread-lease",
         std::to_string(limit.thread_lease) + " is more than a sixteenth of the burst of " +
             std::to_string(burst) + "; " + remedy + ", or set burst to at least " +
             std::to_string(std::uint64_t{16} * limit.thread_lease));
  }
  if (limit.on_full == rule::OnFull::Allow) {
    notes_.push_back({place_of("on-full"), path + ".on-full",
                      "while all places are taken, new keys are not limited at all"});
  }
}

void Reader::check_whole() {
  fit_capacity();
  check_capacity();
  check_breakers();
  check_bulkheads();
  check_listen();
}

void Reader::check_capacity() {
  if (config_.find_value("capacity.limits") != nullptr &&
      config_.limits.size() > config_.capacity.limits) {
    const std::string count = std::to_string(config_.limits.size());
    if (config_.limits.size() > kMaxLimits) {
      fail(limits_place_, "limits", count + " limits are above the maximum of " +
                                        std::to_string(kMaxLimits));
    } else {
      fail(limits_place_, "limits",
           count + " limits do not fit capacity.limits, which is " +
               std::to_string(config_.capacity.limits) + "; set capacity.limits to at least " +
               count);
    }
  }
  check_overrides();
  check_rules();
}

void Reader::check_overrides() {
  std::uint64_t keys = 0;
  std::uint64_t patterns = 0;
  for (const rule::LimitSettings& limit : config_.limits) {
    for (const rule::OverrideSettings& over : limit.overrides) ++(over.pattern ? patterns : keys);
  }
  if (config_.find_value("capacity.overrides") == nullptr) return;
  const std::uint64_t room = config_.capacity.overrides;
  const auto refuse = [&](const std::string& what, std::uint64_t needed) {
    fail(limits_place_, "limits",
         what + " do not fit capacity.overrides, which is " + std::to_string(room) +
             "; set capacity.overrides to at least " + std::to_string(needed));
  };
  if (keys > room) refuse(std::to_string(keys) + " keys with an override", keys);
  if (patterns > std::min(room, std::max(kFirstPatterns, room / kOverridesPerPattern))) {
    refuse(std::to_string(patterns) + " key patterns",
           patterns > kFirstPatterns ? patterns * kOverridesPerPattern : patterns);
  }
}

void Reader::check_rules() {
  std::uint64_t rules = 0;
  std::set<std::pair<rule::CalendarUnit, std::string>> calendars;
  const auto count = [&](const std::vector<rule::WindowSettings>& windows) {
    rules += windows.size();
    for (const rule::WindowSettings& window : windows) {
      if (window.kind == rule::WindowKind::Calendar) calendars.emplace(window.unit, window.zone);
    }
  };
  for (const rule::LimitSettings& limit : config_.limits) {
    count(limit.windows);
    // Keys with the same windows share them.
    std::vector<const std::vector<rule::WindowSettings>*> seen;
    for (const rule::OverrideSettings& over : limit.overrides) {
      const bool again = std::any_of(seen.begin(), seen.end(),
                                     [&](const auto* other) { return *other == over.windows; });
      if (again) continue;
      if (seen.size() < kMaxCompared) seen.push_back(&over.windows);
      count(over.windows);
    }
  }
  if (calendars.size() > kMaxCalendars) {
    fail(limits_place_, "limits",
         std::to_string(calendars.size()) + " different calendars, unit and zone, are above the "
                                            "maximum of " + std::to_string(kMaxCalendars) +
             "; let limits share one");
  }
  const std::uint64_t room = std::uint64_t{kRulesPerLimit} * config_.capacity.limits;
  if (config_.find_value("capacity.limits") == nullptr || rules <= room) return;
  const std::uint64_t needed = (rules + kRulesPerLimit - 1) / kRulesPerLimit;
  fail(limits_place_, "limits",
       std::to_string(rules) + " windows of limits and keys do not fit: there is room for " +
           std::to_string(kRulesPerLimit) + " for each of capacity.limits, which is " +
           std::to_string(config_.capacity.limits) +
           (needed <= kMaxLimits ? "; set capacity.limits to at least " + std::to_string(needed)
                                 : "; give keys the same rates"));
}

namespace {

using rule::BreakerSettings;
using rule::BulkheadSettings;

std::uint64_t breakers_of(const BreakerSettings&) { return 1; }
std::uint64_t bulkheads_of(const BulkheadSettings&) { return 1; }
std::uint64_t cells_of(const BulkheadSettings& one) { return one.max_concurrent; }
std::uint64_t waiters_of(const BulkheadSettings& one) {
  return one.max_wait_ns == 0 ? 0 : one.max_waiting;
}

}  // namespace

/// What is not written is what the blocks need: a first pattern is not refused for a number nobody
/// chose. Beyond Room::grows_to memory is not taken without being asked for: a breaker's counters
/// are about 30 KB at 32 stripes.
void Reader::fit_capacity() {
  const auto fit = [&](std::uint32_t& reserved, const Need& need, const Room& room) {
    const std::string path = std::string("capacity.") + room.key;
    const auto value = std::find_if(config_.values.begin(), config_.values.end(),
                                    [&](const Value& one) { return one.path == path; });
    if (value == config_.values.end() || value->place.source != Source::Default) return;
    if (need.all <= reserved || need.all > room.grows_to) return;
    reserved = static_cast<std::uint32_t>(need.all);
    value->text = std::to_string(reserved);
  };
  Capacity& capacity = config_.capacity;
  fit(capacity.breakers, needed(config_.breakers, breakers_of), kBreakerRoom);
  fit(capacity.bulkheads, needed(config_.bulkheads, bulkheads_of), kBulkheadRoom);
  fit(capacity.bulkhead_cells, needed(config_.bulkheads, cells_of), kCellRoom);
  fit(capacity.waiters, needed(config_.bulkheads, waiters_of), kWaiterRoom);
}

void Reader::check_breakers() {
  const Value* value = config_.find_value(std::string("capacity.") + kBreakerRoom.key);
  if (value == nullptr) return;
  const std::string text =
      needed(config_.breakers, breakers_of)
          .beyond(config_.capacity.breakers, value->place.source != Source::Default, kBreakerRoom);
  if (!text.empty()) fail(breakers_place_, "breakers", text);
}

void Reader::check_bulkheads() {
  const auto fit = [&](std::uint64_t reserved, const Room& room, auto each) {
    const Value* value = config_.find_value(std::string("capacity.") + room.key);
    if (value == nullptr) return;
    const bool written = value->place.source != Source::Default;
    const std::string text = needed(config_.bulkheads, each).beyond(reserved, written, room);
    if (!text.empty()) fail(bulkheads_place_, "bulkheads", text);
  };
  fit(config_.capacity.bulkheads, kBulkheadRoom, bulkheads_of);
  fit(config_.capacity.bulkhead_cells, kCellRoom, cells_of);
  fit(config_.capacity.waiters, kWaiterRoom, waiters_of);
}

void Reader::check_listen() {
  const Listen& listen = config_.listen;
  const Value* credit = config_.find_value("listen.credit-bytes");
  const Value* frame = config_.find_value("listen.max-frame");
  if (credit != nullptr && frame != nullptr && listen.credit_bytes < listen.max_frame) {
    // Said at the one that is written; when both are, at the credit.
    const Value* at = credit->place.source == Source::Default ? frame : credit;
    fail(at->place, at->path,
         "a connection has a credit of " + format_size(listen.credit_bytes) +
             ", less than one message of " + format_size(listen.max_frame) +
             "; set listen.credit-bytes to at least " + format_size(listen.max_frame));
  }
  if (listen.unix_path == "off") {
    const Value* path = config_.find_value("listen.unix.path");
    notes_.push_back({path != nullptr ? path->place : Place{}, "listen.unix.path",
                      "off: there is no socket, so no process can attach"});
  }
}

}  // namespace cutwater::config
