// SPDX-License-Identifier: Apache-2.0
#include "vectors/vector_table.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::int64_t kExact = 1'000'000'000;
constexpr std::int64_t kHour = 3600;

}  // namespace

const std::vector<Group>& vector_table() {
  using enum Act;
  static const std::vector<Group> table = {
      {"A", "1/s", 1, kSecond, 5, {
          {"V01", 0, Take, 6, false, 5, kNeverMs, 0},
          {"V02", 0, Take, 1, true, 4, 0, 1000},
          {"V03", 0, Take, 1, true, 3, 0, 2000},
          {"V04", 0, Take, 1, true, 2, 0, 3000},
          {"V05", 0, Take, 1, true, 1, 0, 4000},
          {"V06", 0, Take, 1, true, 0, 0, 5000},
          {"V07", 0, Take, 1, false, 0, 1000, 5000},
          {"V08", 3000, Take, 1, true, 2, 0, 3000},
          {"V09", 3100, Take, 1, true, 1, 0, 3900},
          {"V10", 4000, Take, 1, true, 1, 0, 4000},
          {"V11", 8000, Take, 1, true, 4, 0, 1000},
          {"V12", 9500, Take, 1, true, 4, 0, 1000},
          {"V13", 9500, Take, 0, true, 4, 0, 1000},
          {"V14", 9500, Take, 2, true, 2, 0, 3000},
          {"V15", 9500, Take, 5, false, 2, 3000, 3000},
      }},
      {"B", "30 per 60 s", 30, 60 * kSecond, 16, {
          {"V16", 0, Take, 1, true, 15, 0, 2000},
          {"V17", 0, Take, 15, true, 0, 0, 32000},
          {"V18", 0, Take, 1, false, 0, 2000, 32000},
          {"V19", 1999, Take, 1, false, 0, 1, 30001},
          {"V20", 2000, Take, 1, true, 0, 0, 32000},
          {"V21", 34000, Take, 0, true, 16, 0, 0},
          {"V22", 34001, Take, 16, true, 0, 0, 32000},
      }},
      {"C", "1 per 2 s", 1, 2 * kSecond, 1, {
          {"V23", 0, Take, 1, true, 0, 0, 2000},
          {"V24", 0, Take, 1, false, 0, 2000, 2000},
          {"V25", 1999, Take, 1, false, 0, 1, 1},
          {"V26", 2000, Take, 1, true, 0, 0, 2000},
          {"V27", 10000, Take, 1, true, 0, 0, 2000},
          {"V28", 10000, Take, 1, false, 0, 2000, 2000},
      }},
      {"C2", "1 per 60 s", 1, 60 * kSecond, 1, {
          {"V29", 0, Take, 1, true, 0, 0, 60000},
          {"V30", 1, Take, 1, false, 0, 59999, 59999, 999},
      }},
      {"D", "7/s", 7, kSecond, 2, {
          {"V31", 0, Take, 1, true, 1, 0, 143},
          {"V32", 0, Take, 1, true, 0, 0, 286},
          {"V33", 0, Take, 1, false, 0, 143, 286},
          {"V34", 142, Take, 1, false, 0, 1, 144},
          {"V35", 143, Take, 1, true, 0, 0, 286},
      }},
      {"E", "1/s", 1, kSecond, 10, {
          {"V41", 0, Take, 7, true, 3, 0, 7000},
          {"V42", 0, Take, 4, false, 3, 1000, 7000},
          {"V43", 0, Take, 3, true, 0, 0, 10000},
          {"V44", 0, Take, 11, false, 0, kNeverMs, 10000},
          {"V45", 2500, Take, 2, true, 0, 0, 9500},
          {"V46", 2500, Take, 1, false, 0, 500, 9500},
      }},
      {"F", "1/s", 1, kSecond, 10, {
          {"V47", 0, Take, 10, true, 0, 0, 10000},
          {"V48", 0, Credit, 4, true, 4, 0, 6000, 1, "", 0, 6 * kExact},
          {"V49", 0, Credit, 100, true, 10, 0, 0, 1, "", 0, 0},
          {"V50", 0, Take, 10, true, 0, 0, 10000, 1, "", 0, 10 * kExact},
          {"V51", 0, ChargeAfter, 5, true, 0, 0, 15000, 1, "", 0, 15 * kExact},
          {"V52", 0, Take, 1, false, 0, 6000, 15000, 1, "", 6 * kExact, 15 * kExact},
          {"V53", 5000, Take, 1, false, 0, 1000, 10000, 1, "", kExact, 10 * kExact},
          {"V54", 6000, Take, 1, true, 0, 0, 10000, 1, "", 0, 10 * kExact},
      }, ", max-debt: 5"},
      {"F2", "1/s", 1, kSecond, 10, {
          {"V55", 0, Credit, 5, true, 10, 0, 0, 1, "", 0, 0},
      }},
      // Lowered and raised again under keep-used: what was used stays used, in tokens. A change is
      // in force 1 ns after the moment it is asked for; that nanosecond's refill is in the exact
      // numbers.
      {"G", "10 per 60 s", 10, 60 * kSecond, 10, {
          {"", 0, Take, 8, true, 2, 0, 48000},
          {"V58", 0, Reload, 5, true, 0, 0, 96000, 1, "5 per 60 s", 0, 95'999'999'998},
          {"V59", 0, Take, 1, false, 0, 48000, 96000, 1, "", 47'999'999'998, 95'999'999'998},
          {"V60", 0, Reload, 10, true, 2, 0, 48000, 1, "10 per 60 s", 0, 47'999'999'999},
          {"V61", 0, Take, 3, false, 2, 6000, 48000, 1, "", 5'999'999'999, 47'999'999'999},
          {"V62", 0, Take, 2, true, 0, 0, 60000, 1, "", 0, 59'999'999'999},
      }},
      {"G63", "10 per 60 s", 10, 60 * kSecond, 100, {
          {"", 0, Take, 60, true, 40, 0, 360000},
          {"V63", 0, Reload, 200, true, 40, 0, 960000, 1, "10 per 60 s", 0, 959'999'999'999},
      }, ", on-change: as-is"},
      {"G64", "10 per 60 s", 10, 60 * kSecond, 100, {
          {"", 0, Take, 60, true, 40, 0, 360000},
          {"V64", 0, Reload, 20, true, 20, 0, 0, 1, "10 per 60 s", 0, 0},
      }, ", on-change: as-is"},
      // The wall clock is set while the memory's own clock stands still.
      {"H", "1/s", 1, kSecond, 5, {
          {"", 0, Take, 1, true, 4, 0, 1000},
          {"", 0, StepWallClock, -10, true, 0, 0, 0},
          {"V73", 0, Take, 1, true, 3, 0, 2000},
      }},
      {"H2", "1/s", 1, kSecond, 5, {
          {"", 0, Take, 5, true, 0, 0, 5000},
          {"", 0, StepWallClock, kHour, true, 0, 0, 0},
          {"V74", 0, Take, 1, false, 0, 1000, 5000},
      }},
  };
  return table;
}

}  // namespace cutwater::test
