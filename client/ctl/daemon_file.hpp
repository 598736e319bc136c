// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration file as the daemon itself would read it now, beside what it runs by.
//
//   const config::Pairs told = told_beside(rows);             // of READ config
//   config::LoadOutcome outcome = load_beside(file, told);
//
// Reads files as the caller may; never writes. Thread safety: one thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "ctl/look.hpp"

namespace cutwater::ctl {

/// What the daemon was told beside its file: values whose origin is its command line or its
/// environment. They hold for another file too.
config::Pairs told_beside(const Rows& rows);

/// A file as that daemon would read it.
config::LoadOutcome load_beside(const std::string& file, const config::Pairs& told);

/// The configuration in force, read from the daemon's own file: only when that file still has the
/// hash the daemon runs by.
std::optional<config::Config> running_config(Look& look, const config::Pairs& told);

/// What the running settings alone can be compared by: their values, and what they reserve.
config::Config values_config(const Rows& rows);

/// Why a reload of `next` would be refused, as the daemon says it.
std::vector<config::Finding> refusals(const config::Config& running, const config::Config& next);

/// How the daemon's own file stands beside what it runs by.
struct FileState {
  std::string file;                    ///< empty: there is none, or nobody knows it
  std::vector<std::string> errors;     ///< a start or reload is refused; a line each
  std::vector<std::string> refused;    ///< a reload is refused, a restart is not; a line each
  bool changed = false;                ///< good, and not what the daemon runs by
};
/// `status` is the row of READ status. A file that this user may not read is not judged.
FileState look_at_file(Look& look, const wire::Value& status);

}  // namespace cutwater::ctl
