// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a Unix socket, as the kernel says it: uid, gids, pid, and a pidfd that
// fires when that very process ends.
//
// With SO_PEERPIDFD (Linux 6.5) the pidfd is the peer's beyond doubt; before, pidfd_open of its pid
// is taken and believed only while the socket is not hung up. A peer in a pid name space we do not
// see has pid 0 and no pidfd: its life is then its connection's (spec memory 2.4, 12).
// Thread safety: functions without state.
#pragma once
#include <cstdint>

#include <cutwater/result.hpp>

#include "config/config.hpp"
#include "shm/directory.hpp"

namespace cutwater::server {

struct PeerProcess {
  config::Peer identity;               ///< uid, gid, supplementary groups at connect()
  std::uint32_t pid = 0;               ///< in our pid name space; 0 = not visible from here
  shm::UniqueFd pidfd;                 ///< none: no pid, or no descriptor left
  std::uint64_t start_time = 0;        ///< of pid, clock ticks since boot; 0 = unknown
  std::uint64_t pid_namespace = 0;     ///< inode; 0 = unknown
};

/// System when the kernel does not say who it is: nobody to talk to.
Result<PeerProcess> read_peer(int socket);

/// A pidfd for a process known from the memory: by pid and start time. Empty when that process is
/// gone or another one has its pid now. NoMemory when the process is there but no descriptor is.
Result<shm::UniqueFd> open_known_process(std::uint32_t pid, std::uint64_t start_time);

/// True when the process behind the pidfd has ended.
bool has_ended(const shm::UniqueFd& pidfd) noexcept;

/// What /proc/PID/maps says about our memory file `state`.
enum class Mapping { Gone, There, Unreadable };
Mapping look_for_mapping(std::uint32_t pid, std::uint64_t device, std::uint64_t inode);

}  // namespace cutwater::server
