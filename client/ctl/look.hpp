// SPDX-License-Identifier: Apache-2.0
// Look: where answers come from. Asks the daemon with a deadline; when nobody answers, reads the
// memory files themselves, read-only, as root or the daemon's user may (P6, C137).
//
//   auto look = Look::open(settings);        // notes "daemon not running; read from /run/..."
//   if (!look) return complain(settings, look.error());
//   auto rows = look->read("limits");
//
// The daemon's refusal is an answer: then the memory is not tried. With --memory and no --address
// the memory is read without asking. A daemon that stops answering between two questions is left
// for the memory too. Whatever did not come from the daemon is remarked on standard error, so that
// no list ever looks like a daemon's answer when it is none; an error is returned when nothing
// could be read. Never writes a byte of the memory. Thread safety: one thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

#include "ctl/settings.hpp"
#include "rows/segment_rows.hpp"
#include "shm/directory.hpp"
#include "shm/segment.hpp"
#include "src/connection.hpp"

namespace cutwater::ctl {

using rows::EventRows;
using rows::Rows;

/// Pages of one READ before it is given up: 1000 rows each.
inline constexpr int kMaxPages = 1000;
/// The same of READ `keys`: a page has at least one row, or 2^16 slots of at most 2^31.
inline constexpr std::uint64_t kMaxKeyPages = std::uint64_t{1} << 22;

/// The memory files of an instance, mapped read-only.
struct Memory {
  shm::MemoryDirectory directory;
  shm::Segment segment;
  bool daemon_alive = false;  ///< the lock is held
};

/// Where a running daemon says its memory lies (--memory set to it); the settings as they are when
/// none answers.
Settings located(Settings settings);

/// Opens --memory, else the folder of the socket, else the first usual place with files in it.
/// NoDaemon: there are none; NotPermitted, NotOurs, Damaged, LayoutMismatch: there are, but.
Result<Memory> open_memory(const Settings& settings, bool check_boot = true);

/// A connection whose HELLO was answered. `want` is wire::Want::Ask.
struct Link {
  client::Connection connection;
  wire::Welcome welcome;
};
Result<Link> open_link(const Settings& settings);

class Look {
 public:
  enum class Voice : std::uint8_t { Notes, Quiet };  ///< whether a remark is printed
  static Result<Look> open(const Settings& settings, Voice voice = Voice::Notes);

  /// Rows of `what` (see rows/segment_rows.hpp), all pages; of one name where there is one.
  Result<Rows> read(std::string_view what, std::string_view name = {});
  /// Of `breakers` or `bulkheads` those that there is something to say of: at least all that are
  /// not plainly closed, or full. A daemon that knows no such filter tells all.
  Result<Rows> read_not_well(std::string_view what);
  /// One limit; with a key what it would answer. UnknownName lists the nearest names.
  Result<wire::Value> read_limit(std::string_view name,
                                 std::optional<std::string_view> key = std::nullopt,
                                 std::uint64_t cost = 1);
  /// The keys of a limit that are in debt (rows/key_rows.hpp), page by page in the order of the
  /// table. UnknownName lists the nearest names. After an error some pages may have been given.
  Result<void> read_keys(std::string_view limit, const std::function<void(Rows)>& page);
  /// One breaker or bulkhead, by READ `kind`. UnknownName lists the nearest names.
  Result<wire::Value> read_named(std::string_view kind, std::string_view name);
  /// The last openings of a breaker (empty: of all), newest first.
  Result<Rows> read_trips(std::string_view breaker, std::uint32_t most);
  /// Events from number `from` on, at most one page. Does not leave the daemon for the memory by
  /// itself: that may be another memory, with other numbers.
  Result<EventRows> read_events(std::uint64_t from);

  /// "daemon", or "memory".
  const char* source() const noexcept { return link_ ? "daemon" : "memory"; }
  /// "running", "not running", "does not answer", "not asked".
  const std::string& daemon() const noexcept { return daemon_; }
  /// What must be said beside an answer that is not the daemon's; else empty.
  const std::string& remark() const noexcept { return remark_; }
  /// As the daemon says; empty when it was not asked: the memory does not hold it.
  const std::string& instance() const noexcept { return instance_; }
  /// Memory directory, or the socket's path.
  const std::string& place() const noexcept { return place_; }
  /// The rights the daemon gave: 1 use, 2 look, 4 steer. None when it was not asked.
  std::optional<std::uint8_t> rights() const noexcept {
    return link_ ? std::optional<std::uint8_t>(link_->welcome.rights) : std::nullopt;
  }
  /// {source, daemon, remark?}: how every JSON document begins.
  wire::Value document() const;

 private:
  Look() = default;
  static Result<Look> from_memory(const Settings& settings, std::string daemon,
                                  const std::string& cause);
  static Result<Look> choose(const Settings& settings);
  Result<Rows> ask(wire::Read message);
  /// The error of a question about `name`: UnknownName when READ `kinds` does not list it.
  Error why_unknown(std::string_view kind, std::string_view name, const Error& error);
  /// After an error of the link: true when the memory is read from now on.
  bool fall_back(const Error& error);

  std::unique_ptr<Link> link_;
  std::unique_ptr<Memory> memory_;
  Settings settings_;
  std::string daemon_, remark_, instance_, place_;
};

}  // namespace cutwater::ctl
