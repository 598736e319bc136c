// SPDX-License-Identifier: Apache-2.0
// Client::Core: what lies behind a Client. It owns the mapped segment, the records of the limits
// that were asked for, and, as the case may be, the connection to the daemon (opened clients) or
// the publisher and the clock (in-memory clients).
//
// For the project's own tools and tests too: view() shows the memory as the shm/ functions want it.
// Thread safety: limit() and the observers from any thread; the constructors and reload() from one.
// Fork: a child may use everything but the connection, which it has lost; see on_fork().
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <cutwater/client.hpp>

#include "shm/counters.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "src/calendar_renewal.hpp"
#include "src/child_rows.hpp"
#include "src/connection.hpp"
#include "src/hold_keeper.hpp"
#include "src/limit_state.hpp"

namespace cutwater::client {
class DaemonLink;
}

namespace cutwater {

namespace config {
struct Config;
}

class Client::Core {
 public:
  /// What an opened client has besides the memory.
  struct Attached {
    client::Connection connection;
    shm::RowGrant row;
    std::string instance;
    std::string session;                 ///< names the row to whoever answers there next
  };
  /// What an in-memory client has besides the memory.
  struct Private {
    std::unique_ptr<shm::RowTable> rows;
    std::unique_ptr<shm::Publisher> publisher;
    std::unique_ptr<detail::CalendarRenewal> renewal;  ///< of the Core, once it stands
    std::shared_ptr<SteppedClock::State> clock;      ///< nullptr: CLOCK_BOOTTIME
    shm::RowGrant row;
    std::string instance;
  };

  Core(shm::Segment segment, Private own);
  /// The core an opened Client stands on, with the memory it got first.
  Core(shm::Segment segment, Attached attached, std::unique_ptr<client::DaemonLink> link);
  /// The same without a memory: every record is away.
  explicit Core(std::unique_ptr<client::DaemonLink> link);
  /// A further memory of an opened Client.
  Core(shm::Segment segment, Attached attached, client::DaemonLink* link);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Client::open(), and std::bad_alloc.
  static Result<Client> open(std::string_view address, const ClientOptions& options);

  /// Client::in_memory() of a configuration that was read already, environment and all (replay).
  /// `unix_ns`: what a wall clock shows at the present moment of `clock`, for calendars and ends of
  /// bans.
  static Result<Client> in_memory(const config::Config& config, const SteppedClock& clock,
                                  std::optional<std::int64_t> unix_ns = {});

  /// The record of a limit; made at the first ask for its name.
  Result<detail::LimitState*> limit(std::string_view name);

  /// The same without a word: nullptr for a name that is unknown here, or without memory for it.
  detail::LimitState* find(std::string_view name) noexcept;
  /// The record of a name that was asked for before, or nullptr.
  detail::LimitState* known(std::string_view name) const noexcept;
  /// True: `owner` is a record of that name here.
  bool has_record(std::string_view name, const void* owner) const noexcept;
  /// A record that is decided through the link only. `name` is a name.
  Result<detail::LimitState*> add_away(std::string_view name, const detail::ToldLimit& told);

  /// The record of a breaker; made at the first ask for its name. UnknownName lists the nearest.
  Result<detail::BreakerRecord*> breaker(std::string_view name);
  /// The same of a bulkhead.
  Result<detail::BulkheadRecord*> bulkhead(std::string_view name);

  /// Segment time where limits are decided now.
  std::int64_t now_ns() noexcept;
  ClientStatus status() const;

  /// In-memory only: see Client::reload().
  Result<void> reload(std::string_view yaml);

  const shm::View& view() const noexcept { return view_; }
  /// Not of a core without a memory.
  const shm::Segment& segment() const noexcept { return *segment_; }
  std::string_view instance() const noexcept { return instance_; }
  /// Once, by open(), before anybody else has this core.
  void set_instance(std::string name) { instance_ = std::move(name); }
  bool is_private() const noexcept { return own_.has_value(); }
  /// Number of this client in this process; never used twice.
  std::uint64_t number() const noexcept { return number_; }
  /// The row of this process; {0, 0} in a forked child, and without a daemon's grant.
  shm::RowGrant row() const noexcept;
  /// The row as records read it: whose it is may change under them.
  const detail::ClientRow& client_row() const noexcept { return row_; }
  /// nullptr where a daemon looks after the memory.
  detail::HoldKeeper* hold_keeper() noexcept { return own_ ? &hold_keeper_ : nullptr; }
  /// Rows of forked children of this process in this memory.
  detail::ChildRows& child_rows() noexcept { return child_rows_; }
  /// The daemon's connection, nullptr when there is none (in memory, forked child).
  client::Connection* connection() noexcept;
  /// Names this process's row to a daemon; empty where there is none, and in a forked child.
  std::string row_token() const;
  /// Another daemon knows the row now, over this connection. One thread at a time.
  void row_offered(std::unique_ptr<client::Connection> connection, std::string session) noexcept;

  /// Of an in-memory client; else nullptr.
  detail::CalendarRenewal* renewal() const noexcept { return own_ ? own_->renewal.get() : nullptr; }

  /// Hands every ask of limits of this client to `watcher`. Before the first limit() of it.
  void watch(detail::AskWatcher& watcher) noexcept { watcher_ = &watcher; }

  /// In a forked child, before anything else runs there.
  void on_fork() noexcept;

  Core* next_registered = nullptr;       ///< for core_registry.cpp alone

 private:
  void start();
  detail::LimitState* make_record(std::string_view name) const noexcept;
  detail::LimitState* add(detail::LimitState* state) noexcept;

  std::optional<shm::Segment> segment_;
  shm::View view_;                       ///< copy: one step less on the decision path
  std::string instance_;
  detail::ClientRow row_;
  std::uint64_t number_ = 0;
  std::atomic<detail::LimitState*> limits_{nullptr};
  std::atomic<detail::BreakerRecord*> breakers_{nullptr};
  std::atomic<detail::BulkheadRecord*> bulkheads_{nullptr};
  std::optional<Attached> attached_;
  std::unique_ptr<client::Connection> renewed_;      ///< the last one of row_offered()
  std::atomic<client::Connection*> connection_{nullptr};
  std::optional<Private> own_;
  client::DaemonLink* link_ = nullptr;
  detail::ChildRows child_rows_{link_};
  detail::HoldKeeper hold_keeper_;
  detail::AskWatcher* watcher_ = nullptr;
  std::unique_ptr<client::DaemonLink> owned_link_;
};

/// A clock moved by hand and the segments that follow it.
struct SteppedClock::State {
  State();
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Moves to `at_ns` of this clock unless that lies behind, and every segment with it.
  void move_to(std::int64_t at_ns) noexcept;
  std::int64_t now() const noexcept;

  void add(detail::CalendarRenewal* segment);
  void remove(detail::CalendarRenewal* segment) noexcept;

  struct Followers;                      ///< the segments, under a mutex
  std::unique_ptr<Followers> followers;
  std::atomic<std::int64_t> own_now_ns{0};
  std::atomic<std::int64_t>* now_ns;     ///< shared with forked children
};

/// Segment time at 0 of a stepped clock.
inline constexpr std::int64_t kSteppedOriginNs = shm::kEpochLeadNs;

}  // namespace cutwater
