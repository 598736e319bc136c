// SPDX-License-Identifier: Apache-2.0
// A real daemon with a limit, a breaker and two bulkheads, and clients that map its memory or ask
// it over the socket. Thread safety: as a test's.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include <cutwater/client.hpp>
#include <cutwater/enter.hpp>

#include "support/daemon_process.hpp"

namespace cutwater::test {

using namespace std::chrono_literals;

inline constexpr char kPlaceConfig[] =
    "limits: { api: { rate: 1/h, burst: 5 } }\n"
    "breakers:\n"
    "  fraud: {sliding-window-type: COUNT_BASED, sliding-window-size: 1,\n"
    "    minimum-number-of-calls: 1, wait-duration-in-open-state: 1ms,\n"
    "    permitted-number-of-calls-in-half-open-state: 1, probe-timeout: 10m}\n"
    "bulkheads:\n"
    "  gate: {max-concurrent-calls: 1, max-wait-duration: 10m}\n"
    "  pair: {max-concurrent-calls: 2, max-wait-duration: 10m}\n";

class DaemonPlace : public testing::Test {
 protected:
  void SetUp() override { place.write_config(kPlaceConfig); }
  void start(DaemonOptions options = {}) {
    daemon = std::make_unique<DaemonProcess>(place, std::move(options));
    ASSERT_TRUE(daemon->ready()) << daemon->log();
  }
  Client mapping() { return Client::open(place.address(), quiet()).value(); }
  Client asking() { return Client::open(place.address() + "?ask", quiet()).value(); }
  static ClientOptions quiet() {
    ClientOptions options;
    options.ask_timeout = 60s;
    options.log = [](std::string_view) {};
    return options;
  }
  static Bulkhead gate_of(Client& client) { return client.bulkhead("gate").value(); }
  static bool held_by_nobody(Bulkhead& gate) {
    return eventually([&] { return gate.use().in_use == 0; });
  }

  ScratchPlace place;
  std::unique_ptr<DaemonProcess> daemon;
};

}  // namespace cutwater::test
