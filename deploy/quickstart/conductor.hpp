// SPDX-License-Identifier: Apache-2.0
// Conductor: the parent's side of the main job. Asks the daemon for the limit's settings, moves its
// stepped clock, and opens one group of requests after the other.
#pragma once
#include <cstdint>
#include <string>

#include <cutwater/result.hpp>

#include "policy.hpp"
#include "processes.hpp"
#include "shared_log.hpp"

namespace cutwater::quickstart {

class Conductor {
 public:
  /// Unsupported: the daemon's clock is not stepped.
  static Result<Conductor> connect(const std::string& address);

  Result<Policy> policy(const std::string& limit) { return read_policy(link_, limit); }

  /// Moves the clock so far that no key can still be in debt, and begins counting time there: the
  /// memory may have been used before.
  Result<void> settle(const Policy& policy);

  /// Opens all groups in turn; returns when every request is decided.
  Result<void> run(const SharedLog& log, const Processes& workers);

  std::uint64_t steps() const noexcept { return steps_; }
  /// In a forked child: lets go of the parent's connection.
  void abandon() noexcept { link_.connection.abandon(); }

 private:
  explicit Conductor(Link link) : link_(std::move(link)) {}
  Result<void> step(std::uint64_t to_ns);

  Link link_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace cutwater::quickstart
