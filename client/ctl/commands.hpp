// SPDX-License-Identifier: Apache-2.0
// The commands of cutwaterctl: each answers on standard output and returns the exit code
// (ctl/exit_code.hpp). None changes anything but `config reload` and `limit reset`, which the
// daemon carries out. Thread safety: one thread.
#pragma once
#include <cstdint>
#include <string>

#include "ctl/exit_code.hpp"
#include "ctl/settings.hpp"

namespace cutwater::ctl {

/// Instance, daemon, rules, fill of the table, counters of each limit, and advice where something
/// needs it.
Exit run_status(const Settings& settings);

/// Attached processes, in the order of their rows.
Exit run_clients(const Settings& settings);

Exit run_limit_list(const Settings& settings);
Exit run_limit_get(const Settings& settings, const std::string& name);
/// What the key's next ask would be answered; changes nothing. Exit::Refused when it would be
/// refused.
Exit run_limit_peek(const Settings& settings, const std::string& name, const std::string& key,
                    std::uint64_t cost);
/// Fills the key's bucket. Needs the daemon and the right to steer.
Exit run_limit_reset(const Settings& settings, const std::string& name, const std::string& key);

/// Every error and note of a file, and what it reserves. Exit::Invalid when there is an error. No
/// daemon.
Exit run_config_check(const Settings& settings, const std::string& file);
/// Lets the daemon read its file again; prints every error when it refuses.
Exit run_config_reload(const Settings& settings);

struct EventsAsk {
  bool follow = false;       ///< until interrupted
  std::uint64_t last = 100;  ///< so many before that; 0 = all that are kept
};
Exit run_events(const Settings& settings, const EventsAsk& ask);

/// Reads the whole memory and prints what cannot be. Exit::Invalid when there is a finding, or when
/// the files cannot be understood. Beside a running daemon too.
Exit run_verify(const Settings& settings);

struct ReplayCommand {
  std::string log;  ///< `-` = standard input
  std::string limit;
  std::string config;  ///< empty: $CUTWATER_CONFIG, else kDefaultConfig
};
inline constexpr const char* kDefaultConfig = "/etc/cutwater/cutwater.yaml";
Exit run_replay(const Settings& settings, const ReplayCommand& command);

}  // namespace cutwater::ctl
