// SPDX-License-Identifier: Apache-2.0
#include "reaper.hpp"

#include <algorithm>

#include "reap.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"

namespace cutwater::server {
namespace {

std::uint32_t round_of(const shm::View& view) noexcept {
  return view.bulkhead_count + view.breaker_count;
}

void look_at(const shm::View& view, std::uint32_t at) noexcept {
  const shm::StripeHandle stripe = shm::shared_stripe(view);
  if (at < view.bulkhead_count) {
    if (shm::bulkhead_may_hold(view, at)) static_cast<void>(shm::tick_bulkhead(view, at, stripe));
    return;
  }
  const std::uint32_t breaker = at - view.bulkhead_count;
  if (shm::breaker_may_hold(view, breaker)) {
    static_cast<void>(shm::tick_breaker(view, breaker, stripe));
  }
}

}  // namespace

void Reaper::add(const shm::View& view, shm::RowTable& rows, shm::RowGrant row) {
  rows.mark_dead(row);
  dead_.push_back({row, round_of(view)});
}

std::vector<shm::RowGrant> Reaper::step(const shm::View& view, shm::RowTable& rows) {
  std::vector<shm::RowGrant> freed;
  const std::uint32_t all = round_of(view);
  const std::uint32_t many = std::min(all, kAtOnce);
  if (all <= kAtOnce) {
    for (const Dead& dead : dead_) reap(view, rows, dead.row), freed.push_back(dead.row);
    looks_ += std::uint64_t{all} * dead_.size();
    dead_.clear();
    return freed;
  }
  for (std::uint32_t n = 0; n < many; ++n, ++next_) {
    if (next_ >= all) next_ = 0;
    look_at(view, next_);
  }
  looks_ += many;
  for (Dead& dead : dead_) {
    dead.left -= std::min(dead.left, many);
    if (dead.left != 0) continue;
    carry_out(ReapStep::FreeStripes, view, rows, dead.row);
    carry_out(ReapStep::FreeRow, view, rows, dead.row);
    // relaxed: a count for people.
    __atomic_fetch_add(&view.stats_control->reclaimed_rows, 1, __ATOMIC_RELAXED);
    freed.push_back(dead.row);
  }
  std::erase_if(dead_, [](const Dead& dead) { return dead.left == 0; });
  return freed;
}

void Reaper::memory_replaced(const shm::View& view) noexcept {
  for (Dead& dead : dead_) dead.left = round_of(view);
  next_ = 0;
}

}  // namespace cutwater::server
