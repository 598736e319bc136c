// SPDX-License-Identifier: Apache-2.0
// Where a daemon's Unix socket lies when nobody said otherwise: the daemon binds there, clients and
// tools look there. Both ends take the places from here.
//
//   MEMORY-DIRECTORY/cutwater.sock          nobody but root and the daemon's user may connect
//   MEMORY-DIRECTORY@socket/cutwater.sock   others may: the memory directory is 0700, so the socket
//                                           has a directory of its own, 0755, beside it
// '@' is no character of an instance's name, so the second is never somebody's memory directory.
// A client tries both, for each of directory_candidates() in its order.
#pragma once
#include <string>

namespace cutwater::shm {

inline constexpr const char* kSocketFile = "cutwater.sock";
inline constexpr const char* kSocketDirectorySuffix = "@socket";

/// The socket in the memory directory itself.
inline std::string private_socket_path(const std::string& memory_directory) {
  return memory_directory + "/" + kSocketFile;
}
/// The socket in a directory of its own.
inline std::string shared_socket_path(const std::string& memory_directory) {
  return memory_directory + kSocketDirectorySuffix + "/" + kSocketFile;
}

}  // namespace cutwater::shm
