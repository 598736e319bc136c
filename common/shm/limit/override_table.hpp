// SPDX-License-Identifier: Apache-2.0
// How overrides lie in their table: in the order of their home. Then no key lies farther from its
// home than it must (at half load never more than a few places), and looking for one that is not
// there ends at a free record. Pure.
#pragma once
#include <vector>

#include "shm/layout.hpp"

namespace cutwater::shm {

/// Writes all of `table`; sorts `overrides`. False: one would lie farther than kOverrideProbes, and
/// the table is not whole.
bool place_overrides(std::vector<OverrideRecord>& overrides, OverrideRecord* table,
                     std::uint64_t count);

}  // namespace cutwater::shm
