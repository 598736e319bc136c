// SPDX-License-Identifier: Apache-2.0
// Limit's friend: between a Limit and the record behind it.
#pragma once
#include <cutwater/limit.hpp>

#include "src/limit_state.hpp"

namespace cutwater::detail {

struct LimitOf {
  static Limit of(LimitState& state) noexcept { return Limit(&state); }
  static LimitState& state(const Limit& limit) noexcept { return *limit.state_; }
};

}  // namespace cutwater::detail
