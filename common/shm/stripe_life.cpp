// SPDX-License-Identifier: Apache-2.0
#include "shm/stripe_life.hpp"

#include "base/cas16.hpp"
#include "base/sync_point.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

bool is_over(const View& view, StripeOwnerWord owner) noexcept {
  const auto row = static_cast<std::uint32_t>(owner.lo >> 32);
  if (row == 0 || row >= view.row_count) return true;
  // acquire: pairs with the release of each change of a row.
  const RowWord word = unpack_row(__atomic_load_n(&view.rows[row].word, __ATOMIC_ACQUIRE));
  return word.generation != static_cast<std::uint32_t>(owner.lo) || word.state == RowState::Free;
}

}  // namespace

StripeHandle claim_living_stripe(const View& view, StripeOwnerWord owner) noexcept {
  const StripeHandle stripe = claim_stripe(view, owner);
  if (stripe.shared) return stripe;
  CUTWATER_SYNC_POINT("stripe.claimed");
  // The claim is a locked swap, so this look comes behind it; the reaper looks at the stripes
  // behind its mark. Either it sees this claim, or this sees the row marked; but while the mark
  // lies in the reaper's store buffer neither does, and the next look at those that are over frees
  // the stripe.
  const auto row = static_cast<std::uint32_t>(owner.lo >> 32);
  if (row_alive(view, row, static_cast<std::uint32_t>(owner.lo))) return stripe;
  release_stripe(view, owner);
  return shared_stripe(view);
}

std::uint32_t release_stripes_of_the_over(const View& view) noexcept {
  std::uint32_t released = 0;
  for (std::uint32_t stripe = kSharedStripe + 1; stripe < view.stripe_count; ++stripe) {
    auto& place = *reinterpret_cast<StripeOwner*>(view.stripes +
                                                  std::uint64_t{stripe} * view.stripe_stride);
    Word16 seen = load16(&place.owner);
    if (seen == Word16{} || !is_over(view, seen)) continue;
    // Lost: its thread gave it back itself.
    if (cas16(&place.owner, seen, Word16{})) ++released;
  }
  return released;
}

}  // namespace cutwater::shm
