// SPDX-License-Identifier: Apache-2.0
// An in-memory client on a clock the test moves, and what tests ask of its memory.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <cutwater/client.hpp>

#include "shm/counters.hpp"
#include "src/core.hpp"

namespace cutwater::test {

using namespace std::chrono_literals;

/// A client; a configuration that is refused ends the test program with its errors.
inline Client make_client(const std::string& yaml, const SteppedClock& clock) {
  auto made = Client::in_memory(yaml, clock);
  if (!made) {
    ADD_FAILURE() << made.error().text();
    std::abort();
  }
  return std::move(*made);
}

class InMemory : public ::testing::Test {
 protected:
  SteppedClock clock;
  std::unique_ptr<Client> client;

  void start(const std::string& yaml) {
    client = std::make_unique<Client>(make_client(yaml, clock));
  }

  Limit limit(const std::string& name = "api") { return client->limit(name).value(); }
  const shm::View& view() { return client->core().view(); }

  std::uint64_t counted(shm::LimitCounter which, const std::string& name = "api") {
    const shm::LimitRef ref = shm::find_limit(view(), name);
    return shm::sum_counters(view(), ref.index)[static_cast<std::size_t>(which)];
  }

  /// Every byte that a decision could write: buckets, overflow words, counters and events.
  std::string all_bytes() {
    const shm::View& v = view();
    std::string bytes(reinterpret_cast<const char*>(v.slots), v.slot_count * sizeof(Word16));
    bytes.append(reinterpret_cast<const char*>(v.limits), v.limit_count * sizeof(shm::LimitState));
    bytes.append(reinterpret_cast<const char*>(v.stripes),
                 std::size_t{v.stripe_count} * v.stripe_stride);
    bytes.append(reinterpret_cast<const char*>(v.stats_control), sizeof(shm::StatsControl));
    bytes.append(reinterpret_cast<const char*>(v.state_control), sizeof(shm::StateControl));
    return bytes;
  }
};

}  // namespace cutwater::test
