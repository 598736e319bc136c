// SPDX-License-Identifier: Apache-2.0
// LeftBehind: sessions of this process whose Client ended without their daemon having heard it,
// because none answered. A row outlives daemons as long as its process lives, so what such a
// session held (places, probes, calls, whatever an unanswered ENTER took) would stay held for good.
// Whoever of the process talks to a daemon at the same path next says it for them: HELLO with their
// token, then BYE. A daemon that still knows the session gives its row back at once; a successor
// knows by the token whose row that is, and that its client is over, and gives it back 5 s later
// (an orphan's grace). A session of a Client that still lives is never here.
//
// Bounds: kMost sessions; one that finds no room, or no memory, is not kept: what it held comes
// back with the process's end or `max-hold`. After a failure the next attempt comes kPauseNs later.
// Forks: belongs to the process_life() it was left in; a child starts with none.
// Thread safety: everything from any thread; no lock is held while the daemon is talked to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/connection.hpp"

namespace cutwater::client {

class LeftBehind {
 public:
  static constexpr std::size_t kMost = 1024;
  static constexpr std::int64_t kPauseNs = 1'000'000'000;

  /// The session `token` (AskSocket::token(); empty: nothing is kept) at `path`. False: not kept.
  static bool add(const std::string& path, const std::string& token) noexcept;
  /// Ends all that were left at `path`, under the client name `name`. False: some are left.
  static bool end_all(const std::string& path, const std::string& name,
                      Deadline deadline) noexcept;
  /// Grows whenever one is kept. A look; costs nothing.
  static std::uint64_t added() noexcept;
  /// How many there are.
  static std::size_t size() noexcept;
};

}  // namespace cutwater::client
