// SPDX-License-Identifier: Apache-2.0
#include "src/known_key.hpp"

#include <cstring>

namespace cutwater::detail {

namespace {

/// What keep_plain_rule() found, to be stored if `current` is still the same.
bool read_plain_rule(const LimitState& state, std::uint64_t current, PlainRule& found) noexcept {
  const shm::View& view = *state.view;
  const shm::LimitRef ref = unpack_ref(state.ref.load(std::memory_order_relaxed));
  if (ref.index >= view.limit_count || (current & shm::kCurrentSupersededBit) != 0) return false;
  const shm::LimitConfig& config = view.limit_config(current, ref.index);
  const std::uint16_t id = shm::read_once(config.rule[shm::detail::kWindow0]);
  // One window and nothing besides: no override, pattern, ban, shadow or calendar to look at.
  if (shm::read_once(config.windows) != 1 || shm::read_once(config.flags) != 0 ||
      shm::read_once(view.limits[ref.index].bans_until) != 0 ||
      shm::read_once(config.incarnation) != ref.incarnation || id >= view.rule_count) {
    return false;
  }
  const shm::RuleRecord& record = view.rule(current, id);
  if (shm::read_once(record.kind) != static_cast<std::uint8_t>(shm::RuleKind::Token)) return false;
  const rule::Piece piece = shm::read_after(record);
  const std::uint8_t f = shm::read_once(record.f);
  // The product is taken from the upper half: shift 60..63 by moving the time up before it, more by
  // moving the product down behind it. Less than 60 occurs for no rate in use.
  if (piece.shift < 60 || piece.shift > 126 || f > rule::kMaxFractionBits) return false;
  const std::uint64_t up = piece.shift < 64 ? 64 - piece.shift : 0;
  const std::uint64_t down = piece.shift < 64 ? 0 : piece.shift - 64;
  DecisionNumbers answer{};
  answer.reason = Reason::Allowed;
  answer.decided_by = state.decided_by;
  answer.shift = piece.shift;
  answer.f = f;
  answer.receipt = Receipt::One;
  found.names = ref.index | std::uint64_t{id} << 32 | up << 48 | down << 56;
  std::memcpy(&found.head, &answer, sizeof found.head);
  found.mult = piece.mult;
  found.start = view.clock.to_boottime(piece.base_t);
  found.base_t = piece.base_t;
  found.base_n = piece.base_n;
  found.burst = piece.burst;
  found.floor = piece.floor;
  found.reach = piece.reach;
  return view.current() == current;
}

}  // namespace

void prepare_plain_rule(LimitState& state) noexcept {
  const shm::View& view = *state.view;
  state.plain.current_at = &view.rules_control->current;
  state.plain.stepped = view.clock.stepped_word();
  state.plain.slots = view.slots;
  state.plain.slot_count = view.clock.is_tsc() ? 0 : view.slot_count;
}

void keep_plain_rule(LimitState& state, std::uint64_t current) noexcept {
  PlainRule& kept = state.plain;
  if (kept.slot_count == 0 || __atomic_load_n(&kept.current, __ATOMIC_RELAXED) == current) return;
  PlainRule found;
  if (!read_plain_rule(state, current, found)) return;
  // Who fails here leaves it to the other one, or to the next change of the rules: the long way
  // decides the same. A writer that a fork left behind is of another life.
  std::uint64_t writer = __atomic_load_n(&kept.writer, __ATOMIC_RELAXED);
  const std::uint64_t life = process_life();
  if (writer == life ||
      !__atomic_compare_exchange_n(&kept.writer, &writer, life, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED)) {
    return;
  }
  // Only newer rules than those kept, so nobody takes an older number for the one in force.
  if (state.view->current() == current) {
    const auto put = [](auto& place, auto value) {
      __atomic_store_n(&place, value, __ATOMIC_RELEASE);
    };
    put(kept.current, kNoCurrent);
    put(kept.names, found.names);
    put(kept.head, found.head);
    put(kept.start, found.start);
    put(kept.mult, found.mult);
    put(kept.base_t, found.base_t);
    put(kept.base_n, found.base_n);
    put(kept.burst, found.burst);
    put(kept.floor, found.floor);
    put(kept.reach, found.reach);
    put(kept.current, current);
  }
  __atomic_store_n(&kept.writer, std::uint64_t{0}, __ATOMIC_RELEASE);
}

}  // namespace cutwater::detail
