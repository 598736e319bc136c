// SPDX-License-Identifier: Apache-2.0
#include "src/settings.hpp"

#include <unistd.h>

#include <cerrno>      // program_invocation_short_name
#include <cstdlib>

#include "wire/message.hpp"

namespace cutwater::client {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

Error wrong(std::string_view what, std::string_view may_be, std::string_view was) {
  return {Errc::InvalidArgument, std::string(what) + " is " + std::string(may_be) + ", not \"" +
                                     std::string(was.substr(0, 64)) + "\""};
}

Result<IfAbsent> choice_of_environment() {
  const std::string word = variable("CUTWATER_IF_ABSENT");
  if (word.empty()) return IfAbsent::Fail;
  for (const IfAbsent choice :
       {IfAbsent::Fail, IfAbsent::Deny, IfAbsent::Allow, IfAbsent::InProcess}) {
    if (word == name_of(choice)) return choice;
  }
  return wrong("CUTWATER_IF_ABSENT", "fail, deny, allow or in-process", word);
}

/// One write a line, so that lines of several threads and processes do not mix.
void log_to_stderr(std::string_view line) {
  const std::string text = "cutwater: " + std::string(line) + "\n";
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string_view name_of(IfAbsent choice) noexcept {
  switch (choice) {
    case IfAbsent::Fail: return "fail";
    case IfAbsent::Deny: return "deny";
    case IfAbsent::Allow: return "allow";
    case IfAbsent::InProcess: return "in-process";
  }
  return "unknown";
}

Result<Settings> settings_for(std::string_view address, const ClientOptions& options) {
  if (options.name.size() > wire::kMaxClientName) {
    return Error{Errc::InvalidArgument, "a client's name has at most 64 bytes, not " +
                                            std::to_string(options.name.size())};
  }
  if (options.ask_timeout < kAskTimeoutMin || options.ask_timeout > kAskTimeoutMax) {
    return Error{Errc::InvalidArgument, "ask_timeout is 1 ms to 60 s, not " +
                                            std::to_string(options.ask_timeout.count()) + " ns"};
  }
  Settings out;
  out.address = address;
  out.name = options.name.empty() ? program_invocation_short_name : options.name;
  out.timeout = options.timeout;
  out.ask_timeout = options.ask_timeout;
  if (options.if_absent) {
    out.if_absent = *options.if_absent;
  } else {
    const auto chosen = choice_of_environment();
    if (!chosen) return chosen.error();
    out.if_absent = *chosen;
  }
  if (out.if_absent == IfAbsent::InProcess && options.in_process.empty()) {
    return Error{Errc::InvalidArgument,
                 "if_absent (or CUTWATER_IF_ABSENT) is in-process, but ClientOptions::in_process "
                 "has no limits for it"};
  }
  const std::string enabled = variable("CUTWATER_ENABLED");
  if (!enabled.empty() && enabled != "true" && enabled != "false" && enabled != "fallback") {
    return wrong("CUTWATER_ENABLED", "true, false or fallback", enabled);
  }
  out.off = enabled == "false";
  out.log = options.log ? options.log : log_to_stderr;
  return out;
}

}  // namespace cutwater::client
