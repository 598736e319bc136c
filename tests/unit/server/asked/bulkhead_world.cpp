// SPDX-License-Identifier: Apache-2.0
#include "stress/bulkhead_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "unit/server/asked/served.hpp"

namespace cutwater::test {

namespace {

config::Config config_of(const rule::BulkheadSettings& settings, std::uint32_t processes) {
  config::Config out = small_config(processes + 16);
  out.capacity.bulkheads = 2;
  out.capacity.bulkhead_cells = 2 * settings.max_concurrent + 8;
  out.capacity.waiters = 2 * settings.max_waiting + 8;
  out.bulkheads = {settings};
  return out;
}

}  // namespace

struct BulkheadWorld::Inside {
  /// A session, and the answers that came before anybody looked for them.
  struct Process {
    std::unique_ptr<ServedPeer> peer;
    std::map<std::uint32_t, wire::Admission> early;
    bool killed = false;
  };

  Inside(const config::Config& config) : served(config, true) {}

  void connect(Process& process) {
    process.early.clear();
    process.killed = false;
    process.peer = std::make_unique<ServedPeer>(served);
    process.peer->greet();
  }
  void bury(Process& process) {
    if (!process.peer) return;
    process.peer->bye();
    process.peer.reset();
  }
  static std::uint32_t send(Process& process, wire::MessageType type, const std::string& payload) {
    const std::uint32_t request = process.peer->last_request() + 1;
    process.peer->set_last_request(request);
    process.peer->send(type, request, payload);
    return request;
  }
  /// Keeps what has come. The frame of `request`, when it is among it.
  static std::optional<wire::Frame> read(Process& process, std::uint32_t request) {
    while (const auto frame = process.peer->take_now()) {
      if (frame->header.request == request) return frame;
      const auto answer = wire::decode<wire::EnterAnswer>(frame->payload);
      if (answer) process.early[frame->header.request] = answer->admission;
      else ADD_FAILURE() << "nobody asked for this answer";
    }
    return std::nullopt;
  }

  shm::BulkheadEntry entry_of(const wire::Admission& told, std::int64_t now) {
    EXPECT_FALSE(told.is_error()) << told.text;
    shm::BulkheadEntry entry;
    entry.granted = told.allowed();
    entry.reason = static_cast<Reason>(told.reason);
    entry.now_ns = now;
    if (entry.granted && !told.ticket.empty()) {
      tickets.push_back(told.ticket);
      entry.place.cell_value = tickets.size();
      entry.place.start_ns = now;
      entry.place.cell = 0;
    }
    if (entry.granted) return entry;
    EXPECT_EQ(told.part, wire::Part::Bulkhead);
    entry.hint = (told.flags & wire::kAnswerHint) != 0;
    entry.in_use = told.holding;
    entry.limit = told.places;
    entry.waiting = told.waiting;
    entry.oldest_ns = static_cast<std::int64_t>(told.oldest_ns);
    entry.retry_after_ns = static_cast<std::int64_t>(told.retry_after_ns);
    return entry;
  }

  Served served;
  std::vector<Process> processes;
  std::vector<std::string> tickets;    ///< place.cell_value is the number of one, from 1 on
  std::uint64_t reclaimed = 0, revoked = 0;
};

BulkheadWorld::BulkheadWorld(const rule::BulkheadSettings& settings, std::uint32_t processes)
    : name_(settings.name), inside_(std::make_unique<Inside>(config_of(settings, processes))) {
  inside_->processes.resize(processes);
  for (auto& process : inside_->processes) inside_->connect(process);
}

BulkheadWorld::~BulkheadWorld() = default;

const shm::View& BulkheadWorld::view() const noexcept { return inside_->served.view(); }

void BulkheadWorld::publish(const rule::BulkheadSettings& settings) {
  inside_->served.memory().publisher().set_bulkheads({settings});
  auto done = inside_->served.memory().publisher().publish({}, 0);
  if (done) return;
  std::cerr << "the bulkhead cannot be published: " << done.error().text() << "\n";
  std::abort();
}

void BulkheadWorld::kill(std::uint32_t process) { inside_->processes[process].killed = true; }

void BulkheadWorld::revive(std::uint32_t process) {
  inside_->bury(inside_->processes[process]);
  inside_->connect(inside_->processes[process]);
}

shm::BulkheadTick BulkheadWorld::tick() {
  for (auto& process : inside_->processes) {
    if (process.killed) inside_->bury(process);
  }
  inside_->served.tick();
  shm::BulkheadTick out;
  const std::uint64_t reclaimed = count(shm::BulkheadCounter::Reclaimed);
  const std::uint64_t revoked = count(shm::BulkheadCounter::Revoked);
  out.reclaimed =
      static_cast<std::uint32_t>(reclaimed - std::exchange(inside_->reclaimed, reclaimed));
  out.revoked = static_cast<std::uint32_t>(revoked - std::exchange(inside_->revoked, revoked));
  return out;
}

shm::JoinedLine BulkheadWorld::join(std::uint32_t process, shm::LineAsk ask) {
  auto& of = inside_->processes[process];
  wire::Enter asked;
  asked.bulkhead = name_;
  asked.max_wait_ns = ask.max_wait_ns;
  if (ask.deadline_ns != 0) asked.call_ns = static_cast<std::uint64_t>(ask.deadline_ns - now());
  const std::uint32_t request =
      Inside::send(of, wire::MessageType::Enter, *wire::encode(asked));
  shm::JoinedLine out;
  out.wait.ticket = request;
  out.joined = true;
  const auto frame = Inside::read(of, request);
  if (!frame) return out;
  const auto answer = wire::decode<wire::EnterAnswer>(frame->payload);
  if (answer->admission.allowed()) {                 // nobody was before it
    of.early[request] = answer->admission;
    return out;
  }
  out.joined = false;
  out.refusal = inside_->entry_of(answer->admission, now());
  return out;
}

shm::BulkheadEntry BulkheadWorld::enter(std::uint32_t process) {
  auto& of = inside_->processes[process];
  wire::Enter asked;
  asked.bulkhead = name_;
  const std::uint32_t request =
      Inside::send(of, wire::MessageType::Enter, *wire::encode(asked));
  const auto frame = Inside::read(of, request);
  const auto answer = frame ? wire::decode<wire::EnterAnswer>(frame->payload)
                            : wire::decode<wire::EnterAnswer>("");
  if (!answer) {
    ADD_FAILURE() << "ENTER was not answered at once";
    return {};
  }
  shm::BulkheadEntry entry = inside_->entry_of(answer->admission, now());
  entry.may_wait = entry.reason == Reason::Full && info().max_wait_ns != 0;   // it is not told
  return entry;
}

shm::LineLook BulkheadWorld::poll(const shm::JoinedLine& joined, std::uint32_t process) {
  auto& of = inside_->processes[process];
  const auto request = static_cast<std::uint32_t>(joined.wait.ticket);
  inside_->served.desk().look_at_line();
  inside_->served.turn();
  if (const auto frame = Inside::read(of, request)) {
    const auto answer = wire::decode<wire::EnterAnswer>(frame->payload);
    if (answer) of.early[request] = answer->admission;
  }
  shm::LineLook look;
  look.now_ns = now();
  const auto known = of.early.find(request);
  if (known == of.early.end()) return look;
  look.entry = inside_->entry_of(known->second, now());
  look.state = look.entry.granted ? shm::LineLook::State::Granted : shm::LineLook::State::Over;
  of.early.erase(known);
  return look;
}

shm::Left BulkheadWorld::leave(const shm::BulkheadEntry& entry, std::uint32_t process) {
  if (entry.place.cell_value == 0) return shm::Left::Nothing;
  auto& of = inside_->processes[process];
  wire::Outcome outcome;
  outcome.reports.resize(1);
  outcome.reports[0].ticket = inside_->tickets.at(entry.place.cell_value - 1);
  const std::uint32_t request =
      Inside::send(of, wire::MessageType::Outcome, *wire::encode(outcome));
  const auto frame = Inside::read(of, request);
  const auto answer = frame ? wire::decode<wire::OutcomeAnswer>(frame->payload)
                            : wire::decode<wire::OutcomeAnswer>("");
  if (!answer || answer->codes.size() != 1) {
    ADD_FAILURE() << "OUTCOME was not answered";
    return shm::Left::Nothing;
  }
  inside_->served.turn();              // a place may go to somebody in line
  return answer->codes[0] == 0 ? shm::Left::Returned : shm::Left::Stale;
}

shm::BulkheadInfo BulkheadWorld::info() const {
  shm::BulkheadInfo info;
  shm::read_bulkhead(view(), ref().index, info);
  return info;
}

}  // namespace cutwater::test
