// SPDX-License-Identifier: Apache-2.0
// Acts by hand that go on holding against what a configuration file says of the same thing: a mode
// of a limit, a ban or an override of a key that the file lists too. A reload does not end an act.
//
// Keys are shown by the daemon hashed or not at all, so it is asked for each key of the file in
// whose limit an act stands: at most kKeysLookedUp of them; the last line says how many were not.
// Thread safety: one thread.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "ctl/look.hpp"

namespace cutwater::ctl {

inline constexpr std::size_t kKeysLookedUp = 1000;

/// A line each. Empty without a daemon: the memory does not hold the journal.
std::vector<std::string> held_by_hand(Look& look, const config::Config& next);

}  // namespace cutwater::ctl
