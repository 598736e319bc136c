// SPDX-License-Identifier: Apache-2.0
// Counters of bulkheads: the same stripes as the limits' and breakers', behind theirs.
#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm {
namespace {

BulkheadCounters* counters_of(const View& view, StripeHandle stripe,
                              std::uint32_t index) noexcept {
  if (stripe.counters == nullptr || index >= view.bulkhead_count) return nullptr;
  return reinterpret_cast<BulkheadCounters*>(stripe.counters + view.stripe_bulkheads_offset) +
         index;
}

std::int64_t not_negative(std::int64_t ns) noexcept { return ns < 0 ? 0 : ns; }

}  // namespace

void count_bulkhead(const View& view, StripeHandle stripe, std::uint32_t index,
                    BulkheadCounter counter, std::uint64_t n) noexcept {
  BulkheadCounters* const place = counters_of(view, stripe, index);
  if (place != nullptr) add_to(stripe.shared, &place->value[static_cast<std::size_t>(counter)], n);
}

void count_held(const View& view, StripeHandle stripe, std::uint32_t index,
                std::int64_t duration_ns) noexcept {
  BulkheadCounters* const place = counters_of(view, stripe, index);
  if (place == nullptr) return;
  const std::int64_t ns = not_negative(duration_ns);
  add_to(stripe.shared, &place->held[histogram_cell(ns)], std::uint32_t{1});
  count_bulkhead(view, stripe, index, BulkheadCounter::HeldUs,
                 static_cast<std::uint64_t>(ns) / 1'000);
}

void count_waited(const View& view, StripeHandle stripe, std::uint32_t index,
                  std::int64_t duration_ns) noexcept {
  BulkheadCounters* const place = counters_of(view, stripe, index);
  if (place == nullptr) return;
  const std::int64_t ns = not_negative(duration_ns);
  add_to(stripe.shared, &place->waited[histogram_cell(ns)], std::uint32_t{1});
  count_bulkhead(view, stripe, index, BulkheadCounter::Waited);
  count_bulkhead(view, stripe, index, BulkheadCounter::WaitedUs,
                 static_cast<std::uint64_t>(ns) / 1'000);
}

BulkheadSums sum_bulkhead_counters(const View& view, std::uint32_t index) noexcept {
  BulkheadSums sums;
  if (index >= view.bulkhead_count) return sums;
  for (std::uint32_t i = 0; i < view.stripe_count; ++i) {
    std::uint8_t* const stripe =
        view.stripes + std::uint64_t{i} * view.stripe_stride + sizeof(StripeOwner);
    const BulkheadCounters* const place = counters_of(view, {stripe, true}, index);
    std::uint64_t any = 0;
    for (std::size_t c = 0; c < kBulkheadCounters; ++c) {
      const std::uint64_t n = __atomic_load_n(&place->value[c], __ATOMIC_RELAXED);
      sums.value[c] += n;
      any |= n;
    }
    // Whoever counts a time has counted a Granted or Returned in the same stripe before: most pairs
    // of a stripe and a bulkhead have neither, and 2 of the 29 lines say so.
    if (any == 0) continue;
    for (std::size_t c = 0; c < kHistogramCells; ++c) {
      sums.held[c] += __atomic_load_n(&place->held[c], __ATOMIC_RELAXED);
      sums.waited[c] += __atomic_load_n(&place->waited[c], __ATOMIC_RELAXED);
    }
  }
  return sums;
}

std::uint64_t bulkhead_uses(const View& view, std::uint32_t index) noexcept {
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < view.stripe_count && index < view.bulkhead_count; ++i) {
    std::uint8_t* const stripe =
        view.stripes + std::uint64_t{i} * view.stripe_stride + sizeof(StripeOwner);
    const BulkheadCounters* const place = counters_of(view, {stripe, true}, index);
    for (const std::uint64_t& one : place->value) all += __atomic_load_n(&one, __ATOMIC_RELAXED);
  }
  return all;
}

}  // namespace cutwater::shm
