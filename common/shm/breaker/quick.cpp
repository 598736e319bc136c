// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/quick.hpp"

#include "shm/breaker/detail.hpp"
#include "shm/breaker/user.hpp"

namespace cutwater::shm::detail {

bool opens_nothing_at_all(const View& view, const BreakerKept& kept, std::uint64_t begun,
                          std::uint64_t calls, std::uint64_t next, std::uint64_t base) noexcept {
  rule::OpenAt at;
  if (!read_open_at(kept, view, begun, at)) return false;
  rule::BreakerWindow window;
  window.calls = calls;
  window.failures = ((next >> 20) - (base >> 20)) & kCountMask;
  window.slow = (next - base) & kCountMask;
  return rule::reason_to_open(at, window, {}) == rule::BreakerReason::None;
}

void settle_slowly(const View& view, std::uint64_t ref, BreakerRing* ring, std::uint64_t at,
                   BreakerCaller caller) noexcept {
  BreakerParts parts;
  const BreakerRef of{static_cast<std::uint32_t>(ref), static_cast<std::uint32_t>(ref >> 32)};
  // A ring that was moved meanwhile: what came to it goes on to the new one, and is judged there.
  if (!read_parts(view, of, parts) || parts.ring.head != ring || parts.is_time()) return;
  settle_count(parts, at, 0, caller);
}

void count_user_slowly(BreakerUser* user, std::uint32_t epoch, std::uint64_t at,
                       std::uint32_t window_calls) noexcept {
  const std::uint64_t turn = at / std::max(window_calls, 1u);
  static_cast<void>(count_in_record(*user, {epoch, static_cast<std::uint32_t>(turn), {}, 0}));
}

}  // namespace cutwater::shm::detail
