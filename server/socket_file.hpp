// SPDX-License-Identifier: Apache-2.0
// The name of the Unix socket in the file system: made, taken over from a dead daemon, removed.
//
// Made closed (mode 0600, nobody can connect before listen()), then given its group and mode
// whatever the umask says, then opened for business. What lies at the path already decides:
//   nothing                              it is made
//   a socket nobody answers              left by a killed daemon: removed, made anew
//   a socket somebody answers            Busy: another instance has this address
//   a file, a directory, a symlink       NotOurs: refused, never touched
// Two daemons of different memory directories with one path: the flock on the path's folder, held
// only while looking and making, lets one of them see the other's socket.
// Removed at the end only when device and inode are still the ones we made (C126 d).
// Thread safety: one thread, before the loop runs (umask is the process's).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <cutwater/result.hpp>

#include "shm/directory.hpp"

namespace cutwater::server {

struct SocketSettings {
  std::string path;                        ///< absolute, at most 107 bytes
  std::uint32_t mode = 0660;
  std::optional<std::uint32_t> group;
  bool own_directory = false;              ///< make the path's folder (0755) when it is not there
  bool patient = true;                     ///< wait up to 1 s for another daemon that starts
};

class SocketFile {
 public:
  /// Makes the socket and listens. The caller holds the lock of its memory directory.
  static Result<SocketFile> listen(const SocketSettings& settings);

  int fd() const noexcept { return fd_.get(); }
  shm::UniqueFd take_fd() noexcept { return std::move(fd_); }
  const std::string& path() const noexcept { return path_; }

  /// True while the path still names the socket we made.
  bool is_in_place() const noexcept;
  /// True when nothing at all is at the path: somebody removed our name.
  bool is_gone() const noexcept;
  /// Removes the name, if it is still ours.
  void remove() noexcept;

 private:
  std::string path_;
  shm::UniqueFd fd_;
  std::uint64_t device_ = 0, inode_ = 0;
};

/// Where the socket goes when the configuration says `auto`: into the memory directory, or, when
/// `others` must reach it, into a directory of its own beside it (shm/socket_place.hpp).
std::string socket_path_for(const std::string& memory_directory, bool others);

}  // namespace cutwater::server
