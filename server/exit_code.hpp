// SPDX-License-Identifier: Apache-2.0
// What cutwaterd's exit status tells a supervisor. server/README.md has the same table for people.
#pragma once
#include <cutwater/error.hpp>

namespace cutwater::server {

enum class ExitCode : int {
  Ok = 0,            ///< ended as asked
  Usage = 2,         ///< the command line makes no sense
  OtherDaemon = 3,   ///< another daemon holds the memory directory, or answers at the socket
  Invalid = 4,       ///< the configuration is refused, or damage cannot be put aside
  NotPossible = 5,   ///< not permitted, not on tmpfs, not ours, no memory: the system says no
};

/// The exit code for an error that ends the start.
constexpr ExitCode exit_code_for(Errc code) noexcept {
  switch (code) {
    case Errc::Busy: return ExitCode::OtherDaemon;
    case Errc::InvalidConfig:
    case Errc::InvalidArgument:
    case Errc::Damaged:
    case Errc::LayoutMismatch: return ExitCode::Invalid;
    default: return ExitCode::NotPossible;
  }
}

}  // namespace cutwater::server
