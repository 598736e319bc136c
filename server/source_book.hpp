// SPDX-License-Identifier: Apache-2.0
// What each source (a uid) does to the daemon: its open connections, its failed HELLOs, and when it
// was last spoken of in the log. Keeps one peer from costing the others more than its share.
//
// Bounds: listen.max-connections for all, max-connections-per-peer for one uid; more than
// kMaxFailedHellos in a minute and further connections are closed without an answer until the
// minute is over, but those of root and of the daemon's own uid, who may have to repair what is
// failing; a source's misdeeds are logged once a minute, the others counted. Entries without
// connections are dropped after a minute of quiet, at most kMaxSources are kept.
// Pure: time goes in as a number. Thread safety: one thread.
#pragma once
#include <cstdint>
#include <map>

namespace cutwater::server {

class SourceBook {
 public:
  /// May be changed at any time; connections there are stay.
  struct Bounds {
    std::uint32_t connections = 1024;
    std::uint32_t connections_per_source = 256;
  };
  static constexpr std::uint32_t kMaxFailedHellos = 30;
  static constexpr std::uint64_t kMinuteNs = 60'000'000'000;
  static constexpr std::size_t kMaxSources = 4096;

  /// `own_uid`: never silenced, as root.
  explicit SourceBook(std::uint32_t own_uid = 0) noexcept : own_uid_(own_uid) {}

  void set_bounds(Bounds bounds) noexcept { bounds_ = bounds; }
  const Bounds& bounds() const noexcept { return bounds_; }

  enum class Verdict {
    Welcome,
    TooManyInAll,       ///< ERROR 8, close
    TooManyOfSource,    ///< ERROR 8, close
    Silent,             ///< close without an answer
  };
  /// A connection of `source` was accepted. Counted as open only when the verdict is Welcome.
  Verdict opened(std::uint32_t source, std::uint64_t now_ns);
  /// A connection that was welcome ended.
  void closed(std::uint32_t source) noexcept;

  /// A HELLO failed. True: by this one the source is silenced, which is to be said.
  bool hello_failed(std::uint32_t source, std::uint64_t now_ns);

  /// True when a misdeed of this source may be logged now; it is then quiet for a minute.
  /// `unsaid`: how many were not logged since the last time.
  struct Say { bool now = false; std::uint64_t unsaid = 0; };
  Say may_log(std::uint32_t source, std::uint64_t now_ns);

  /// Forgets quiet sources. Called each minute.
  void forget_quiet(std::uint64_t now_ns);

  std::uint32_t connections() const noexcept { return connections_; }
  std::size_t sources() const noexcept { return sources_.size(); }

 private:
  struct Source {
    std::uint32_t connections = 0;
    std::uint32_t failed = 0;
    std::uint64_t failed_since_ns = 0;
    std::uint64_t logged_ns = 0;
    std::uint64_t unsaid = 0;
    bool logged = false;
    std::uint64_t seen_ns = 0;
  };
  Source& source(std::uint32_t uid, std::uint64_t now_ns);
  bool may_be_silenced(std::uint32_t uid) const noexcept { return uid != 0 && uid != own_uid_; }

  const std::uint32_t own_uid_;
  std::map<std::uint32_t, Source> sources_;
  std::uint32_t connections_ = 0;
  Bounds bounds_;
};

}  // namespace cutwater::server
