// SPDX-License-Identifier: Apache-2.0
// RefusalMoment: what a refusal of a mapped breaker keeps of the moment it refused in, so that its
// text() says that and not how the breaker is by the time of reading. A plain value without
// padding; lies in the bytes of BreakerRefusal::why_, which only a told refusal uses for words.
// Thread safety: values.
#pragma once
#include <cstdint>

#include "shm/breaker/breaker.hpp"

namespace cutwater::detail {

struct RefusalMoment {
  std::uint64_t since_lo = 0, since_hi = 0;      ///< BreakerHead::since; hi 0: unknown
  std::uint32_t epoch = 0;                       ///< of the state that refused; 0: unknown
  std::uint32_t reason = 0;                      ///< rule::BreakerReason
  std::uint32_t probes = 0;                      ///< HALF_OPEN: cells there are; 0: unknown
  std::uint32_t held = 0, spent = 0;             ///< of them
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RefusalMoment) == 40);

/// Of a refusal by the host's state: two looks into the breaker's line, which was read just before;
/// in HALF_OPEN at its probes too. What has moved on since it refused stays unknown.
RefusalMoment moment_of(const shm::View& view, std::uint32_t index,
                        const shm::BreakerEntry& said) noexcept;

}  // namespace cutwater::detail
