// SPDX-License-Identifier: Apache-2.0
// One bulkhead of one place, one breaker, one limit, and three peers that ask for them over the
// socket. Thread safety: none.
#pragma once
#include <gtest/gtest.h>

#include "shm/bulkhead/bulkhead.hpp"
#include "stress/breaker_world.hpp"
#include "unit/server/asked/served.hpp"

namespace cutwater::test {

using shm::BulkheadCounter;
using wire::ItemError;
using wire::OutcomeKind;

inline constexpr std::uint64_t kGraceNs = 5'000'000'000;
inline constexpr std::uint64_t kMsNs = 1'000'000;
inline constexpr std::uint64_t kLong = 3'000 * kMsNs;

inline std::uint16_t code(ItemError error) { return static_cast<std::uint16_t>(error); }
inline std::uint16_t number(Reason reason) { return static_cast<std::uint16_t>(reason); }

inline config::Config config_of_places() {
  config::Config out = small_config(24);
  out.breakers = {count_breaker({1, 1, 1})};
  rule::BulkheadSettings gate;
  gate.name = "gate";
  gate.max_concurrent = 1;
  gate.max_wait_ns = 10'000 * kMsNs;
  gate.max_waiting = 400;
  out.bulkheads = {gate};
  out.limits = {five_an_hour()};
  return out;
}

class Places : public testing::Test {
 protected:
  Places() : served(config_of_places(), true) {
    for (auto* peer : {&one, &two, &three}) welcome = peer->greet();
  }

  shm::BulkheadRef ref() { return shm::find_bulkhead(served.view(), "gate"); }
  shm::BulkheadInfo info() {
    shm::BulkheadInfo out;
    shm::read_bulkhead(served.view(), ref().index, out);
    return out;
  }
  std::uint64_t count(BulkheadCounter counter) {
    return shm::sum_bulkhead_counters(served.view(), ref().index).of(counter);
  }
  shm::BreakerInfo breaker() {
    shm::BreakerInfo out;
    shm::read_breaker(served.view(), shm::find_breaker(served.view(), "b").index, out);
    return out;
  }
  void pass(std::uint64_t ns) {
    shm::step_clock(served.view(), served.view().clock.now() + static_cast<std::int64_t>(ns));
  }
  static wire::Enter gate(std::uint64_t max_wait_ns = 0) {
    wire::Enter out;
    out.bulkhead = "gate";
    out.max_wait_ns = max_wait_ns;
    return out;
  }
  static wire::OutcomeReport done(const std::string& ticket,
                                  OutcomeKind how = OutcomeKind::Succeeded) {
    wire::OutcomeReport out;
    out.ticket = ticket;
    out.outcome = how;
    return out;
  }
  /// ENTER that is not answered yet; its request id.
  std::uint32_t wait(ServedPeer& peer, const wire::Enter& asked) {
    const std::uint32_t request = peer.last_request() + 1;
    peer.set_last_request(request);
    peer.send(wire::MessageType::Enter, request, *wire::encode(asked));
    return request;
  }
  /// What it is answered once the line was looked at.
  wire::Admission answer_of(ServedPeer& peer, std::uint32_t request) {
    served.desk().look_at_line();
    const auto frame = peer.receive();
    if (!frame || frame->header.type != wire::MessageType::EnterAnswer ||
        frame->header.request != request) {
      ADD_FAILURE() << "no answer to " << request;
      return {};
    }
    return wire::decode<wire::EnterAnswer>(frame->payload)->admission;
  }
  std::uint64_t tokens_left(ServedPeer& peer) {
    wire::Peek look;
    look.items.push_back({"api", "k", 0, 0});
    const auto answer = peer.ask<wire::PeekAnswer>(look);
    return answer ? answer->decisions.at(0).remaining : 999;
  }

  Served served;
  ServedPeer one{served}, two{served}, three{served};
  wire::Welcome welcome;               // of `three`
};

}  // namespace cutwater::test
