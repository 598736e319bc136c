// SPDX-License-Identifier: Apache-2.0
#include "stress/bulkhead_world.hpp"

#include <cstdlib>
#include <iostream>

namespace cutwater::test {

BulkheadWorld::BulkheadWorld(const rule::BulkheadSettings& settings, std::uint32_t processes,
                             WorldOptions options)
    : name_(settings.name) {
  options.limits = 1;
  options.processes = processes + 2;
  if (options.bulkheads == 0) options.bulkheads = 2;
  if (options.bulkhead_cells == 0) options.bulkhead_cells = 2 * settings.max_concurrent + 8;
  if (options.waiters == 0) options.waiters = 2 * settings.max_waiting + 8;
  options.events = std::max<std::uint32_t>(options.events, 64);
  world_ = std::make_unique<World>(std::vector<rule::LimitSettings>{}, options);
  publish(settings);
  table_ = std::make_unique<shm::RowTable>(view(), true);
  rows_.resize(processes);
  for (std::uint32_t i = 0; i < processes; ++i) {
    rows_[i] = table_->grant({.pid = 1000 + i, .name = "test"}).value();
    locals_.push_back(std::make_unique<shm::BulkheadLocal>());
  }
}

void BulkheadWorld::publish(const rule::BulkheadSettings& settings) {
  world_->publisher().set_bulkheads({settings});
  auto done = world_->publisher().publish({}, 0);
  if (done) return;
  std::cerr << "the bulkhead cannot be published: " << done.error().text() << "\n";
  std::abort();
}

shm::BulkheadCaller BulkheadWorld::caller(std::uint32_t process) const {
  return {rows_[process].index, rows_[process].generation, shm::shared_stripe(view()),
          locals_[process].get()};
}

void BulkheadWorld::kill(std::uint32_t process) { table_->mark_dead(rows_[process]); }

void BulkheadWorld::bury(std::uint32_t process) const {
  std::uint64_t& word = view().rows[rows_[process].index].word;
  shm::RowWord row = shm::unpack_row(word);
  row.state = shm::RowState::Dead;
  __atomic_store_n(&word, shm::pack_row(row), __ATOMIC_RELEASE);
  tick();
}

void BulkheadWorld::revive(std::uint32_t process) {
  // As the daemon does: what the dead one held first, the row last.
  table_->mark_dead(rows_[process]);
  tick();
  table_->free(rows_[process]);
  rows_[process] = table_->grant({.pid = 2000 + process, .name = "test"}).value();
}

void BulkheadWorld::renew_rows() {
  table_ = std::make_unique<shm::RowTable>(view(), true);
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    rows_[i] = table_->grant({.pid = 3000 + i, .name = "test"}).value();
  }
}

shm::BulkheadEntry BulkheadWorld::enter(std::uint32_t process) const {
  return shm::enter_bulkhead(view(), ref(), caller(process));
}

shm::Left BulkheadWorld::leave(const shm::BulkheadEntry& entry, std::uint32_t process) const {
  return shm::leave_bulkhead(view(), ref(), caller(process), entry.place);
}

shm::JoinedLine BulkheadWorld::join(std::uint32_t process, shm::LineAsk ask) const {
  return shm::join_line(view(), ref(), caller(process), ask);
}

shm::LineLook BulkheadWorld::poll(const shm::JoinedLine& joined, std::uint32_t process) const {
  return shm::poll_line(view(), ref(), caller(process), joined.wait);
}

shm::BulkheadTick BulkheadWorld::tick() const {
  return shm::tick_bulkhead(view(), ref().index, shm::shared_stripe(view()));
}

shm::BulkheadInfo BulkheadWorld::info() const {
  shm::BulkheadInfo info;
  shm::read_bulkhead(view(), ref().index, info);
  return info;
}

std::uint64_t BulkheadWorld::count(shm::BulkheadCounter counter) const {
  return shm::sum_bulkhead_counters(view(), ref().index).of(counter);
}

std::vector<shm::Event> BulkheadWorld::events(shm::EventKind kind) const {
  std::vector<shm::Event> found;
  for (const shm::Event& event : shm::read_events(view(), 0, view().event_count).events) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

}  // namespace cutwater::test
