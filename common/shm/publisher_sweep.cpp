// SPDX-License-Identifier: Apache-2.0
// The sweep: converts what nobody asked for since a change gave
// a limit a new rule id, and clears entries of rules that are gone, slot by slot with one cas16
// each (~10 ns a slot). Only then is an old id free, and it rests an hour more.
#include "shm/limit/bucket_detail.hpp"
#include "shm/publisher.hpp"

namespace cutwater::shm {

void Publisher::restart_sweep() noexcept {
  sweeping_ = true;
  next_slot_ = 0;
}

// One slot, or with `window` < kMaxWindows the overflow word of that window. False: it changed
// under us, or the rule it went to is on its way out too (an override that was changed with its
// limit and dropped before a sweep); look at it again.
bool Publisher::sweep_slot(Word16* slot, std::int64_t now, std::size_t window) noexcept {
  Word16 word = load16(slot);
  if (word.lo == 0) return true;
  const std::uint16_t id = rule_of(word.lo);
  if (id == kBanRuleId && window == kMaxWindows) return true;      // ends by itself
  if (id >= view_.rule_count || rule(id).kind == 0) return cas16(slot, word, {0, 0});
  const RuleRecord& from = rule(id);
  if (from.succ == 0 && (from.flags & kRuleDropped) == 0) return true;
  // Killed, so that nobody who stood still promotes it to a member of a rule that is gone by then;
  // he begins again. Other claims end by their deadline.
  if (is_claim(word.lo)) return cas16(slot, word, {0, 0});
  const LimitConfig& limit = config(from.limit);
  std::uint16_t next_id = from.succ;
  if (next_id == 0 && from.window < limit.windows) next_id = limit.rule[from.window];
  // An override that went away with its window, or whose limit has no bucket now.
  if (next_id == 0 || rule(next_id).kind == static_cast<std::uint8_t>(RuleKind::Unlimited)) {
    return cas16(slot, word, {0, 0});
  }
  detail::Frame frame;
  frame.t = now;
  frame.c = view_.current();
  frame.window = from.window;
  frame.id = next_id;
  frame.record = &view_.rule(frame.c, next_id);
  frame.f = read_once(frame.record->f) & 63;
  frame.piece = read_piece_at(*frame.record, now);
  frame.n = clock_at(view_, frame.c, *frame.record, frame.piece, now);
  rule::Units tat = 0;
  if (!detail::tat_of(view_, frame, id, static_cast<rule::Units>(word.hi), tat)) return true;
  const Word16 next{(word.lo & ~kTagRuleMask) | next_id, static_cast<std::uint64_t>(tat)};
  const RuleRecord& to = rule(next_id);
  const bool stays = to.succ == 0 && (to.flags & kRuleDropped) == 0;
  return cas16(slot, word, next) && stays;
}

bool Publisher::sweep(std::uint64_t slots) {
  const std::int64_t now = view_.clock.now();
  if (!sweeping_) {
    // A change with a new id starts a pass once it is in force.
    for (std::uint32_t id = kFirstRuleId; id < head().rules; ++id) {
      if (rule(id).pred != 0 || (rule(id).flags & kRuleDropped) != 0) restart_sweep();
    }
    if (!sweeping_) return true;
  }
  if (now < ready_at_) return false;
  const std::uint64_t end = std::min(view_.slot_count, next_slot_ + slots);
  for (; next_slot_ < end; ++next_slot_) {
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      if (sweep_slot(view_.slots + next_slot_, now, kMaxWindows)) break;
    }
  }
  if (next_slot_ < view_.slot_count && guarded(Guard::SweepBeforeReuse)) return false;
  for (std::uint32_t limit = 0; limit < view_.limit_count; ++limit) {
    if (config(limit).windows == 0) continue;
    for (std::size_t w = 0; w < kMaxWindows; ++w) {
      Word16* word = &view_.limits[limit].overflow[w];
      for (int attempt = 0; attempt < kMaxAttempts && !sweep_slot(word, now, w); ++attempt) {}
    }
  }
  finish_sweep();
  return true;
}

// Frees predecessors and rules of overrides that are gone: a publication that changes no clock.
void Publisher::finish_sweep() {
  sweeping_ = false;
  next_slot_ = 0;
  const std::int64_t now = view_.clock.now();
  bool freed = false;
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    if (rule(id).kind == 0) continue;
    const std::uint16_t pred = rule(id).pred;
    if (pred != 0) {
      free_rule_id(pred, now);
      rule(id).pred = 0;
      freed = true;
    }
    if ((rule(id).flags & kRuleDropped) == 0) continue;
    free_rule_id(id, now);
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
