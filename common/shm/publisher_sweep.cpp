// SPDX-License-Identifier: Apache-2.0
// The sweep: converts what nobody asked for since a change gave
// a limit a new rule id, and clears entries of rules that are gone, slot by slot with one cas16
// each (~10 ns a slot). Only then is an old id free, and it rests an hour more.
#include "shm/bucket_detail.hpp"
#include "shm/publisher.hpp"

namespace cutwater::shm {

// One slot. False: it changed under us; look at it again.
bool Publisher::sweep_slot(Word16* slot, std::int64_t now) noexcept {
  Word16 word = load16(slot);
  if (word.lo == 0 || is_claim(word.lo)) return true;              // claims end by their deadline
  const std::uint16_t id = rule_of(word.lo);
  if (id >= view_.rule_count || rule(id).kind == 0) return cas16(slot, word, {0, 0});
  const std::uint32_t limit = rule(id).limit;
  const std::uint16_t next_id = config(limit).rule[0];
  if (next_id == id || rule(next_id).pred != id) return true;
  detail::Frame frame;
  frame.t = now;
  frame.c = view_.current();
  frame.id = next_id;
  frame.record = &view_.rule(frame.c, next_id);
  frame.f = read_once(frame.record->f) & 63;
  frame.piece = read_after(*frame.record);
  frame.n = rule::units_at(frame.piece, now);
  rule::Units tat = 0;
  if (!detail::tat_of(view_, frame, id, static_cast<rule::Units>(word.hi), tat)) return true;
  const Word16 next{(word.lo & ~kTagRuleMask) | next_id, static_cast<std::uint64_t>(tat)};
  return cas16(slot, word, next);
}

bool Publisher::sweep(std::uint64_t slots) {
  const std::int64_t now = view_.clock.now();
  if (!sweeping_) {
    // A change with a new id starts a pass once it is in force.
    for (std::uint32_t id = kFirstRuleId; id < head().rules; ++id) sweeping_ |= rule(id).pred != 0;
    if (!sweeping_) return true;
    next_slot_ = 0;
  }
  if (now < ready_at_) return false;
  const std::uint64_t end = std::min(view_.slot_count, next_slot_ + slots);
  for (; next_slot_ < end; ++next_slot_) {
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      if (sweep_slot(view_.slots + next_slot_, now)) break;
    }
  }
  if (next_slot_ < view_.slot_count) return false;
  for (std::uint32_t limit = 0; limit < view_.limit_count; ++limit) {
    if (config(limit).windows == 0) continue;
    Word16* word = &view_.limits[limit].overflow[0];
    for (int attempt = 0; attempt < kMaxAttempts && !sweep_slot(word, now); ++attempt) {}
  }
  finish_sweep();
  return true;
}

// Frees the predecessors: a publication that changes no clock.
void Publisher::finish_sweep() {
  sweeping_ = false;
  next_slot_ = 0;
  const std::int64_t now = view_.clock.now();
  bool freed = false;
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    const std::uint16_t pred = rule(id).pred;
    if (rule(id).kind == 0 || pred == 0) continue;
    rule(pred) = {};
    resting_rules_.push_back({pred, now + kRuleRestNs});
    rule(id).pred = 0;
    freed = true;
  }
  std::erase_if(resting_rules_, [&](const Resting& r) { return r.until <= now; });
  std::erase_if(resting_limits_, [&](const Resting& r) { return r.until <= now; });
  if (!freed) return;
  head().generation += 1;
  write_idle_image();
  make_current(static_cast<int>(~view_.current() & kCurrentImageBit), head().generation);
}

}  // namespace cutwater::shm
