// SPDX-License-Identifier: Apache-2.0
// Every slot and every overflow word: a rule that exists, within reach, in a place of its own key,
// one member per key.
#include "shm/limit/bucket_table.hpp"
#include "shm/verify_detail.hpp"

namespace cutwater::shm::detail {
namespace {

/// A claim's deadline is the second edge of 2^20 ns after its maker's clock; one more for rounding.
constexpr std::uint64_t kClaimTicksMax = 3;
/// A charge of the overflow word starts this far ahead of the clock (spec memory 6.5).
constexpr std::int64_t kOverflowLeadNs = 2'000;

bool same_family(const RuleRecord& a, const RuleRecord& b) noexcept {
  return read_once(a.limit) == read_once(b.limit) && read_once(a.window) == read_once(b.window) &&
         read_once(a.kind) == read_once(b.kind);
}

std::string check_place(const View& view, std::uint64_t group, std::uint64_t tag) {
  const Home home = home_of(view, group, tag);
  const std::uint64_t q1 = first_group(view, home.q0, home.fp);
  const std::uint64_t expected = (tag & kTagAlt) == 0 ? q1 : other_group(view, q1, home.fp);
  return expected == group ? "" : "lies in a group that is not its key's";
}

std::string check_tat(const Verifier& verifier, const RuleRecord& rule, Word16 word) {
  if (!is_bucket_kind(rule)) return "";
  if (!numbers_fit(verifier.view, rule)) return "";   // said at the rule
  if (!beyond_reach(verifier, rule, verifier.now(), static_cast<std::int64_t>(word.hi))) return "";
  return "its tat lies beyond N + D: no honest charge leads there";
}

std::string check_slot(const Verifier& verifier, std::uint64_t index) {
  const Word16 word = load16(&verifier.view.slots[index]);
  if (word.lo == 0) return word.hi == 0 ? "" : "has a tat but no tag";
  const std::uint16_t id = rule_of(word.lo);
  if (id == kBanRuleId) {          // a ban: no record, its clock is time itself
    if (is_claim(word.lo)) return "is a claim of a ban, which nobody makes";
    return check_place(verifier.view, index / kGroupSlots, word.lo);
  }
  const RuleRecord* rule = verifier.known_rule(id);
  if (rule == nullptr) return "names rule " + std::to_string(id) + ", which does not exist";
  if (is_claim(word.lo)) {
    const std::uint64_t deadline = word.hi >> kClaimNonceBits;
    const auto now_ticks = static_cast<std::uint64_t>(verifier.now()) >> kClaimTickShift;
    if (deadline > now_ticks + kClaimTicksMax) return "holds a claim that ends too far ahead";
  } else if (std::string text = check_tat(verifier, *rule, word); !text.empty()) {
    return text;
  }
  return check_place(verifier.view, index / kGroupSlots, word.lo);
}

/// The slot above `index` in one of its key's two groups that holds another member of the same key.
std::uint64_t find_twin(const Verifier& verifier, std::uint64_t index) {
  const View& view = verifier.view;
  const Word16 word = load16(&view.slots[index]);
  const RuleRecord* rule = verifier.known_rule(rule_of(word.lo));
  if (word.lo == 0 || is_claim(word.lo) || rule == nullptr) return Verifier::kNoIndex;
  const Home home = home_of(view, index / kGroupSlots, word.lo);
  const std::uint64_t q1 = first_group(view, home.q0, home.fp);
  for (const std::uint64_t group : {q1, other_group(view, q1, home.fp)}) {
    for (std::uint64_t slot = group * kGroupSlots; slot < (group + 1) * kGroupSlots; ++slot) {
      if (slot <= index) continue;
      const std::uint64_t tag = read_once(view.slots[slot].lo);
      if (tag == 0 || is_claim(tag) || tag >> kFingerprintShift != home.fp) continue;
      if (home_of(view, group, tag).q0 != home.q0) continue;
      const RuleRecord* other = verifier.known_rule(rule_of(tag));
      if (other != nullptr && same_family(*rule, *other)) return slot;
    }
  }
  return Verifier::kNoIndex;
}

std::string check_twin(const Verifier& verifier, std::uint64_t index) {
  const std::uint64_t twin = find_twin(verifier, index);
  if (twin == Verifier::kNoIndex) return "";
  return "holds the same key as slot " + std::to_string(twin) + ": two members of one key";
}

void count_slot(Verifier& verifier, std::uint64_t index) {
  const Word16 word = load16(&verifier.view.slots[index]);
  if (word.lo == 0) return;
  if (is_claim(word.lo)) {
    ++verifier.report.claims;
    return;
  }
  ++verifier.report.members;
  const RuleRecord* rule = verifier.known_rule(rule_of(word.lo));
  if (rule == nullptr || !numbers_fit(verifier.view, *rule)) return;
  const auto tat = static_cast<std::int64_t>(word.hi);
  if (tat <= full_level(verifier.view, verifier.c, *rule, verifier.now())) return;
  ++verifier.report.in_debt;
  const std::uint32_t limit = read_once(rule->limit);
  if (rule_of(word.lo) != kBanRuleId && read_once(rule->window) == 0 &&
      limit < verifier.report.in_debt_of_limit.size()) {
    ++verifier.report.in_debt_of_limit[limit];
  }
}

std::string check_overflow(const Verifier& verifier, std::uint32_t index) {
  const View& view = verifier.view;
  const bool in_use = read_once(view.limit_config(verifier.c, index).windows) != 0;
  for (std::size_t window = 0; window < kMaxWindows; ++window) {
    const Word16 word = load16(&view.limits[index].overflow[window]);
    if (word == Word16{} || !in_use) continue;
    const RuleRecord* rule = verifier.known_rule(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(word.lo, view.rule_count)));   // the whole tag is the rule id
    if (rule == nullptr) return "its overflow word names a rule that does not exist";
    if (read_once(rule->limit) != index || read_once(rule->window) != window) {
      return "its overflow word names a rule of another limit or window";
    }
    if (numbers_fit(verifier.view, *rule) &&
        beyond_reach(verifier, *rule, verifier.now() + kOverflowLeadNs,
                     static_cast<std::int64_t>(word.hi))) {
      return "its overflow word lies beyond N + D";
    }
  }
  return "";
}

}  // namespace

void verify_buckets(Verifier& verifier) {
  const View& view = verifier.view;
  verifier.report.slots = view.slot_count;
  verifier.report.in_debt_of_limit.assign(view.limit_count, 0);
  for (std::uint64_t index = 0; index < view.slot_count; ++index) {
    if (read_once(view.slots[index].lo) == 0 && read_once(view.slots[index].hi) == 0) continue;
    verifier.expect("bucket slot", index, [&] { return check_slot(verifier, index); });
    verifier.expect("bucket slot", index, [&] { return check_twin(verifier, index); });
    count_slot(verifier, index);
  }
  for (std::uint32_t index = 0; index < view.limit_count; ++index) {
    verifier.expect("limit", index, [&] { return check_overflow(verifier, index); });
  }
}

}  // namespace cutwater::shm::detail
