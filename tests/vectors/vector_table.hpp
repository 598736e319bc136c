// SPDX-License-Identifier: Apache-2.0
// The vectors of the token bucket: what each ask is answered, row by row. Rows of a group follow
// one another on one fresh key. Milliseconds as people write such tables: durations rounded up; the
// tests compare nanoseconds as well, with the exact oracle or, behind a reload, with the numbers
// given here. Numbers are stable and not consecutive: tests/scenarios.txt.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cutwater::test {

inline constexpr std::int64_t kNeverMs = -1;

enum class Act : std::uint8_t {
  Take,           ///< try_acquire of `amount`; 0 is a look
  Reload,         ///< the limit becomes `rate`, `amount` is its burst; then a look at what is left
  Credit,         ///< an operator gives `amount` tokens; then a look at what is left
  ChargeAfter,    ///< `amount` is charged after the fact
  StepWallClock,  ///< by `amount` seconds, which may be negative; then nothing
};

struct Row {
  const char* id;                    ///< "V01"; empty for a step that only sets up
  std::int64_t at_ms;
  Act act;
  std::int64_t amount;
  bool allowed;
  std::uint64_t remaining;
  std::int64_t retry_ms;             ///< kNeverMs = never
  std::int64_t reset_ms;
  int times = 1;                     ///< asked so often, answered the same each time
  const char* rate = "";             ///< Reload
  std::optional<std::int64_t> retry_ns = {}, reset_ns = {};   ///< exact, where the oracle ends
};

struct Group {
  const char* name;
  const char* rate;
  std::uint64_t rate_count, rate_period_ns;   ///< the same for the oracle
  std::uint64_t burst;
  std::vector<Row> rows;
  const char* more = "";             ///< further settings: ", max-debt: 5"
};

const std::vector<Group>& vector_table();

}  // namespace cutwater::test
