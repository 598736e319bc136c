// SPDX-License-Identifier: Apache-2.0
#include "shm/counters.hpp"

#include "base/cas16.hpp"
#include "base/guard.hpp"

namespace cutwater::shm {
namespace {

StripeOwner& owner_of(const View& view, std::uint32_t stripe) noexcept {
  return *reinterpret_cast<StripeOwner*>(view.stripes + std::uint64_t{stripe} * view.stripe_stride);
}

std::uint8_t* counters_of(const View& view, std::uint32_t stripe) noexcept {
  return view.stripes + std::uint64_t{stripe} * view.stripe_stride + sizeof(StripeOwner);
}

constexpr std::uint64_t pack_owner(std::uint32_t row, std::uint32_t generation) noexcept {
  return std::uint64_t{row} << 32 | generation;
}

}  // namespace

StripeHandle shared_stripe(const View& view) noexcept {
  return {counters_of(view, kSharedStripe), true};
}

StripeHandle claim_stripe(const View& view, StripeOwnerWord owner) noexcept {
  if (owner.lo == 0) return shared_stripe(view);   // no row: nobody would ever free the stripe
  for (std::uint32_t stripe = kSharedStripe + 1; stripe < view.stripe_count; ++stripe) {
    StripeOwner& place = owner_of(view, stripe);
    Word16 seen = load16(&place.owner);
    if (guarded(Guard::StripeOneWriter)) {
      if (seen != Word16{}) continue;
      // The swap also orders: the last owner's counts are seen before the new one's first.
      if (!cas16(&place.owner, seen, owner)) continue;
    }
    return {counters_of(view, stripe), false};
  }
  return shared_stripe(view);
}

void release_stripe(const View& view, StripeOwnerWord owner) noexcept {
  if (owner.lo == 0) return;
  for (std::uint32_t stripe = kSharedStripe + 1; stripe < view.stripe_count; ++stripe) {
    Word16 expected = owner;
    StripeOwner& place = owner_of(view, stripe);
    if (load16(&place.owner) == owner && cas16(&place.owner, expected, Word16{})) return;
  }
}

std::uint32_t release_stripes_of(const View& view, std::uint32_t row,
                                 std::uint32_t generation) noexcept {
  std::uint32_t released = 0;
  for (std::uint32_t stripe = kSharedStripe + 1; stripe < view.stripe_count; ++stripe) {
    StripeOwner& place = owner_of(view, stripe);
    Word16 seen = load16(&place.owner);
    if (seen.lo != pack_owner(row, generation)) continue;
    // Lost: another thread of that dead row cannot be; a scribble is found at the next pass.
    if (cas16(&place.owner, seen, Word16{})) ++released;
  }
  return released;
}

std::uint32_t stripes_in_use(const View& view) noexcept {
  std::uint32_t used = 0;
  for (std::uint32_t stripe = kSharedStripe + 1; stripe < view.stripe_count; ++stripe) {
    if (load16(&owner_of(view, stripe).owner) != Word16{}) ++used;
  }
  return used;
}

std::array<std::uint64_t, kLimitCounters> sum_counters(const View& view,
                                                       std::uint32_t limit) noexcept {
  std::array<std::uint64_t, kLimitCounters> sum{};
  if (limit >= view.limit_count) return sum;
  for (std::uint32_t stripe = 0; stripe < view.stripe_count; ++stripe) {
    const auto* counters =
        reinterpret_cast<const LimitCounters*>(counters_of(view, stripe)) + limit;
    for (std::size_t i = 0; i < kLimitCounters; ++i) {
      // relaxed: each count stands for itself.
      sum[i] += __atomic_load_n(&counters->value[i], __ATOMIC_RELAXED);
    }
  }
  return sum;
}

}  // namespace cutwater::shm
