// SPDX-License-Identifier: Apache-2.0
#include "reap.hpp"

#include "base/guard.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/counters.hpp"

namespace cutwater::server {

std::array<ReapStep, 5> reap_order() noexcept {
  if (!guarded(Guard::RowFreedLast)) {
    return {ReapStep::MarkDead, ReapStep::FreeRow, ReapStep::FreePlaces, ReapStep::FreeProbes,
            ReapStep::FreeStripes};
  }
  return {ReapStep::MarkDead, ReapStep::FreePlaces, ReapStep::FreeProbes, ReapStep::FreeStripes,
          ReapStep::FreeRow};
}

void carry_out(ReapStep step, const shm::View& view, shm::RowTable& rows, shm::RowGrant row) {
  switch (step) {
    case ReapStep::MarkDead: return rows.mark_dead(row);
    case ReapStep::FreePlaces:
      for (std::uint32_t i = 0; i < view.bulkhead_count; ++i) {
        static_cast<void>(shm::tick_bulkhead(view, i, shm::shared_stripe(view)));
      }
      return;
    case ReapStep::FreeProbes:
      for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
        static_cast<void>(shm::tick_breaker(view, i, shm::shared_stripe(view)));
      }
      return;
    case ReapStep::FreeStripes:
      static_cast<void>(shm::release_stripes_of(view, row.index, row.generation));
      return;
    case ReapStep::FreeRow: return rows.free(row);
  }
}

void reap(const shm::View& view, shm::RowTable& rows, shm::RowGrant row) {
  for (const ReapStep step : reap_order()) carry_out(step, view, rows, row);
  // relaxed: a count for people.
  __atomic_fetch_add(&view.stats_control->reclaimed_rows, 1, __ATOMIC_RELAXED);
}

}  // namespace cutwater::server
