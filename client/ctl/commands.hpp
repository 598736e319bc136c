// SPDX-License-Identifier: Apache-2.0
// The commands of cutwaterctl: each answers on standard output and returns the exit code
// (ctl/exit_code.hpp). Those that change something let the daemon do it (ctl/steer.hpp).
// Thread safety: one thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

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
/// The same in words: which window decides, by which rule (the limit's, an override, a ban), what
/// is left, when to come back. Exit::Refused when it would be refused.
Exit run_limit_explain(const Settings& settings, const std::string& name, const std::string& key,
                       std::uint64_t cost);
/// Keys as the limit's `show-keys` allows.
Exit run_limit_top(const Settings& settings, const std::string& name);
/// The keys of a limit that are in debt, as show-keys allows: those that need longest to be full
/// again first, or those that are refused. Reads the whole table; changes nothing.
inline constexpr std::uint64_t kKeysShown = 100, kMostKeys = 10'000;
struct KeysAsk {
  std::string limit;
  bool refused_first = false;
  std::uint64_t most = kKeysShown;   ///< 1..kMostKeys
};
Exit run_limit_keys(const Settings& settings, const KeysAsk& ask);

/// An act on one key of a limit, or on the limit. Acts need the daemon and the right to steer;
/// bans, overrides and shadow are journalled and come back after a reboot.
struct KeyAct {
  std::string limit, key, note;
  std::uint64_t for_ns = 0;  ///< 0 = until undone
};
/// Fills the key's bucket.
Exit run_limit_reset(const Settings& settings, const KeyAct& act);
/// Spends the tokens that are there now.
Exit run_limit_drain(const Settings& settings, const KeyAct& act);
/// Gives tokens back beyond what the limit owes; counted, outside every promise.
Exit run_limit_credit(const Settings& settings, const KeyAct& act, std::uint64_t tokens);
Exit run_limit_ban(const Settings& settings, const KeyAct& act);
Exit run_limit_unban(const Settings& settings, const KeyAct& act);
/// What a key gets instead of the limit's numbers; exactly one of the three is said.
struct OverrideAct {
  std::string rate;         ///< as in the configuration: 100/s
  std::uint64_t burst = 0;  ///< 0 = the rate's count
  bool unlimited = false, end = false;
};
Exit run_limit_override(const Settings& settings, const KeyAct& act, const OverrideAct& numbers);
Exit run_limit_shadow(const Settings& settings, const KeyAct& act, bool on);

/// Breakers: state as the next caller finds it, rates, probes, when to come back.
Exit run_breaker_list(const Settings& settings);
/// Settings, window, counters, durations, last manual act. Exit::Refused when a caller would be
/// refused now; so does explain, which says in words what decides next.
Exit run_breaker_get(const Settings& settings, const std::string& name);
Exit run_breaker_explain(const Settings& settings, const std::string& name);
/// The last openings of a breaker, or (empty name) of all: why, which classes and processes failed,
/// how long calls took, the thresholds in force.
inline constexpr std::uint64_t kTripsShown = 5;
Exit run_breaker_why(const Settings& settings, const std::string& name, std::uint64_t last);
/// Puts a breaker into a state by hand, or ends that. Needs the daemon and the right to steer.
struct BreakerHand {
  std::string_view verb;     ///< wire/breaker_verbs.hpp
  std::string breaker, note;
  std::uint64_t for_ns = 0;  ///< 0 = until undone
};
Exit run_breaker_steer(const Settings& settings, const BreakerHand& act);

/// Bulkheads: places in use, limit, calls in line, the oldest holder, times.
Exit run_bulkhead_list(const Settings& settings);
/// One of them with its counters. Exit::Refused when a caller that does not wait would be refused.
Exit run_bulkhead_get(const Settings& settings, const std::string& name);
/// What the next caller would get, in words: who holds how many places, who waits, whose the next
/// place is. Exit::Refused as for get.
Exit run_bulkhead_explain(const Settings& settings, const std::string& name);

/// What was done by hand: the acts that stand, and those that ended lately.
Exit run_journal_list(const Settings& settings);
Exit run_journal_undo(const Settings& settings, std::uint64_t id);

/// Every error and note of a file, and what it reserves. Exit::Invalid when there is an error. No
/// daemon.
Exit run_config_check(const Settings& settings, const std::string& file);
/// The settings in force, each with its origin; secrets as ***.
Exit run_config_show(const Settings& settings);
/// What `file` would change in the running configuration. Exit::Invalid when a reload of it would
/// be refused. The daemon need not run; then only settings that the memory holds are compared.
Exit run_config_diff(const Settings& settings, const std::string& file);
/// Lets the daemon read its file again; prints every error when it refuses. `dry`: only says what
/// would happen.
Exit run_config_reload(const Settings& settings, bool dry);

struct EventsAsk {
  bool follow = false;       ///< until interrupted
  std::uint64_t last = 100;  ///< so many before that; 0 = all that are kept
};
Exit run_events(const Settings& settings, const EventsAsk& ask);

/// Reads the whole memory and prints what cannot be. Exit::Invalid when there is a finding, or when
/// the files cannot be understood. Beside a running daemon too.
Exit run_verify(const Settings& settings);

/// Looks for what is not as it should be (ctl/doctor.hpp). Exit::Invalid when something is wrong.
Exit run_doctor(const Settings& settings);

struct ReplayCommand {
  std::string log;  ///< `-` = standard input
  std::string limit;
  std::string config;   ///< empty: $CUTWATER_CONFIG, else kDefaultConfig
  std::string against;  ///< empty: one replay; else the other configuration
};
inline constexpr const char* kDefaultConfig = "/etc/cutwater/cutwater.yaml";
Exit run_replay(const Settings& settings, const ReplayCommand& command);

}  // namespace cutwater::ctl
