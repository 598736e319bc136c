// SPDX-License-Identifier: Apache-2.0
// BulkheadWorld over the socket: the moves and observers of tests/stress/bulkhead_world.hpp, but
// each process is a session of a daemon and takes, waits for and gives back its places by frames
// (see breaker_world.hpp here). Who joins a line is an ENTER that is not answered yet; a place is
// known by the number of its ticket.
// Thread safety: none.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "shm/bulkhead/bulkhead.hpp"
#include "shm/event_log.hpp"
#include "stress/breaker_script.hpp"
#include "stress/bulkhead_shape.hpp"
#include "stress/world.hpp"

namespace cutwater::test {

class BulkheadWorld {
 public:
  explicit BulkheadWorld(const rule::BulkheadSettings& settings, std::uint32_t processes = 4);
  ~BulkheadWorld();

  const shm::View& view() const noexcept;
  std::int64_t now() const noexcept { return view().clock.now(); }
  void pass(std::int64_t ns) { shm::step_clock(view(), now() + ns); }

  shm::BulkheadRef ref() const { return shm::find_bulkhead(view(), name_); }
  /// Its process is gone; the daemon hears of it by the next tick.
  void kill(std::uint32_t process);
  /// The same and its successor, in one.
  void revive(std::uint32_t process);

  shm::BulkheadEntry enter(std::uint32_t process = 0);
  shm::Left leave(const shm::BulkheadEntry& entry, std::uint32_t process = 0);
  shm::JoinedLine join(std::uint32_t process = 0, shm::LineAsk ask = {});
  shm::LineLook poll(const shm::JoinedLine& joined, std::uint32_t process = 0);
  /// What was given back since the last one.
  shm::BulkheadTick tick();

  shm::BulkheadInfo info() const;
  std::uint32_t in_use() const { return info().in_use; }
  std::uint64_t count(shm::BulkheadCounter counter) const {
    return shm::sum_bulkhead_counters(view(), ref().index).of(counter);
  }
  std::vector<shm::Event> events(shm::EventKind kind) const { return events_of(view(), kind); }
  void publish(const rule::BulkheadSettings& settings);

 private:
  struct Inside;

  std::string name_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace cutwater::test
