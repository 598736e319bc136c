// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

#include <algorithm>
#include <array>

#include "config/count.hpp"
#include "config/decimal.hpp"
#include "config/duration.hpp"
#include "config/schema_table.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::array<std::string_view, 3> kNamedSections = {"limits", "breakers",
                                                            "bulkheads"};

std::vector<Key> whole_table() {
  std::vector<Key> table;
  for (const auto rows : {daemon_rows(), limit_rows(), breaker_rows(), bulkhead_rows(),
                          log_rows()}) {
    table.insert(table.end(), rows.begin(), rows.end());
  }
  return table;
}

}  // namespace

std::span<const Key> schema() {
  static const std::vector<Key> kTable = whole_table();
  return kTable;
}

std::span<const std::string_view> named_sections() { return kNamedSections; }

std::string_view section_of(std::string_view block) {
  for (const std::string_view section : kNamedSections) {
    const std::string_view rest = block.substr(std::min(section.size(), block.size()));
    if (block.starts_with(section) && rest.starts_with(".*")) return section;
  }
  return {};
}

std::string title_of(std::string_view block) {
  std::string title(block);
  if (const std::size_t star = title.find(".*"); star != std::string::npos) {
    title.replace(star, 2, ".NAME");
  }
  if (const std::size_t star = title.find(".*"); star != std::string::npos) {
    title.replace(star, 2, ".KEY");
  }
  return title;
}

std::span<const Key> keys_of(std::string_view block) {
  const auto in_block = [&](const Key& key) { return key.block == block; };
  const auto table = schema();
  const auto first = std::find_if(table.begin(), table.end(), in_block);
  const auto last = std::find_if_not(first, table.end(), in_block);
  return {first, last};
}

bool is_scalar(Kind kind) {
  switch (kind) {
    case Kind::Users:
    case Kind::Groups:
    case Kind::Block:
    case Kind::Calendar:
    case Kind::Windows:
    case Kind::Keys:
    case Kind::Classes: return false;
    default: return true;
  }
}

std::vector<std::string_view> blocks() {
  std::vector<std::string_view> found;
  for (const Key& key : schema()) {
    if (found.empty() || found.back() != key.block) found.push_back(key.block);
  }
  return found;
}

std::vector<std::string_view> children_of(std::string_view block) {
  std::vector<std::string_view> names;
  for (const Key& key : schema()) {
    std::string_view name = key.name;
    if (key.block != block) {
      std::string_view inner = key.block;
      if (!block.empty()) {
        const bool below = inner.size() > block.size() && inner[block.size()] == '.';
        if (!below || !inner.starts_with(block)) continue;
        inner.remove_prefix(block.size() + 1);
      }
      name = inner.substr(0, inner.find_first_of(".["));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

const Key* find_key(std::string_view block, std::string_view name) {
  for (const Key& key : keys_of(block)) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string text_of(const Key& key, std::uint64_t number) {
  const auto words = split_words(key.words);
  switch (key.kind) {
    case Kind::Bool: return number != 0 ? "true" : "false";
    case Kind::Choice:
    case Kind::State:
    case Kind::Lease:
      return number < words.size() ? std::string(words[number]) : std::to_string(number);
    case Kind::Percent:
      return number == rule::kOffPpm ? std::string(words.front()) : format_percent(number);
    case Kind::Decimal: return format_decimal(number);
    case Kind::OffDuration:
      return number == 0 ? std::string(words.front()) : format_duration(number);
    case Kind::Wait:
      return number == rule::kWaitForever ? std::string(key.words) : format_duration(number);
    case Kind::Duration: return format_duration(number);
    default: return std::to_string(number);
  }
}

std::string range_text(const Key& key) {
  const auto counts = [&] { return std::to_string(key.min) + ".." + std::to_string(key.max); };
  const auto words = split_words(key.words);
  switch (key.kind) {
    case Kind::Name: return "a name";
    case Kind::Choice:
    case Kind::LockMemory:
    case Kind::OnFull: return listing(words);
    case Kind::Count: return counts();
    case Kind::Lease: return listing(words) + " or " + counts();
    case Kind::Duration: return format_duration(key.min) + ".." + format_duration(key.max);
    case Kind::Rate: return "1 per 3660d..10000000/s";
    case Kind::Mode: return "octal 0..0777";
    case Kind::Place: return "an absolute path, " + listing(words);
    case Kind::Target: return "stderr or file:PATH";
    case Kind::Text: return "one line of at most " + std::to_string(key.max) + " bytes";
    case Kind::Group: return "a group, name or number";
    case Kind::Users: return "a list of users";
    case Kind::Groups: return "a list of groups";
    case Kind::Bool: return "true or false";
    case Kind::Enabled: return "true, false or [" + std::string(key.words) + "]";
    case Kind::True: return "true";
    case Kind::Size: return format_size(key.min) + ".." + format_size(key.max);
    case Kind::Zone: return "a time zone";
    case Kind::Moment: return "a moment such as 2030-01-01T00:00:00Z";
    case Kind::Block: return "a block of " + listing(children_of(key.words));
    case Kind::Calendar: return "{ count: 500, per: month, zone: Europe/Berlin }";
    case Kind::Windows: return "a list of 1..6 windows";
    case Kind::Keys: return "a map of keys, KEY: { rate: 100/s }";
    case Kind::Percent: return listing(words) + " or 0..100 %";
    case Kind::Decimal: return format_decimal(key.min) + ".." + format_decimal(key.max);
    case Kind::OffDuration:
      return listing(words) + " or " + format_duration(key.min) + ".." + format_duration(key.max);
    case Kind::Wait:
      return format_duration(key.min) + ".." + format_duration(key.max) + " or " +
             std::string(key.words);
    case Kind::WindowSize: return "1..65535 calls or 100ms..24h";
    case Kind::State: return listing(words);
    case Kind::Decision: return "rate, all-succeed, { rate-over: M } or { successes: k }";
    case Kind::Ramp: return "off, auto or { steps: [25, 50, 100], over: 5s }";
    case Kind::Classes: return "a list of classes";
  }
  return {};
}

}  // namespace cutwater::config
