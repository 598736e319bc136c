// SPDX-License-Identifier: Apache-2.0
#include "debt_count.hpp"

#include <algorithm>

#include "shm/limit/bucket_table.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::server {

bool in_debt(const shm::View& view, std::uint64_t current, const Word16& slot, std::int64_t now) {
  if (slot.lo == 0 || shm::is_claim(slot.lo)) return false;
  const std::uint16_t id = shm::rule_of(slot.lo);
  if (id == 0 || id >= view.rule_count) return false;
  const shm::RuleRecord& record = view.rule(current, id);
  return static_cast<std::int64_t>(slot.hi) > shm::full_level(view, current, record, now);
}

std::optional<std::vector<std::uint64_t>> count_debts(const shm::View& view) {
  if (view.slot_count > kMaxSlotsCounted) return std::nullopt;
  const std::uint64_t current = view.current();
  const std::int64_t now = view.clock.now();
  std::vector<std::uint64_t> by_window(std::size_t{view.limit_count} * shm::kMaxWindows);
  for (std::uint64_t i = 0; i < view.slot_count; ++i) {
    const Word16 slot = load16(view.slots + i);
    if (!in_debt(view, current, slot, now)) continue;
    const shm::RuleRecord& record = view.rule(current, shm::rule_of(slot.lo));
    if (record.limit >= view.limit_count || record.window >= shm::kMaxWindows) continue;
    ++by_window[std::size_t{record.limit} * shm::kMaxWindows + record.window];
  }
  std::vector<std::uint64_t> out(view.limit_count);
  for (std::size_t limit = 0; limit < out.size(); ++limit) {
    const auto first = by_window.begin() + static_cast<std::ptrdiff_t>(limit * shm::kMaxWindows);
    out[limit] = *std::max_element(first, first + shm::kMaxWindows);
  }
  return out;
}

}  // namespace cutwater::server
