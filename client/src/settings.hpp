// SPDX-License-Identifier: Apache-2.0
// Settings: what Client::open() was told, by its arguments and the environment, checked and with
// the defaults filled in. An argument wins over the environment, as with addresses.
//
//   CUTWATER_IF_ABSENT   fail, deny, allow, in-process; for a program that did not choose itself
//   CUTWATER_ENABLED     true, false, fallback; false: limits of this process are off
//
// Reads the environment, once. Thread safety: as getenv(); then a value.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <cutwater/client.hpp>
#include <cutwater/result.hpp>

namespace cutwater::client {

/// Bounds of ClientOptions::ask_timeout.
inline constexpr Nanos kAskTimeoutMin = std::chrono::milliseconds{1};
inline constexpr Nanos kAskTimeoutMax = std::chrono::seconds{60};

struct Settings {
  std::string address;           ///< as given; empty: found anew at each attempt
  std::string name;              ///< said in HELLO
  Nanos timeout{0}, ask_timeout{0};
  IfAbsent if_absent = IfAbsent::Fail;
  bool off = false;              ///< CUTWATER_ENABLED=false
  std::function<void(std::string_view)> log;   ///< never empty
};

/// InvalidArgument names the option or the variable, what it may be, and what it was.
Result<Settings> settings_for(std::string_view address, const ClientOptions& options);

/// "fail", "deny", "allow", "in-process".
std::string_view name_of(IfAbsent choice) noexcept;

}  // namespace cutwater::client
