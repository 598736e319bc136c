// SPDX-License-Identifier: Apache-2.0
// Reading the access log of a web server: who asked, and when. Common and Combined format:
//
//   198.51.100.7 - alice [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 1234 "referer" "agent"
//
// The client is the first field, any bytes without a blank. What follows the size is not looked at,
// so formats that append fields are read too. A line that cannot be read is counted and the reader
// goes on; the first three are kept with their number and the reason. Bounds: kMaxLogLine bytes a
// line (a longer one is counted as unreadable and passed over), kMaxKeyBytes a client. Memory does
// not grow with the log. The bytes are untrusted; fuzzed by tests/fuzz/log_fuzz.cpp. Thread safety:
// one thread. No exception leaves but bad_alloc when the buffer cannot be had.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

namespace cutwater::ctl {

inline constexpr std::size_t kMaxLogLine = std::size_t{64} << 10;
inline constexpr std::size_t kShownLogFaults = 3;

struct LogEntry {
  std::string_view client;    ///< points into the line
  std::int64_t stamp_ns = 0;  ///< since 1970-01-01T00:00:00Z, whole seconds; 1970..2200
};

/// Reads one line (without its end). nullptr when it could, else why not, as a literal.
const char* parse_log_line(std::string_view line, LogEntry& out) noexcept;

struct LogFault {
  std::uint64_t line = 0;  ///< from 1
  std::string reason;
};

class AccessLog {
 public:
  /// Gives up to `size` more bytes; 0 = the end. An error of reading is the end too, see failed().
  using Source = std::function<std::size_t(char* place, std::size_t size)>;

  explicit AccessLog(Source source);
  /// A file, or `-` for standard input. InvalidArgument or NotPermitted: it cannot be read.
  static Result<AccessLog> open(const std::string& path);

  /// The next line that can be read; false at the end. `out.client` is good until the next call.
  bool next(LogEntry& out);
  /// Counts the line of the last next() as unreadable after all, for a reason of the caller's.
  void reject(const char* reason);

  std::uint64_t lines() const noexcept { return lines_; }  ///< seen so far, readable or not
  std::uint64_t skipped() const noexcept { return skipped_; }
  const std::vector<LogFault>& faults() const noexcept { return faults_; }
  std::uint64_t bytes() const noexcept { return bytes_; }  ///< consumed so far
  std::uint64_t size() const noexcept { return size_; }    ///< of the file; 0 = unknown
  /// What went wrong while reading, or empty.
  const std::string& failed() const noexcept { return *failed_; }

 private:
  /// The next line as it is; `too_long` when it was cut. False at the end.
  bool next_line(std::string_view& line, bool& too_long);
  bool fill();

  Source source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool at_end_ = false;
  std::uint64_t lines_ = 0, skipped_ = 0, bytes_ = 0, size_ = 0;
  std::vector<LogFault> faults_;
  std::shared_ptr<std::string> failed_;
};

}  // namespace cutwater::ctl
