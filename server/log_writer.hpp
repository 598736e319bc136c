// SPDX-License-Identifier: Apache-2.0
// The writing end of the log: a bounded queue and the one thread that may be stuck on a pipe, a
// terminal or a disk, so that nobody else is.
//
// The thread holds the object alive by itself (shared_ptr): a writer that never comes back from the
// kernel is left behind at exit and harms nothing. stderr is shared with others, so its flags are
// never changed: sockets are written with MSG_DONTWAIT, everything else after poll() says that a
// whole line fits. A file is opened with O_NONBLOCK (a FIFO without a reader does not stop the
// open).
// Thread safety: every method from any thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include <cutwater/result.hpp>

#include "shm/directory.hpp"

namespace cutwater::server {

class LogWriter : public std::enable_shared_from_this<LogWriter> {
 public:
  struct Bounds {
    std::size_t lines = 4096;
    std::size_t bytes = 4096 * 256;
  };

  /// Empty path: stderr.
  static Result<std::shared_ptr<LogWriter>> start(const std::string& path, Bounds bounds);

  /// Puts a line (with its newline) into the queue, or counts it as dropped. Never waits.
  void push(std::string line) noexcept;
  /// Writes to another file from the next line on; System when it cannot be opened.
  Result<void> retarget(const std::string& path);
  void reopen() noexcept;
  std::uint64_t dropped() const noexcept;
  /// True when the queue ran empty within `patience`. Afterwards nothing is written any more.
  bool stop(std::chrono::milliseconds patience) noexcept;

  /// Makes a line of ours out of a text: used for the count of dropped lines.
  using Formatter = std::string (*)(std::uint64_t dropped);
  void set_drop_line(std::string prefix, std::string suffix);

 private:
  explicit LogWriter(Bounds bounds) : bounds_(bounds) {}
  void run();
  bool write_line(int fd, const std::string& line);
  bool wait_writable(int fd);
  bool giving_up() const;
  std::string next_line(std::unique_lock<std::mutex>& lock);

  const Bounds bounds_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0, dropped_told_ = 0;
  std::string drop_prefix_, drop_suffix_;
  std::string path_;                       // empty: stderr
  std::shared_ptr<shm::UniqueFd> file_;    // null: stderr; shared with a write under way
  bool busy_ = false;                      // a line is being written
  bool stopping_ = false, ended_ = false;
};

/// Opens a log file for appending; a FIFO without a reader is opened too.
Result<shm::UniqueFd> open_log_file(const std::string& path);

}  // namespace cutwater::server
