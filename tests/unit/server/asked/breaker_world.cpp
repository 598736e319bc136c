// SPDX-License-Identifier: Apache-2.0
#include "stress/breaker_world.hpp"

#include <cstdlib>
#include <iostream>

#include "unit/server/asked/served.hpp"

namespace cutwater::test {

namespace {

rule::BreakerState state_of(wire::BreakerWord word) {
  switch (word) {
    case wire::BreakerWord::Open: return rule::BreakerState::Open;
    case wire::BreakerWord::HalfOpen: return rule::BreakerState::HalfOpen;
    case wire::BreakerWord::Disabled: return rule::BreakerState::Disabled;
    case wire::BreakerWord::ForcedOpen: return rule::BreakerState::ForcedOpen;
    case wire::BreakerWord::MetricsOnly: return rule::BreakerState::MetricsOnly;
    default: return rule::BreakerState::Closed;
  }
}

shm::CallKind kind_of(const wire::Admission& told) {
  switch (told.state) {
    case wire::BreakerWord::HalfOpen: return shm::CallKind::Probe;
    case wire::BreakerWord::Disabled: return shm::CallKind::Off;
    case wire::BreakerWord::MetricsOnly: return shm::CallKind::Metrics;
    default: return shm::CallKind::Window;
  }
}

wire::OutcomeKind word_of(shm::Ended how) {
  switch (how) {
    case shm::Ended::Success: return wire::OutcomeKind::Succeeded;
    case shm::Ended::Failure: return wire::OutcomeKind::Failed;
    case shm::Ended::Ignored: return wire::OutcomeKind::Ignored;
    case shm::Ended::Cancelled: break;
  }
  return wire::OutcomeKind::Cancelled;
}

config::Config config_of(const rule::BreakerSettings& settings, std::uint32_t processes) {
  config::Config out = small_config(processes + 8);
  out.capacity.breaker_memory = 4 * shm::breaker_memory_needed({settings}) + 16'384;
  out.breakers = {settings};
  return out;
}

}  // namespace

struct BreakerWorld::Inside {
  struct Process {
    std::unique_ptr<ServedPeer> peer;
    shm::RowGrant row;
  };
  struct Held {
    std::uint32_t process;
    std::string ticket;
  };

  Inside(const config::Config& config, bool stepped) : served(config, stepped) {}
  void connect(Process& process) {
    process.peer = std::make_unique<ServedPeer>(served);
    const wire::Welcome welcome = process.peer->greet();
    process.row = {welcome.row_index, welcome.row_generation};
  }

  Served served;
  std::vector<Process> processes;
  std::vector<Held> tickets;           ///< by the number that entry.call.ticket.lo says
};

BreakerWorld::BreakerWorld(const rule::BreakerSettings& settings, std::uint32_t processes,
                           WorldOptions options)
    : name_(settings.name),
      inside_(std::make_unique<Inside>(config_of(settings, processes),
                                       options.clock == shm::ClockKind::Stepped)) {
  start_ = view().clock.now();
  inside_->processes.resize(processes);
  for (auto& process : inside_->processes) inside_->connect(process);
}

BreakerWorld::~BreakerWorld() = default;

const shm::View& BreakerWorld::view() const noexcept { return inside_->served.view(); }

void BreakerWorld::restart() {
  inside_->served.stop();
  inside_->served.start();
  for (std::uint32_t i = 0; i < inside_->processes.size(); ++i) {
    auto& process = inside_->processes[i];
    if (!process.peer) continue;
    inside_->connect(process);
    for (auto& held : inside_->tickets) {
      if (held.process != i) continue;
      const auto answer = process.peer->ask<wire::PresentAnswer>(wire::Present{{held.ticket}});
      if (answer) held.ticket = answer->tickets.at(0);
    }
  }
}

void BreakerWorld::publish(const rule::BreakerSettings& settings) {
  inside_->served.memory().publisher().set_breakers({settings});
  auto done = inside_->served.memory().publisher().publish({}, 0);
  if (done) return;
  std::cerr << "the breaker cannot be published: " << done.error().text() << "\n";
  std::abort();
}

shm::BreakerCaller BreakerWorld::caller(std::uint32_t process) {
  const shm::RowGrant row = inside_->processes[process].row;
  return {row.index, row.generation, shm::shared_stripe(view()), nullptr, {}};
}

void BreakerWorld::kill(std::uint32_t process) {
  inside_->processes[process].peer->bye();
  inside_->processes[process].peer.reset();
}

void BreakerWorld::revive(std::uint32_t process) { inside_->connect(inside_->processes[process]); }

shm::BreakerEntry BreakerWorld::enter(std::uint32_t process, std::int64_t deadline_ns) {
  wire::Enter asked;
  asked.breaker = name_;
  if (deadline_ns != 0) {
    asked.call_ns = static_cast<std::uint64_t>(deadline_ns - view().clock.now());
  }
  const wire::Admission told = inside_->processes[process].peer->enter(asked);
  EXPECT_FALSE(told.is_error()) << told.text;
  shm::BreakerEntry entry;
  entry.granted = told.allowed();
  entry.now_ns = view().clock.now();
  if (entry.granted) {
    entry.call.kind = kind_of(told);
    entry.call.epoch = static_cast<std::uint32_t>(told.epoch);
    entry.call.ticket.lo = inside_->tickets.size();
    inside_->tickets.push_back({process, told.ticket});
    EXPECT_TRUE(entry.call.kind != shm::CallKind::Probe || (told.flags & wire::kAnswerHolds) != 0);
    return entry;
  }
  EXPECT_EQ(told.part, wire::Part::Breaker);
  entry.reason = static_cast<Reason>(told.reason);
  entry.state = state_of(told.state);
  entry.hint = (told.flags & wire::kAnswerHint) != 0;
  entry.retry_after_ns = told.retry_after_ns == wire::kNever
                             ? -1
                             : static_cast<std::int64_t>(told.retry_after_ns);
  return entry;
}

shm::Recorded BreakerWorld::finish(const shm::BreakerEntry& entry, shm::Ended how,
                                   std::uint32_t process, std::int64_t duration_ns) {
  if (!entry.granted) return shm::Recorded::Nothing;
  const auto& held = inside_->tickets.at(entry.call.ticket.lo);
  wire::OutcomeReport report;
  report.ticket = held.ticket;
  report.outcome = word_of(how);
  if (duration_ns >= 0) report.duration_ns = static_cast<std::uint64_t>(duration_ns);
  // A test that lets one process end another's call means the call, not the session.
  static_cast<void>(process);
  const std::uint16_t code = inside_->processes[held.process].peer->outcome(report);
  if (code == static_cast<std::uint16_t>(wire::ItemError::Stale)) return shm::Recorded::Stale;
  EXPECT_EQ(code, 0U);
  const bool counts = how == shm::Ended::Success || how == shm::Ended::Failure;
  return counts ? shm::Recorded::Counted : shm::Recorded::Nothing;
}

bool BreakerWorld::call(shm::Ended how, std::int64_t took, std::uint32_t process) {
  const shm::BreakerEntry entry = enter(process);
  if (!entry.granted) return false;
  pass(took);
  finish(entry, how, process);
  return true;
}

void BreakerWorld::tick() { inside_->served.tick(); }

shm::BreakerInfo BreakerWorld::info() const {
  shm::BreakerInfo info;
  shm::read_breaker(view(), ref().index, info);
  return info;
}

}  // namespace cutwater::test
