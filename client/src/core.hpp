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
#include "src/connection.hpp"
#include "src/limit_state.hpp"

namespace cutwater {

class Client::Core {
 public:
  /// What an opened client has besides the memory.
  struct Attached {
    client::Connection connection;
    shm::RowGrant row;
    std::string instance;
  };
  /// What an in-memory client has besides the memory.
  struct Private {
    std::unique_ptr<shm::RowTable> rows;
    std::unique_ptr<shm::Publisher> publisher;
    std::shared_ptr<SteppedClock::State> clock;      ///< nullptr: CLOCK_BOOTTIME
    shm::RowGrant row;
    std::string instance;
  };

  Core(shm::Segment segment, Attached attached);
  Core(shm::Segment segment, Private own);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// The record of a limit; made at the first ask for its name.
  Result<detail::LimitState*> limit(std::string_view name);

  /// In-memory only: see Client::reload().
  Result<void> reload(std::string_view yaml);

  const shm::View& view() const noexcept { return view_; }
  const shm::Segment& segment() const noexcept { return segment_; }
  std::string_view instance() const noexcept { return instance_; }
  bool is_private() const noexcept { return own_.has_value(); }
  /// Number of this client in this process; never used twice.
  std::uint64_t number() const noexcept { return number_; }
  /// The row of this process; {0, 0} in a forked child, and without a daemon's grant.
  shm::RowGrant row() const noexcept;
  /// The daemon's connection, nullptr when there is none (in memory, forked child).
  client::Connection* connection() noexcept;

  /// In a forked child, before anything else runs there.
  void on_fork() noexcept;

  Core* next_registered = nullptr;       ///< for core_registry.cpp alone

 private:
  void start() noexcept;

  shm::Segment segment_;
  shm::View view_;                       ///< copy: one step less on the decision path
  std::string instance_;
  detail::ClientRow row_;
  std::uint64_t number_ = 0;
  std::atomic<detail::LimitState*> limits_{nullptr};
  std::optional<Attached> attached_;
  std::optional<Private> own_;
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

  void add(const shm::View* view);
  void remove(const shm::View* view) noexcept;

  struct Followers;                      ///< the segments, under a mutex
  std::unique_ptr<Followers> followers;
  std::atomic<std::int64_t> own_now_ns{0};
  std::atomic<std::int64_t>* now_ns;     ///< shared with forked children
};

/// Segment time at 0 of a stepped clock.
inline constexpr std::int64_t kSteppedOriginNs = shm::kEpochLeadNs;

}  // namespace cutwater
