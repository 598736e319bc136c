// SPDX-License-Identifier: Apache-2.0
// A small shared memory with patterns of bulkheads and of breakers, two callers with rows of their
// own, and what its owner does when places are to make room.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shm/breaker/breaker.hpp"
#include "shm/pattern_idle.hpp"
#include "shm/publisher.hpp"
#include "shm/verify.hpp"
#include "stress/breaker_world.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {

/// "bank-*" with so many instances of so many places.
inline rule::BulkheadSettings gates(std::uint32_t instances, std::uint32_t places) {
  rule::BulkheadSettings settings = bulkhead_of({places, 0, 8, 0});
  settings.name = "bank-*";
  settings.max_instances = instances;
  settings.idle_ns = 3'600'000'000'000;
  return settings;
}

struct PatternRoom {
  std::uint32_t bulkheads = 12, bulkhead_cells = 48, waiters = 64, breakers = 12;
};

class PatternWorld {
 public:
  explicit PatternWorld(std::vector<rule::BulkheadSettings> bulkheads, PatternRoom room = {},
                        std::vector<rule::BreakerSettings> breakers = {})
      : breakers_(std::move(breakers)) {
    WorldOptions options;
    options.bulkheads = room.bulkheads;
    options.bulkhead_cells = room.bulkhead_cells;
    options.waiters = room.waiters;
    options.breakers = room.breakers;
    options.breaker_memory = 4 * shm::breaker_memory_needed(breakers_) + 65'536;
    if (room.breakers == 0) options.breaker_memory = 0;
    options.limits = 1;
    options.events = 64;
    world_ = std::make_unique<World>(std::vector<rule::LimitSettings>{}, options);
    table_ = std::make_unique<shm::RowTable>(view(), true);
    for (std::uint32_t i = 0; i < 2; ++i) {
      rows_.push_back(table_->grant({.pid = 1'000 + i, .name = "test"}).value());
    }
    EXPECT_EQ(publish(std::move(bulkheads)), "");
  }

  World& world() noexcept { return *world_; }
  const shm::View& view() const noexcept { return world_->view(); }
  void pass(std::int64_t ns) { world_->pass(ns); }
  shm::RowTable& rows() noexcept { return *table_; }
  shm::RowGrant row(std::uint32_t process) const { return rows_[process]; }
  shm::BulkheadCaller caller(std::uint32_t process = 0) const {
    return {rows_[process].index, rows_[process].generation, shm::shared_stripe(view())};
  }

  /// All rows anew: those of before belong to nobody.
  void renew_rows() {
    table_ = std::make_unique<shm::RowTable>(view(), true);
    for (std::uint32_t i = 0; i < 2; ++i) {
      rows_[i] = table_->grant({.pid = 3'000 + i, .name = "test"}).value();
    }
  }
  /// Its row is dead and its places are free; its successor has a row of its own.
  void die(std::uint32_t process) {
    table_->mark_dead(rows_[process]);
    for (std::uint32_t i = 0; i < view().bulkhead_count; ++i) {
      static_cast<void>(shm::tick_bulkhead(view(), i, {}));
    }
    table_->free(rows_[process]);
    rows_[process] = table_->grant({.pid = 2'000 + process, .name = "test"}).value();
  }

  /// Empty, or the error.
  std::string publish(std::vector<rule::BulkheadSettings> bulkheads) {
    world_->publisher().set_breakers(breakers_);
    world_->publisher().set_bulkheads(std::move(bulkheads));
    const auto done = world_->publisher().publish({}, 0);
    return done ? std::string() : done.error().text();
  }
  shm::UnusedPlaces look() {
    return idle_.look(view(), world_->publisher().breakers(), world_->publisher().bulkheads());
  }
  std::string make_room(shm::UnusedPlaces places) {
    const auto done = world_->publisher().make_room(std::move(places));
    return done ? std::string() : done.error().text();
  }

  shm::ResolvedBulkhead gate(std::string_view name) const {
    return shm::resolve_bulkhead(view(), name, shm::shared_stripe(view()));
  }
  shm::BulkheadEntry enter(shm::BulkheadRef ref, std::uint32_t process = 0) const {
    return shm::enter_bulkhead(view(), ref, caller(process));
  }
  shm::Left leave(shm::BulkheadRef ref, const shm::BulkheadEntry& entry,
                  std::uint32_t process = 0) const {
    return shm::leave_bulkhead(view(), ref, caller(process), entry.place);
  }
  std::string name_of(shm::BulkheadRef ref) const {
    shm::BulkheadInfo info;
    return shm::read_bulkhead(view(), ref.index, info) ? info.name : "-";
  }

  shm::ResolvedBreaker breaker(std::string_view name) const {
    return shm::resolve_breaker(view(), name, shm::shared_stripe(view()));
  }
  /// One call from its grant to its end; false: refused.
  bool end(shm::BreakerRef ref, shm::Ended how) const {
    const shm::BreakerCaller caller{rows_[0].index, rows_[0].generation,
                                    shm::shared_stripe(view()), nullptr, {}};
    const shm::BreakerEntry entry = shm::enter_breaker(view(), ref, caller, 0);
    if (!entry.granted) return false;
    shm::finish_breaker(view(), ref, caller, entry.call, {.kind = how});
    return true;
  }

 private:
  std::vector<rule::BreakerSettings> breakers_;
  std::unique_ptr<World> world_;
  std::unique_ptr<shm::RowTable> table_;
  std::vector<shm::RowGrant> rows_;
  shm::IdlePlaces idle_;
};

}  // namespace cutwater::test
