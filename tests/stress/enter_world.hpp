// SPDX-License-Identifier: Apache-2.0
// A small shared memory with a breaker, a bulkhead and two limits, and callers with rows of their
// own that ask for all of them in one step. Time moves when told.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shm/enter.hpp"
#include "shm/process_table.hpp"
#include "stress/breaker_world.hpp"
#include "stress/world.hpp"

namespace cutwater::test {

struct EnterSetup {
  rule::BreakerSettings breaker = count_breaker({4, 4, 1});
  std::string gate = "g";                            ///< name of the bulkhead
  std::uint32_t places = 1;
  std::uint64_t max_wait_ns = rule::kWaitForever;
  std::uint32_t max_waiting = 4;
  /// Of "one" and of "two": each gives back a token in `token_ns`.
  std::array<std::uint64_t, 2> burst{2, 3};
  std::int64_t token_ns = 10 * kMillisecond;
  std::uint32_t processes = 4;
};

/// What to ask for; everything unless told otherwise.
struct EnterWish {
  bool breaker = true, bulkhead = true;
  std::array<std::uint64_t, 2> cost{1, 1};           ///< 0: that limit is left out
  std::int64_t max_wait_ns = 0;
  std::int64_t deadline_ns = 0;                      ///< segment time
};

/// One admission of one process, from its ask to its end. Not copied: limits point into it.
struct EnterCase {
  EnterCase() = default;
  EnterCase(const EnterCase&) = delete;
  EnterCase& operator=(const EnterCase&) = delete;

  std::uint32_t process = 0;
  std::array<shm::AdmitAsk, 2> asks{};
  shm::Entering entering;
  shm::EnterAnswer answer;
  shm::EnterStep step = shm::EnterStep::Done;

  bool granted() const { return step == shm::EnterStep::Done && answer.granted(); }
  bool waits() const { return step == shm::EnterStep::Wait; }
};

class EnterWorld {
 public:
  explicit EnterWorld(const EnterSetup& setup);

  World& world() noexcept { return *world_; }
  const shm::View& view() const noexcept { return world_->view(); }
  std::int64_t now() const noexcept { return view().clock.now(); }
  void pass(std::int64_t ns) { world_->pass(ns); }

  shm::BreakerRef breaker() const { return shm::find_breaker(view(), "b"); }
  shm::BulkheadRef bulkhead() const { return shm::find_bulkhead(view(), gate_); }
  /// Counts on the shared stripe; quiet(): on none, so that a refusal may write nothing at all.
  shm::EnterCaller caller(std::uint32_t process);
  void quiet(bool on) { quiet_ = on; }
  /// Its row is dead from now on, as far as the memory says.
  void kill(std::uint32_t process);
  /// Lives again, under the number after that.
  void revive(std::uint32_t process);

  std::unique_ptr<EnterCase> ask(std::uint32_t process, const EnterWish& wish = {});
  void begin(EnterCase& one);
  void resume(EnterCase& one);
  /// The call is over: `how` is its outcome, its place goes back.
  void finish(EnterCase& one, shm::Ended how = shm::Ended::Cancelled);
  /// What the daemon does at its tick.
  void tick();

  shm::BreakerInfo breaker_info() const;
  shm::BulkheadInfo bulkhead_info() const;
  std::uint64_t tokens(int limit) const;             ///< left of limit 0 or 1
  shm::Steered steer(shm::Steer what, std::int64_t for_ns = 0);
  /// OPEN by hand, over at once: the next one goes half-open.
  void make_half_open();

 private:
  std::unique_ptr<World> world_;
  std::unique_ptr<shm::RowTable> table_;
  std::vector<shm::RowGrant> rows_;
  std::vector<std::unique_ptr<shm::BreakerLocal>> locals_;
  bool quiet_ = false;
  std::string gate_;

  void set_row(std::uint32_t process, shm::RowState state);
};

}  // namespace cutwater::test
