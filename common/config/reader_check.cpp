// SPDX-License-Identifier: Apache-2.0
// The part of Reader that looks at several keys at once.
#include <algorithm>

#include "config/count.hpp"
#include "config/reader.hpp"

namespace cutwater::config {

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
  check_capacity();
  check_breakers();
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
  std::size_t overrides = 0;
  for (const rule::LimitSettings& limit : config_.limits) overrides += limit.overrides.size();
  if (config_.find_value("capacity.overrides") != nullptr &&
      overrides > config_.capacity.overrides) {
    const std::string count = std::to_string(overrides);
    fail(limits_place_, "limits",
         count + " keys with an override do not fit capacity.overrides, which is " +
             std::to_string(config_.capacity.overrides) +
             "; set capacity.overrides to at least " + count);
  }
}

void Reader::check_breakers() {
  std::uint64_t instances = 0;
  for (const rule::BreakerSettings& breaker : config_.breakers) {
    instances += rule::is_pattern(breaker) ? breaker.max_instances : 1;
  }
  if (config_.find_value("capacity.breakers") == nullptr ||
      instances <= config_.capacity.breakers) {
    return;
  }
  const std::string count = std::to_string(instances);
  fail(breakers_place_, "breakers",
       count + " breakers, patterns counted with their max-instances, do not fit "
               "capacity.breakers, which is " + std::to_string(config_.capacity.breakers) +
           "; set capacity.breakers to at least " + count);
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
