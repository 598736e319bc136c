// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/override_table.hpp"

#include <algorithm>

#include "shm/limit/bucket_table.hpp"

namespace cutwater::shm {

bool place_overrides(std::vector<OverrideRecord>& overrides, OverrideRecord* table,
                     std::uint64_t count) {
  std::sort(overrides.begin(), overrides.end(),
            [](const auto& a, const auto& b) { return a.key_hash < b.key_hash; });
  // Those that find no room up to the end go on at the beginning, before all others there.
  std::uint64_t wrapped = 0;
  for (bool again = true; again;) {
    std::uint64_t at = wrapped;
    for (const OverrideRecord& over : overrides) {
      at = std::max(at, mulhi(over.key_hash, count)) + 1;
    }
    const std::uint64_t beyond = at > count ? at - count : 0;
    again = beyond > wrapped;
    if (again) wrapped = beyond;
  }
  std::fill(table, table + count, OverrideRecord{});
  std::uint64_t at = wrapped;
  for (const OverrideRecord& over : overrides) {
    const std::uint64_t home = mulhi(over.key_hash, count);
    at = std::max(at, home);
    if (at - home >= kOverrideProbes) return false;
    table[at % count] = over;
    ++at;
  }
  return true;
}

}  // namespace cutwater::shm
