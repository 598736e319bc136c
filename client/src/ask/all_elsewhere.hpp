// SPDX-License-Identifier: Apache-2.0
// acquire_all() and peek_all() of limits that are away: see all_elsewhere.cpp.
#pragma once
#include <array>
#include <span>

#include <cutwater/client.hpp>

#include "src/ask/ask_watcher.hpp"
#include "src/ask/asking.hpp"
#include "src/daemon_link.hpp"

namespace cutwater::detail {

/// A list as it is sent: a limit named twice with the same key counts the sum, as far as one item
/// can say it; the rest is added by whoever decides.
struct MergedAsks {
  explicit MergedAsks(std::span<const LimitAsk> asks) noexcept;
  std::array<client::NamedAsk, kMaxLimitsAtOnce> named;
  std::array<std::size_t, kMaxLimitsAtOnce> place{};   ///< of each ask among them
  std::size_t count = 0;
  std::span<const client::NamedAsk> asks() const noexcept { return {named.data(), count}; }
};

/// Admission's and Client's friend.
struct AllElsewhere {
  /// True: answered, `out` is whole. False: a list to be looked at in memory, or a wrong one.
  static bool ask(std::span<const LimitAsk> asks, bool charge, Admission& out) noexcept;

  /// The answer of an ENTER of `sent`, as one of `asks`.
  static void fill(std::span<const LimitAsk> asks, const MergedAsks& sent,
                   client::AllTaking& told, Admission& out) noexcept;
  /// if_absent answers.
  static void absent(std::span<const LimitAsk> asks, bool charge, client::DaemonLink& link,
                     Admission& out) noexcept;

 private:
  static bool watched(std::span<const LimitAsk> asks, bool charge, AskWatcher& watcher,
                      Admission& out) noexcept;
  static client::AskEnd over_socket(std::span<const LimitAsk> asks, bool charge,
                                    client::DaemonLink& link, client::AskSocket& socket,
                                    Admission& out) noexcept;
};

}  // namespace cutwater::detail
