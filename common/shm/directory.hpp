// SPDX-License-Identifier: Apache-2.0
// The memory directory: found, checked, locked.
//
// Candidates in order (design 4.1): the setting, $RUNTIME_DIRECTORY, /run/cutwater/NAME,
// $XDG_RUNTIME_DIR/cutwater/NAME, /dev/shm/cutwater-UID/NAME: the first that is on tmpfs and ours.
// Opened step by step with O_DIRECTORY|O_NOFOLLOW, owner checked, made 0700. An explicit setting
// that fails is an error and never skipped. The lock: flock on the file `lock`, held for the
// daemon's life, never passed on (close-on-exec). The kernel drops it with the process, whatever
// kills it, so no stale lock exists (C044, C126).
#pragma once
#include <string>
#include <vector>

#include <cutwater/result.hpp>

namespace cutwater::shm {

/// A descriptor that is closed by its destructor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept { reset(other.release()); return *this; }
  ~UniqueFd() { reset(); }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { const int fd = fd_; fd_ = -1; return fd; }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

struct DirectoryQuery {
  std::string setting;                 ///< empty or "auto" = look for one
  std::string instance = "main";
  std::string runtime_directory;  ///< $RUNTIME_DIRECTORY (first of a colon list), empty = unset
  std::string xdg_runtime_dir;         ///< $XDG_RUNTIME_DIR
  bool create = true;  ///< make missing parts (the daemon); false: only look (the CLI)
};

struct MemoryDirectory {
  std::string path;
  UniqueFd fd;
};

/// NotTmpfs, NotOurs, System; the text names every candidate looked at, why not, and the mount to
/// add.
Result<MemoryDirectory> open_directory(const DirectoryQuery& query);
/// The candidates in order, for messages and for the address search of clients.
std::vector<std::string> directory_candidates(const DirectoryQuery& query);

/// Takes the lock or says Busy with the pid that holds it (as written by the holder; for people
/// only).
Result<UniqueFd> take_lock(const MemoryDirectory& directory);
/// True when a daemon holds the lock right now. Never keeps it.
bool lock_is_held(const MemoryDirectory& directory);

}  // namespace cutwater::shm
