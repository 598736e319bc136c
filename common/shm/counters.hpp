// SPDX-License-Identifier: Apache-2.0
// Counters: monotone sums per limit in stripes with one writer
// thread each, so that counting costs a plain store.
//
// A stripe belongs to one thread of a process that has a row; it is claimed by cas16 of its owner
// line and freed by the daemon when the row dies. Its numbers are never zeroed: a new owner goes on
// from what it finds, so a reader's sum over all stripes never falls. Threads without a stripe
// (none left, no row, a forked child) use stripe 0 with atomic adds. A kill loses at most the one
// count under way. Never an input of a decision. Spec memory 13.1.
#pragma once
#include <array>
#include <cstdint>

#include "shm/view.hpp"

namespace cutwater::shm {

/// Identity of a writer, different for any two threads: lo = row:32 | row generation:32, hi =
/// thread number (1..).
using StripeOwnerWord = Word16;

/// Adds to a count that only this thread writes: a plain load and store cannot lose one. Returns
/// the sum.
[[gnu::always_inline]] inline std::uint64_t add_alone(std::uint64_t* place,
                                                      std::uint64_t n) noexcept {
  // relaxed: nothing else is read because of it.
  const std::uint64_t sum = __atomic_load_n(place, __ATOMIC_RELAXED) + n;
  __atomic_store_n(place, sum, __ATOMIC_RELAXED);
  return sum;
}

/// The same for a writer that may share the place (stripe 0).
template <class T>
[[gnu::always_inline]] inline void add_to(bool shared, T* place, T n) noexcept {
  // relaxed: nothing rides on a count. One writer: a plain load and store cannot lose one.
  if (shared) [[unlikely]] {
    __atomic_fetch_add(place, n, __ATOMIC_RELAXED);
  } else {
    __atomic_store_n(place, static_cast<T>(__atomic_load_n(place, __ATOMIC_RELAXED) + n),
                     __ATOMIC_RELAXED);
  }
}

/// Where one thread counts. Trivial: lives in thread-local storage, copied freely within that
/// thread.
struct StripeHandle {
  std::uint8_t* counters = nullptr;    ///< LimitCounters[limits] of the stripe, nullptr = none
  bool shared = true;                  ///< stripe 0: atomic adds

  /// Those of one limit.
  LimitCounters& of(std::uint32_t limit) const noexcept {
    return reinterpret_cast<LimitCounters*>(counters)[limit];
  }

  /// Returns the count with it.
  [[gnu::always_inline]] std::uint64_t add(std::uint32_t limit, LimitCounter counter,
                                           std::uint64_t n) const noexcept {
    auto* place = &of(limit).value[static_cast<int>(counter)];
    // relaxed: many writers; nothing rides on it.
    if (shared) [[unlikely]] return __atomic_add_fetch(place, n, __ATOMIC_RELAXED);
    return add_alone(place, n);
  }
};

/// The shared stripe.
StripeHandle shared_stripe(const View& view) noexcept;
/// Claims a free stripe for `owner`; the shared one when none is free or owner.lo is 0 (no row).
StripeHandle claim_stripe(const View& view, StripeOwnerWord owner) noexcept;
/// Frees exactly the stripe that `owner` holds (thread exit). Does nothing when it does not hold
/// one.
void release_stripe(const View& view, StripeOwnerWord owner) noexcept;
/// Frees every stripe of a dead row; returns how many. Daemon only.
std::uint32_t release_stripes_of(const View& view, std::uint32_t row,
                                 std::uint32_t generation) noexcept;
/// Stripes in use (without the shared one).
std::uint32_t stripes_in_use(const View& view) noexcept;

/// Sum over all stripes of one limit's counters.
std::array<std::uint64_t, kLimitCounters> sum_counters(const View& view,
                                                       std::uint32_t limit) noexcept;

}  // namespace cutwater::shm
