// SPDX-License-Identifier: Apache-2.0
// Where a thread counts what became of a breaker's calls, for the files of shm/breaker/*.cpp that
// count on a short way. Not for anybody else.
#pragma once
#include <cstdint>

#include "shm/breaker/breaker.hpp"

namespace cutwater::shm {

/// nullptr: nothing is counted.
[[gnu::always_inline]] inline BreakerCounters* breaker_counters_of(const View& view,
                                                                   StripeHandle stripe,
                                                                   std::uint32_t index) noexcept {
  if (stripe.counters == nullptr || index >= view.breaker_count) return nullptr;
  return reinterpret_cast<BreakerCounters*>(stripe.counters + view.stripe_breakers_offset) + index;
}

/// One more call that took so long.
[[gnu::always_inline]] inline void add_duration(StripeHandle stripe, BreakerCounters& counters,
                                                std::int64_t duration_ns) noexcept {
  add_to(stripe.shared, &counters.durations[histogram_cell(duration_ns)], std::uint32_t{1});
  add_to(stripe.shared, &counters.value[static_cast<std::size_t>(BreakerCounter::DurationUs)],
         static_cast<std::uint64_t>(duration_ns) / 1'000);
}

}  // namespace cutwater::shm
