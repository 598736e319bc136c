// SPDX-License-Identifier: Apache-2.0
// acquire_all() and peek_all() of limits that are away: see all_elsewhere.cpp.
#pragma once
#include <span>

#include <cutwater/client.hpp>

#include "src/ask_watcher.hpp"
#include "src/asking.hpp"
#include "src/daemon_link.hpp"

namespace cutwater::detail {

/// Admission's and Client's friend.
struct AllElsewhere {
  /// True: answered, `out` is whole. False: a list to be looked at in memory, or a wrong one.
  static bool ask(std::span<const LimitAsk> asks, bool charge, Admission& out) noexcept;

 private:
  static bool watched(std::span<const LimitAsk> asks, bool charge, AskWatcher& watcher,
                      Admission& out) noexcept;
  static client::AskEnd over_socket(std::span<const LimitAsk> asks, bool charge,
                                    client::DaemonLink& link, client::AskSocket& socket,
                                    Admission& out) noexcept;
  static void absent(std::span<const LimitAsk> asks, bool charge, client::DaemonLink& link,
                     Admission& out) noexcept;
};

}  // namespace cutwater::detail
