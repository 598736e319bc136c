// SPDX-License-Identifier: Apache-2.0
// The journal: manual acts on a disk, so that they come back after a reboot. One file of lines
// (act.hpp), appended to; what is written is on the disk (fdatasync) before it is said to be saved.
//
// Where: instance.state-directory; `auto` is the first of $STATE_DIRECTORY, /var/lib/cutwater/NAME,
// $XDG_STATE_HOME/cutwater/NAME that can be had; made 0700, ours, no links followed at the end. The
// file is locked for the daemon's life: two daemons never write one journal.
// Who writes: a thread of its own; the loop hands lines over and hears later. When a disk is full
// or gone, acts hold all the same, and the answer says that they are not saved; when it is slow,
// the loop hears after kPatience that it is not there yet, and later how it ended.
// Damage: a last line that was cut by a crash is dropped. Any other unreadable line is skipped and
// told; the file is kept as `journal.bad` then and written anew from what could be read.
// Removed or replaced under a running daemon: found at the next act, which writes all of it anew;
// what lies in its place is kept as `journal.bad` where there is none. A directory that is gone:
// the answer says that the act is not saved.
// Bounds: kMaxBytes are read; after kLinesBeforeCompaction lines more than stand, the file is
// written anew under another name and renamed (a crash leaves the old or the new one whole);
// kMaxQueued lines wait.
// Thread safety: the loop's thread; `Done` is called there.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <asio.hpp>
#include <sys/stat.h>

#include <cutwater/result.hpp>

#include "acts/act.hpp"
#include "shm/directory.hpp"

namespace cutwater::server {

struct StatePlan {
  std::string setting = "auto";        ///< instance.state-directory: auto, off or a path
  std::string instance = "main";
  std::string state_directory = {};    ///< $STATE_DIRECTORY
  std::string xdg_state_home = {};     ///< $XDG_STATE_HOME, or $HOME/.local/state
};

class Journal {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  static constexpr std::size_t kLinesBeforeCompaction = 4096;
  static constexpr std::size_t kMaxQueued = 1024;

  /// What was found, and what the operator should hear about it.
  struct Opened {
    std::unique_ptr<Journal> journal;
    std::vector<JournalEntry> entries;
    std::vector<std::string> remarks;
  };
  /// Never fails: a directory that cannot be had gives a journal that saves nothing, and a remark.
  static Opened open(asio::io_context& loop, const StatePlan& plan);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Below the second that a question of `cutwaterctl` may take, so that it hears of a slow disk.
  static constexpr std::chrono::milliseconds kPatience{500};

  /// Ok: it is on the disk. Called once, from the loop, in the order of the appends.
  using Done = std::function<void(const Result<void>&)>;
  /// Called at most once, before `done`, when the disk takes longer than kPatience.
  using Pending = std::function<void()>;
  /// One group of lines: all of them, or (after a crash in between) the first ones.
  void append(const std::vector<JournalEntry>& entries, Done done, Pending pending = {});
  /// True when so many lines do not stand any more that rewrite() is due.
  bool wants_rewrite(std::size_t standing) const noexcept;
  /// The file becomes exactly these entries; what was appended before is part of it or gone.
  void rewrite(const std::vector<JournalEntry>& entries, Done done);

  /// Path of the file, or empty: nothing is saved. `why_not`: for answers.
  const std::string& path() const noexcept { return path_; }
  const std::string& why_not() const noexcept { return why_not_; }

 private:
  struct Job {
    std::string bytes;
    bool whole = false;                ///< rewrite
    Done done;
  };
  explicit Journal(asio::io_context& loop) : loop_(loop) {}
  std::string open_file(const std::string& directory);
  std::vector<JournalEntry> read_all(std::vector<std::string>& remarks);
  void start();
  void run(const std::weak_ptr<bool>& alive);
  Result<void> write(const Job& job);
  bool is_in_place(const struct stat& ours) const;
  Result<void> put_back(const struct stat& ours, const std::string& more);
  Result<void> write_anew(const std::string& bytes);
  void hand_over(Job job);
  Done with_patience(Done done, Pending pending);

  asio::io_context& loop_;
  std::string path_, why_not_;
  shm::UniqueFd directory_, file_;
  std::size_t lines_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

/// The candidates in order.
std::vector<std::string> state_directory_candidates(const StatePlan& plan);

}  // namespace cutwater::server
