// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/config.hpp"
#include "config/problem.hpp"

namespace cutwater::config {
std::string origin_text(const Place& place, std::string_view file_name) {
  if (place.source == Source::Default) return "default";
  const std::string where = where_text(place, file_name);
  const bool base = place.source == Source::File && !place.name.empty();
  return base ? "base-config " + place.name + ", " + where : where;
}

std::string show(const Config& config) {
  std::string out;
  for (const Value& value : config.values) {
    out +=
        value.path + ": " + value.text + "  # " + origin_text(value.place, config.file_name) + "\n";
  }
  return out;
}

std::uint64_t hash_of(const Config& config) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::vector<const Value*> sorted;
  sorted.reserve(config.values.size());
  for (const Value& value : config.values) sorted.push_back(&value);
  std::sort(sorted.begin(), sorted.end(),
            [](const Value* a, const Value* b) { return a->path < b->path; });
  std::uint64_t hash = kOffset;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  };
  for (const Value* value : sorted) {
    mix(value->path);
    mix(": ");
    mix(value->text);
    mix("\n");
  }
  return hash;
}

const rule::LimitSettings* Config::find_limit(std::string_view name) const noexcept {
  for (const rule::LimitSettings& limit : limits) {
    if (limit.name == name) return &limit;
  }
  return nullptr;
}

const Value* Config::find_value(std::string_view path) const noexcept {
  for (const Value& value : values) {
    if (value.path == path) return &value;
  }
  return nullptr;
}

std::string_view name_of(Clock value) noexcept {
  return value == Clock::Tsc ? "tsc" : "boottime";
}

std::string_view name_of(LockMemory value) noexcept {
  switch (value) {
    case LockMemory::Auto: return "auto";
    case LockMemory::Yes: return "true";
    case LockMemory::No: return "false";
  }
  return "auto";
}

std::string_view name_of(HugePages value) noexcept {
  switch (value) {
    case HugePages::Auto: return "auto";
    case HugePages::Always: return "always";
    case HugePages::Never: return "never";
  }
  return "auto";
}

std::string_view name_of(LogLevel value) noexcept {
  switch (value) {
    case LogLevel::Trace: return "trace";
    case LogLevel::Debug: return "debug";
    case LogLevel::Info: return "info";
    case LogLevel::Warn: return "warn";
    case LogLevel::Error: return "error";
  }
  return "info";
}

std::string_view name_of(LogFormat value) noexcept {
  return value == LogFormat::Json ? "json" : "text";
}

}  // namespace cutwater::config
