// SPDX-License-Identifier: Apache-2.0
// What the operating system knows and the parser must not ask for itself: variables and names.
#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "config/override.hpp"

namespace cutwater::config {
namespace {

constexpr std::size_t kMaxRecordBytes = 1 << 20;   // of one entry of the user database

/// Calls `ask(buffer, size)` with a growing buffer until it no longer says ERANGE.
template <class Ask>
void with_buffer(Ask&& ask) {
  std::vector<char> buffer(4096);
  while (ask(buffer.data(), buffer.size()) == ERANGE && buffer.size() < kMaxRecordBytes) {
    buffer.resize(buffer.size() * 2);
  }
}

std::optional<std::uint32_t> find_user(const std::string& name) {
  passwd record{};
  passwd* found = nullptr;
  with_buffer([&](char* buffer, std::size_t size) {
    return getpwnam_r(name.c_str(), &record, buffer, size, &found);
  });
  if (found == nullptr) return std::nullopt;
  return record.pw_uid;
}

std::optional<std::uint32_t> find_group(const std::string& name) {
  group record{};
  group* found = nullptr;
  with_buffer([&](char* buffer, std::size_t size) {
    return getgrnam_r(name.c_str(), &record, buffer, size, &found);
  });
  if (found == nullptr) return std::nullopt;
  return record.gr_gid;
}

std::map<std::string, std::string> variables_of(const char* const* environment) {
  std::map<std::string, std::string> variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view line(*environment);
    const std::size_t split = line.find('=');
    if (split == std::string_view::npos) continue;
    variables.emplace(line.substr(0, split), line.substr(split + 1));
  }
  return variables;
}

}  // namespace

LoadOptions system_options(const char* const* environment) {
  LoadOptions options;
  options.environment = overrides_from(environment);
  auto variables = std::make_shared<std::map<std::string, std::string>>(variables_of(environment));
  options.variable = [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables->find(name);
    if (found == variables->end()) return std::nullopt;
    return found->second;
  };
  options.user_id = find_user;
  options.group_id = find_group;
  options.daemon_uid = geteuid();
  return options;
}

Pairs overrides_from(const char* const* environment) {
  Pairs overrides;
  for (const auto& [name, value] : variables_of(environment)) {
    const bool other = std::find(kOtherVariables.begin(), kOtherVariables.end(), name) !=
                       kOtherVariables.end();
    if (name.starts_with(kVariablePrefix) && !other) overrides.emplace_back(name, value);
  }
  return overrides;
}

}  // namespace cutwater::config
