// SPDX-License-Identifier: Apache-2.0
// Decides what a HELLO gets: refused, or welcome with which rights and which way to the memory.
//
//   no right at all                 refused: ERROR not_permitted with the reason and the remedy
//   map, layouts fit, clocks agree  mode map (a row and descriptors) or map read-only, as wanted
//   map, but one of these does not  mode ask and `why`: the same limits over the socket, loudly
//   map, but only access.ask        the same
//
// Clocks (C032): the inode of the time name space is equal: the same clock, whatever the reading
// says, since a late reading is only a slow way here; but a reading ahead of ours by more than
// kClockSlackNs cannot be. Inode unknown on one side: the reading must lie within kClockSlackNs.
// Inode different: never. On a stepped segment time is a word in the memory: nothing is compared.
// Pure: no clock, no socket, no memory. Thread safety: functions without state.
#pragma once
#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "wire/message.hpp"

namespace cutwater::server {

inline constexpr std::uint64_t kClockSlackNs = 1'000'000'000;

/// What the daemon knows about itself and the moment.
struct AdmissionFacts {
  std::uint16_t layout_major = 0;
  std::uint16_t layout_minor = 0;
  std::uint64_t features_required = 0;
  std::uint64_t time_namespace = 0;    ///< inode of ours; 0 = unknown
  std::uint64_t boottime_ns = 0;       ///< CLOCK_BOOTTIME when HELLO was read
  bool stepped = false;
};

struct Admission {
  bool refused = false;
  std::string reason;                  ///< refused: for the ERROR and for the log
  wire::Want mode = wire::Want::Ask;
  std::string why;                     ///< why less than wanted, or ""
  std::uint8_t rights = 0;             ///< wire::kRight* bits
};

/// wire::kRight* bits of somebody: use = may ask, look, steer.
std::uint8_t rights_of(const config::Peer& peer, const config::Access& access);

Admission admit(const wire::Hello& hello, const config::Peer& peer, const config::Access& access,
                const AdmissionFacts& facts);

}  // namespace cutwater::server
