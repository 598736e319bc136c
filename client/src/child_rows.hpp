// SPDX-License-Identifier: Apache-2.0
// ChildRows: a forked child that has to hold something for the first time (a place, a probe) gets a
// row of its own from the daemon, over a connection of its own: the memory is mapped already, the
// row says to all others whose end gives back what is held. Of one memory; each process in a line
// of forks has at most one here, and none touches an ancestor's.
//
// need() asks within one ask's time limit; without an answer it is asked again by a later need(),
// kPauseNs apart. Client::Core closes the connection in children of the child, and says goodbye
// when the Client ends where the row was got.
// Bounds: one row and one connection per process. Thread safety: everything from any thread;
// on_fork() and the destructor alone.
#pragma once
#include <atomic>
#include <cstdint>

#include "shm/view.hpp"
#include "src/life_lock.hpp"
#include "src/limit_state.hpp"

namespace cutwater::client {
class DaemonLink;
}

namespace cutwater::detail {

class ChildRows {
 public:
  static constexpr std::int64_t kPauseNs = 1'000'000'000;

  /// `link`: nullptr where no daemon grants rows (in memory).
  explicit ChildRows(client::DaemonLink* link) noexcept : link_(link) {}
  ~ChildRows();
  ChildRows(const ChildRows&) = delete;
  ChildRows& operator=(const ChildRows&) = delete;

  /// The row that this process got here, nullptr when it has none.
  const ClientRow* own() const noexcept;
  /// True: own() has one now.
  bool need(const shm::View& view) noexcept;
  /// In a child: what was the parent's stays the parent's.
  void on_fork() noexcept;

 private:
  struct Node;
  bool ask(const shm::View& view);

  client::DaemonLink* const link_;
  std::atomic<Node*> newest_{nullptr};
  client::LifeLock asking_;              // the next one, and adding to newest_
  std::int64_t next_try_ns_ = 0;
};

}  // namespace cutwater::detail
