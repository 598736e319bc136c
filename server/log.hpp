// SPDX-License-Identifier: Apache-2.0
// The daemon's log. A call never waits: the line is formatted, put into a bounded queue and written
// by a thread of its own. When the queue is full, the line is dropped and counted; the count is
// told in a line of its own as soon as there is room again (C134).
//
// Where to: stderr, or a file that SIGUSR1 opens anew. On a stderr that is journald's, lines begin
// with its `<N>` priority and carry no time. A line that repeats the one before is counted, not
// repeated; the count comes when another line comes, or with flush_repeats().
// No line ever holds a caller's key at level info or above; control characters become '?'.
// Memory: at most `queue` lines and `queue` * 256 bytes wait (C135); a line is cut at kMaxLine.
// Thread safety: every method from any thread. No exception leaves.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <cutwater/result.hpp>

#include "config/config.hpp"

namespace cutwater::server {

class LogWriter;

class Log {
 public:
  /// Bytes of one line, its end included; a pipe takes so many in one piece.
  static constexpr std::size_t kMaxLine = 4096;
  /// Mean length of a line the queue's memory is bounded by.
  static constexpr std::size_t kMeanLine = 256;

  /// System when the file cannot be opened. `journal`: see stderr_is_journal().
  static Result<std::unique_ptr<Log>> open(const config::Log& settings, bool journal);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(config::LogLevel level, std::string_view text) noexcept;

  template <class... Args>
  void debug(fmt::format_string<Args...> form, Args&&... args) noexcept {
    put(config::LogLevel::Debug, form, fmt::make_format_args(args...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> form, Args&&... args) noexcept {
    put(config::LogLevel::Info, form, fmt::make_format_args(args...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> form, Args&&... args) noexcept {
    put(config::LogLevel::Warn, form, fmt::make_format_args(args...));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> form, Args&&... args) noexcept {
    put(config::LogLevel::Error, form, fmt::make_format_args(args...));
  }

  /// Takes over level, format and target of a reload; System when the new file cannot be opened
  /// (then nothing changes). The queue's size stays.
  Result<void> change(const config::Log& settings);
  /// Opens the file of the same path anew (after a rotation). On stderr nothing happens.
  void reopen() noexcept;
  /// Says "the last line came N times more" when it did. Called each minute.
  void flush_repeats() noexcept;

  /// Lines that were dropped because the queue was full or the target refused them.
  std::uint64_t dropped() const noexcept;

  /// Lets the writer finish, but waits no longer than `patience`; true when everything went out.
  /// A writer stuck on a pipe nobody reads is left behind.
  bool close(std::chrono::milliseconds patience) noexcept;

 private:
  Log(const config::Log& settings, bool journal, std::shared_ptr<LogWriter> writer);
  void put(config::LogLevel level, fmt::string_view form, fmt::format_args args) noexcept;
  void emit(config::LogLevel level, std::string_view text);

  struct Front;
  std::unique_ptr<Front> front_;
};

/// True when stderr is the stream journald named in $JOURNAL_STREAM (`device:inode`).
bool stderr_is_journal(const char* journal_stream) noexcept;

}  // namespace cutwater::server
