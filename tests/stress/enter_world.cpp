// SPDX-License-Identifier: Apache-2.0
#include "stress/enter_world.hpp"

#include <cstdlib>
#include <iostream>

namespace cutwater::test {
namespace {

constexpr const char* kLimitNames[] = {"one", "two"};

std::vector<rule::LimitSettings> limits_of(const EnterSetup& setup) {
  std::vector<rule::LimitSettings> limits;
  for (std::size_t i = 0; i < 2; ++i) {
    limits.push_back(limit(kLimitNames[i], {1, setup.token_ns}, setup.burst[i]));
  }
  return limits;
}

}  // namespace

EnterWorld::EnterWorld(const EnterSetup& setup) : gate_(setup.gate) {
  WorldOptions options;
  options.limits = 2;
  options.processes = setup.processes + 2;
  options.events = 64;
  options.breakers = 1;
  options.breaker_memory = 4 * shm::breaker_memory_needed({setup.breaker}) + 16'384;
  options.bulkheads = 1;
  options.bulkhead_cells = setup.places + 1;
  options.waiters = setup.max_waiting + 1;
  world_ = std::make_unique<World>(limits_of(setup), options);
  rule::BulkheadSettings gate;
  gate.name = setup.gate;
  gate.max_concurrent = setup.places;
  gate.max_wait_ns = setup.max_wait_ns;
  gate.max_waiting = setup.max_waiting;
  world_->publisher().set_breakers({setup.breaker});
  world_->publisher().set_bulkheads({gate});
  world_->publish(limits_of(setup));
  table_ = std::make_unique<shm::RowTable>(view(), true);
  for (std::uint32_t i = 0; i < setup.processes; ++i) {
    shm::RowTable::Owner owner;
    owner.pid = 1000 + i;
    owner.name = "test";
    rows_.push_back(table_->grant(owner).value());
    locals_.push_back(std::make_unique<shm::BreakerLocal>());
  }
  // Whatever the publication put ahead is in force.
  pass(shm::kPublishAheadNs);
}

shm::EnterCaller EnterWorld::caller(std::uint32_t process) {
  shm::EnterCaller out;
  out.breaker.row = rows_[process].index;
  out.breaker.generation = rows_[process].generation;
  if (!quiet_) out.breaker.stripe = shm::shared_stripe(view());
  out.breaker.local = locals_[process].get();
  return out;
}

void EnterWorld::set_row(std::uint32_t process, shm::RowState state) {
  // In the row itself: a memory that is put back after a kill makes it live again.
  std::uint64_t* const word = &view().rows[rows_[process].index].word;
  shm::RowWord row = shm::unpack_row(__atomic_load_n(word, __ATOMIC_ACQUIRE));
  row.state = state;
  row.generation = rows_[process].generation;
  __atomic_store_n(word, shm::pack_row(row), __ATOMIC_RELEASE);
}

void EnterWorld::kill(std::uint32_t process) { set_row(process, shm::RowState::Dead); }

void EnterWorld::revive(std::uint32_t process) {
  ++rows_[process].generation;
  set_row(process, shm::RowState::Live);
}

std::unique_ptr<EnterCase> EnterWorld::ask(std::uint32_t process, const EnterWish& wish) {
  auto one = std::make_unique<EnterCase>();
  one->process = process;
  std::size_t count = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if (wish.cost[i] == 0) continue;
    one->asks[count++] = {world_->ref(kLimitNames[i]), {key(i), {}}, wish.cost[i], 0};
  }
  if (wish.breaker) one->entering.ask.breaker = breaker();
  if (wish.bulkhead) one->entering.ask.bulkhead = bulkhead();
  one->entering.ask.limits = {one->asks.data(), count};
  one->entering.ask.max_wait_ns = wish.max_wait_ns;
  one->entering.ask.deadline_ns = wish.deadline_ns;
  return one;
}

void EnterWorld::begin(EnterCase& one) {
  one.step = shm::begin_enter(view(), caller(one.process), one.entering, one.answer);
}

void EnterWorld::resume(EnterCase& one) {
  one.step = shm::resume_enter(view(), caller(one.process), one.entering, one.answer);
}

void EnterWorld::finish(EnterCase& one, shm::Ended how) {
  const shm::EnterCaller who = caller(one.process);
  if (one.answer.call.kind != shm::CallKind::None) {
    shm::finish_breaker(view(), breaker(), who.breaker, one.answer.call, {.kind = how});
    one.answer.call = {};
  }
  shm::leave_bulkhead(view(), bulkhead(), who.bulkhead(), one.answer.place);
  one.answer.place = {};
}

void EnterWorld::tick() {
  shm::tick_breaker(view(), breaker().index, shm::shared_stripe(view()));
  shm::tick_bulkhead(view(), bulkhead().index, shm::shared_stripe(view()));
}

shm::BreakerInfo EnterWorld::breaker_info() const {
  shm::BreakerInfo info;
  shm::read_breaker(view(), breaker().index, info);
  return info;
}

shm::BulkheadInfo EnterWorld::bulkhead_info() const {
  shm::BulkheadInfo info;
  shm::read_bulkhead(view(), bulkhead().index, info);
  return info;
}

std::uint64_t EnterWorld::tokens(int number) const {
  const auto of = static_cast<std::uint64_t>(number);
  const DecisionData seen = world_->peek(kLimitNames[number], key(of), 0);
  return Decision(seen).remaining();
}

shm::Steered EnterWorld::steer(shm::Steer what, std::int64_t for_ns) {
  return shm::steer_breaker(view(), breaker(), what, for_ns, 1);
}

void EnterWorld::make_half_open() {
  steer(shm::Steer::ToOpen, 1);
  pass(2);
}

}  // namespace cutwater::test
