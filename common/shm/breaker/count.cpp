// SPDX-License-Identifier: Apache-2.0
// Counters of breakers: the same stripes as the limits', behind theirs.
#include "shm/breaker/count.hpp"
#include "shm/breaker/detail.hpp"

namespace cutwater::shm {
void count_breaker(const View& view, StripeHandle stripe, std::uint32_t index,
                   BreakerCounter counter, std::uint64_t n) noexcept {
  BreakerCounters* const place = breaker_counters_of(view, stripe, index);
  if (place != nullptr) add_to(stripe.shared, &place->value[static_cast<std::size_t>(counter)], n);
}

std::int64_t histogram_upper_ns(std::size_t cell) noexcept {
  const std::size_t octave = cell / 8, step = cell % 8;
  const double us = static_cast<double>(std::uint64_t{1} << octave) *
                    (1.0 + static_cast<double>(step + 1) / 8.0);
  return static_cast<std::int64_t>(us * 1000.0);
}

void count_duration(const View& view, StripeHandle stripe, std::uint32_t index,
                    std::int64_t duration_ns) noexcept {
  BreakerCounters* const place = breaker_counters_of(view, stripe, index);
  if (place == nullptr) return;
  add_duration(stripe, *place, duration_ns);
}

void add_breaker_counters(const View& view, StripeHandle stripe, std::uint32_t index,
                          const BreakerSums& sums) noexcept {
  BreakerCounters* const place = breaker_counters_of(view, stripe, index);
  if (place == nullptr) return;
  for (std::size_t c = 0; c < kBreakerCounters; ++c) {
    add_to(stripe.shared, &place->value[c], sums.value[c]);
  }
  for (std::size_t c = 0; c < kHistogramCells; ++c) {
    add_to(stripe.shared, &place->durations[c], sums.durations[c]);
  }
}

namespace {

/// Counts of outcomes and refusals, and the sum of durations. Whoever counts a class has counted
/// one of these in the same stripe before, and whoever counts a duration does so with it (the
/// outcome follows at once), so where all are 0 nothing was counted at all: most pairs of a stripe
/// and a breaker, and 3 of the 22 lines say so.
constexpr std::size_t kFirstCounters = 24;

bool nothing_counted(const BreakerCounters& place) noexcept {
  std::uint64_t any = 0;
  for (std::size_t c = 0; c < kFirstCounters; ++c) {
    any |= __atomic_load_n(&place.value[c], __ATOMIC_RELAXED);
  }
  return any == 0;
}

}  // namespace

BreakerSums sum_breaker_counters(const View& view, std::uint32_t index) noexcept {
  BreakerSums sums;
  if (index >= view.breaker_count) return sums;
  for (std::uint32_t i = 0; i < view.stripe_count; ++i) {
    std::uint8_t* const stripe =
        view.stripes + std::uint64_t{i} * view.stripe_stride + sizeof(StripeOwner);
    const BreakerCounters* const place = breaker_counters_of(view, {stripe, true}, index);
    if (nothing_counted(*place)) continue;
    for (std::size_t c = 0; c < kBreakerCounters; ++c) {
      sums.value[c] += __atomic_load_n(&place->value[c], __ATOMIC_RELAXED);
    }
    for (std::size_t c = 0; c < kHistogramCells; ++c) {
      sums.durations[c] += __atomic_load_n(&place->durations[c], __ATOMIC_RELAXED);
    }
  }
  return sums;
}

std::uint64_t breaker_uses(const View& view, std::uint32_t index) noexcept {
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < view.stripe_count && index < view.breaker_count; ++i) {
    std::uint8_t* const stripe =
        view.stripes + std::uint64_t{i} * view.stripe_stride + sizeof(StripeOwner);
    const BreakerCounters* const place = breaker_counters_of(view, {stripe, true}, index);
    if (nothing_counted(*place)) continue;
    for (const std::uint64_t& one : place->value) all += __atomic_load_n(&one, __ATOMIC_RELAXED);
  }
  return all;
}

void count_damage(const View& view) noexcept {
  __atomic_fetch_add(&view.stats_control->damage, 1, __ATOMIC_RELAXED);
}
void count_contention(const View& view) noexcept {
  __atomic_fetch_add(&view.stats_control->contention, 1, __ATOMIC_RELAXED);
}

}  // namespace cutwater::shm
