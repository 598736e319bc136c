// SPDX-License-Identifier: Apache-2.0
#include "stress/breaker_world.hpp"

#include <cstdlib>
#include <iostream>

namespace cutwater::test {

BreakerWorld::BreakerWorld(const rule::BreakerSettings& settings, std::uint32_t processes,
                           WorldOptions options)
    : name_(settings.name) {
  options.limits = 1;
  options.processes = processes + 2;
  options.breakers = 2;
  options.events = std::max<std::uint32_t>(options.events, 64);
  if (options.breaker_memory == 0) {
    options.breaker_memory = 4 * shm::breaker_memory_needed({settings}) + 16'384;
  }
  world_ = std::make_unique<World>(std::vector<rule::LimitSettings>{}, options);
  start_ = view().clock.now();
  publish(settings);
  table_ = std::make_unique<shm::RowTable>(view(), true);
  for (std::uint32_t i = 0; i < processes; ++i) {
    shm::RowTable::Owner owner;
    owner.pid = 1000 + i;
    owner.name = "test";
    rows_.push_back(table_->grant(owner).value());
    locals_.push_back(std::make_unique<shm::BreakerLocal>());
    join(i);
  }
}

void BreakerWorld::publish(const rule::BreakerSettings& settings) {
  world_->publisher().set_breakers({settings});
  auto done = world_->publisher().publish({}, 0);
  if (done) return;
  std::cerr << "the breaker cannot be published: " << done.error().text() << "\n";
  std::abort();
}

shm::BreakerCaller BreakerWorld::caller(std::uint32_t process) {
  return {rows_[process].index, rows_[process].generation, shm::shared_stripe(view()),
          locals_[process].get(), {}};
}

void BreakerWorld::join(std::uint32_t process) {
  shm::join_breaker(view(), ref(), caller(process));
}

void BreakerWorld::kill(std::uint32_t process) { table_->mark_dead(rows_[process]); }

void BreakerWorld::revive(std::uint32_t process) {
  // As the daemon does: what the dead one held first, the row last.
  tick();
  table_->free(rows_[process]);
  shm::RowTable::Owner owner;
  owner.pid = 2000 + process;
  owner.name = "test";
  rows_[process] = table_->grant(owner).value();
  locals_[process] = std::make_unique<shm::BreakerLocal>();
  join(process);
}

shm::BreakerEntry BreakerWorld::enter(std::uint32_t process, std::int64_t deadline_ns) {
  shm::BreakerEntry entry = shm::enter_breaker(view(), ref(), caller(process), deadline_ns);
  if (entry.granted) entry.call.start_ns = view().clock.now();
  return entry;
}

shm::Recorded BreakerWorld::finish(const shm::BreakerEntry& entry, shm::Ended how,
                                   std::uint32_t process, std::int64_t duration_ns) {
  shm::BreakerReport report;
  report.kind = how;
  report.duration_ns = duration_ns;
  return shm::finish_breaker(view(), ref(), caller(process), entry.call, report);
}

bool BreakerWorld::call(shm::Ended how, std::int64_t took, std::uint32_t process) {
  const shm::BreakerEntry entry = enter(process);
  if (!entry.granted) return false;
  pass(took);
  finish(entry, how, process);
  return true;
}

shm::BreakerInfo BreakerWorld::info() const {
  shm::BreakerInfo info;
  shm::read_breaker(view(), ref().index, info);
  return info;
}

}  // namespace cutwater::test
