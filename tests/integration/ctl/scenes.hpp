// SPDX-License-Identifier: Apache-2.0
// Configurations that several tests of cutwaterctl begin with, and what they do with them.
#pragma once
#include <cstdint>
#include <string>

#include <cutwater/breaker.hpp>

namespace cutwater::ctl {

inline constexpr std::int64_t kSecond = 1'000'000'000;

/// `api` with one window, `tenant` with two.
inline const std::string kTwoLimits =
    "capacity: { keys: 1024 }\n"
    "limits:\n"
    "  api: { rate: 10/s, burst: 10 }\n"
    "  tenant: { windows: [ 100/s, { rate: 1000/h, burst: 20 } ] }\n";

/// `fraud` as by default, with a note; `stock` judges its last four calls.
inline const std::string kTwoBreakers =
    "capacity: { keys: 1024 }\n"
    "breakers:\n"
    "  fraud: { note: card checks, enable-randomized-wait: false }\n"
    "  stock: { sliding-window-type: COUNT_BASED, sliding-window-size: 4,\n"
    "    minimum-number-of-calls: 4, wait-duration-in-open-state: 15s,\n"
    "    permitted-number-of-calls-in-half-open-state: 2 }\n";

inline void fail(Breaker& breaker, int times) {
  for (int i = 0; i < times; ++i) breaker.try_enter()->failed("timeout");
}

}  // namespace cutwater::ctl
