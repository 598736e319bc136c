// SPDX-License-Identifier: Apache-2.0
// Notices that the configuration file became another one: at once by inotify on its folder, and at
// the latest after kLookEvery by its fingerprint, which follows every link on the way. So it also
// sees a folder that was replaced as a whole, and the swapped `..data` link by which container
// platforms put a new version in place (the file's own name never changes there).
//
// A change is told when it has settled: two looks kSettle apart see the same fingerprint, so a file
// that an editor is still writing is read once, afterwards. A file that is not there is no change.
// Looking may block (a network disk): a thread of its own does it; `changed` is called on the loop.
// No inotify (too many watches on this host): the fingerprint alone decides; `why_slow` says so.
// Thread safety: the loop's thread, but for the thread in here.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <asio.hpp>

#include "shm/directory.hpp"

namespace cutwater::server {

class FileWatch {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{5000};
  static constexpr std::chrono::milliseconds kSettle{100};

  /// Begins to watch `path`. `known`: its fingerprint when it was read, so that a change since then
  /// is told too; empty: as it is now.
  FileWatch(asio::io_context& loop, std::string path, std::function<void()> changed,
            std::chrono::milliseconds look_every = kLookEvery, std::string known = {});
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  /// Why changes are noticed only every kLookEvery; empty when inotify works.
  const std::string& why_slow() const noexcept { return why_slow_; }

 private:
  void run(const std::weak_ptr<bool>& alive);
  bool watch_folder();
  bool wait(std::chrono::milliseconds patience);

  asio::io_context& loop_;
  const std::string path_;
  const std::function<void()> changed_;
  const std::chrono::milliseconds look_every_;
  std::string why_slow_;
  shm::UniqueFd inotify_, stop_;
  std::string known_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::thread thread_;
};

/// What the path leads to now: its resolved name, device, inode, size and times of the file.
/// Empty: nothing that can be read.
std::string fingerprint_of(const std::string& path);

}  // namespace cutwater::server
