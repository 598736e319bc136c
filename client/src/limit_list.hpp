// SPDX-License-Identifier: Apache-2.0
// LimitList: the limits of one ask over several, as the memory wants them. For acquire_all() and
// enter(). Thread safety: a value of one thread.
#pragma once
#include <array>
#include <cstddef>
#include <span>

#include <cutwater/admission.hpp>

#include "shm/limit/admit.hpp"
#include "src/limit_state.hpp"

namespace cutwater::detail {

/// The records and asks of a list, in its order. Keys are the caller's.
struct PreparedLimits {
  std::array<LimitState*, kMaxLimitsAtOnce> state{};
  std::array<shm::AdmitAsk, kMaxLimitsAtOnce> ask{};
  std::size_t count = 0;

  std::span<const shm::AdmitAsk> asks() const noexcept { return {ask.data(), count}; }
};

/// Why a list cannot be asked at all; Reason::Allowed when it can: `out` has the records then.
/// `at`: the item, `of`: its limit.
Reason prepare_limits(std::span<const LimitAsk> asks, PreparedLimits& out, const LimitState** of,
                      std::size_t& at) noexcept;
/// Looks once more for the name of an item that is gone. True: it is there again.
bool prepare_again(PreparedLimits& list, std::size_t item) noexcept;

}  // namespace cutwater::detail
