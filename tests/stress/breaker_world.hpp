// SPDX-License-Identifier: Apache-2.0
// A small shared memory with one breaker, callers with rows of their own, and time that moves when
// told. Times of the tests count from 0 at the world's making.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "shm/process_table.hpp"
#include "stress/breaker_script.hpp"
#include "stress/world.hpp"

namespace cutwater::test {

class BreakerWorld {
 public:
  explicit BreakerWorld(const rule::BreakerSettings& settings, std::uint32_t processes = 4,
                        WorldOptions options = {});

  World& world() noexcept { return *world_; }
  const shm::View& view() const noexcept { return world_->view(); }
  /// Time since the world was made; at() moves it to a moment of its.
  std::int64_t now() const noexcept { return view().clock.now() - start_; }
  void at(std::int64_t ns) { world_->pass(ns - now()); }
  void pass(std::int64_t ns) { world_->pass(ns); }
  std::int64_t start() const noexcept { return start_; }

  shm::BreakerRef ref() const { return shm::find_breaker(view(), name_); }
  shm::BreakerCaller caller(std::uint32_t process = 0);
  /// Resolves the name once more; every process did at its making.
  void join(std::uint32_t process);
  /// Its row is dead from now on.
  void kill(std::uint32_t process);
  /// Its successor, with a row of its own.
  void revive(std::uint32_t process);
  shm::RowGrant row(std::uint32_t process) const { return rows_[process]; }

  shm::BreakerEntry enter(std::uint32_t process = 0, std::int64_t deadline_ns = 0);
  shm::Recorded finish(const shm::BreakerEntry& entry, shm::Ended how, std::uint32_t process = 0,
                       std::int64_t duration_ns = -1);
  /// One call that takes `took` on the clock; false: refused.
  bool call(shm::Ended how, std::int64_t took = kMillisecond, std::uint32_t process = 0);
  /// Calls of 1 ms each: run_script().
  std::string run(std::string_view script) { return run_script(*this, script); }
  void tick() { shm::tick_breaker(view(), ref().index, shm::shared_stripe(view())); }

  shm::BreakerInfo info() const;
  rule::BreakerState state() const { return info().word.state; }
  std::uint64_t count(shm::BreakerCounter counter) const {
    return shm::sum_breaker_counters(view(), ref().index).of(counter);
  }
  std::vector<shm::Event> events(shm::EventKind kind) const { return events_of(view(), kind); }
  void publish(const rule::BreakerSettings& settings);

 private:
  std::string name_;
  std::unique_ptr<World> world_;
  std::unique_ptr<shm::RowTable> table_;
  std::vector<shm::RowGrant> rows_;
  std::vector<std::unique_ptr<shm::BreakerLocal>> locals_;
  std::int64_t start_ = 0;
};

}  // namespace cutwater::test
