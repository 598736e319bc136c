// SPDX-License-Identifier: Apache-2.0
// BreakerWorld over the socket: the same moves and observers as tests/stress/breaker_world.hpp, but
// each process is a session of a daemon (its real memory, desk, janitor and machines, in this
// process) and enters and ends its calls by frames over a socket pair. A scenario that is compiled
// with this directory in front of the include path asks this way, word for word.
//
// What a test does to the memory itself (steering, looking) it does here as there.
// Thread safety: none.
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
  ~BreakerWorld();

  /// The daemon ends without a word and another one takes the memory; the sessions present what
  /// they hold.
  struct Daemon {
    BreakerWorld& of;
    void adopt() { of.restart(); }
  };
  Daemon world() noexcept { return {*this}; }

  const shm::View& view() const noexcept;
  std::int64_t now() const noexcept { return view().clock.now() - start_; }
  void at(std::int64_t ns) { pass(ns - now()); }
  void pass(std::int64_t ns) { shm::step_clock(view(), view().clock.now() + ns); }
  std::int64_t start() const noexcept { return start_; }

  shm::BreakerRef ref() const { return shm::find_breaker(view(), name_); }
  /// The row of this process's session as a caller in the memory.
  shm::BreakerCaller caller(std::uint32_t process = 0);
  /// Its session says goodbye, or its process is gone: what it held goes back at once.
  void kill(std::uint32_t process);
  void revive(std::uint32_t process);

  shm::BreakerEntry enter(std::uint32_t process = 0, std::int64_t deadline_ns = 0);
  shm::Recorded finish(const shm::BreakerEntry& entry, shm::Ended how, std::uint32_t process = 0,
                       std::int64_t duration_ns = -1);
  bool call(shm::Ended how, std::int64_t took = kMillisecond, std::uint32_t process = 0);
  std::string run(std::string_view script) { return run_script(*this, script); }
  void tick();

  shm::BreakerInfo info() const;
  rule::BreakerState state() const { return info().word.state; }
  std::uint64_t count(shm::BreakerCounter counter) const {
    return shm::sum_breaker_counters(view(), ref().index).of(counter);
  }
  std::vector<shm::Event> events(shm::EventKind kind) const { return events_of(view(), kind); }
  void publish(const rule::BreakerSettings& settings);

 private:
  struct Inside;
  void restart();

  std::string name_;
  std::unique_ptr<Inside> inside_;
  std::int64_t start_ = 0;
};

}  // namespace cutwater::test
