// SPDX-License-Identifier: Apache-2.0
#include "support/image_edit.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rule/token_clock.hpp"
#include "shm/image.hpp"
#include "shm/limit/bucket_table.hpp"

namespace cutwater::test {
namespace {

void need(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "image edit: %s\n", what);
  std::abort();
}

}  // namespace

std::uint16_t ImageEdit::add_rule(const Window& window, std::uint32_t limit, std::uint8_t number) {
  const std::uint64_t c = view_.current();
  std::uint16_t id = shm::kFirstRuleId;
  while (id < view_.rule_count && view_.rule(c, id).kind != 0) ++id;
  need(id < view_.rule_count, "no rule id is left");
  shm::RuleRecord& rule = at(view_.rule(c, id));
  rule = {};
  rule.limit = static_cast<std::uint16_t>(limit);
  rule.window = number;
  rule.base_t = view_.clock.now();
  rule.valid_from = rule.base_t;
  rule.max_debt = window.max_debt;
  rule.burst_tokens = window.burst;
  const std::uint64_t debt = window.max_debt != 0 ? window.max_debt : window.burst;
  if (window.edges.empty()) {
    const rule::Rate rate{window.count, static_cast<std::uint64_t>(window.period_ns)};
    const std::uint64_t reserve = rule::tokens_in(rate, 3600ULL * 1'000'000'000);
    const int f = rule::fraction_bits(rate, window.burst, debt + reserve);
    need(f >= 0, "the rate does not fit");
    rule::Piece piece;
    need(rule::set_slope(piece, rate, static_cast<unsigned>(f)), "no such rate");
    rule.kind = static_cast<std::uint8_t>(shm::RuleKind::Token);
    rule.f = static_cast<std::uint8_t>(f);
    rule.mult = piece.mult;
    rule.shift = piece.shift;
    rule.burst = static_cast<std::int64_t>(window.burst << f);
    rule.reach = static_cast<std::int64_t>((window.burst + debt + reserve) << f);
  } else {
    need(next_calendar_ < view_.calendar_count, "no calendar is left");
    shm::CalendarRecord& calendar = at(view_.calendar(c, next_calendar_));
    calendar = {};
    calendar.base_k = 7;
    calendar.edges = static_cast<std::uint8_t>(window.edges.size());
    std::copy(window.edges.begin(), window.edges.end(), calendar.edge);
    calendar.period_ns = window.edges.size() < 2
                             ? window.period_ns
                             : window.edges.back() - window.edges[window.edges.size() - 2];
    rule.kind = static_cast<std::uint8_t>(shm::RuleKind::Calendar);
    rule.calendar = next_calendar_++;
    rule.mult = std::bit_ceil(window.burst + debt + 1);
    rule.burst = static_cast<std::int64_t>(window.burst);
    rule.reach = static_cast<std::int64_t>(window.burst + debt);
  }
  rule.mult0 = rule.mult;
  rule.shift0 = rule.shift;
  rule.burst0 = rule.burst;
  rule.reach0 = rule.reach;
  return id;
}

shm::LimitRef ImageEdit::add_limit(std::string_view name, const std::vector<Window>& windows,
                                   std::uint8_t flags) {
  const std::uint64_t c = view_.current();
  std::uint32_t index = 0;
  while (index < view_.limit_count && view_.limit_config(c, index).windows != 0) ++index;
  need(index < view_.limit_count, "no limit is left");
  shm::LimitConfig& config = at(view_.limit_config(c, index));
  config = {};
  bool calendar = false;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    config.rule[w] = add_rule(windows[w], index, static_cast<std::uint8_t>(w));
    calendar = calendar || !windows[w].edges.empty();
  }
  config.windows = static_cast<std::uint8_t>(windows.size());
  const int many = windows.size() > 1 ? shm::kLimitManyWindows : 0;
  config.flags =
      static_cast<std::uint8_t>(flags | many | (calendar ? shm::kLimitCalendar : 0));
  config.incarnation = 1;
  config.max_wait_ns = 3600ULL * 1'000'000'000;
  config.max_waiting = 16;
  shm::NameRecord& record = at(view_.limit_name(c, index));
  record = {};
  record.length = static_cast<std::uint8_t>(name.size());
  std::memcpy(record.text, name.data(), name.size());
  announce();
  return {index, 1};
}

void ImageEdit::set_flag(shm::LimitRef limit, std::uint8_t flag, bool on) {
  auto& flags = at(view_.limit_config(view_.current(), limit.index)).flags;
  flags = static_cast<std::uint8_t>(on ? flags | flag : flags & ~flag);
  announce();
}

void ImageEdit::set_on_full(shm::LimitRef limit, std::uint8_t on_full) {
  at(view_.limit_config(view_.current(), limit.index)).on_full = on_full;
  announce();
}

std::uint32_t ImageEdit::add_set(shm::LimitRef limit, const std::vector<Window>& windows) {
  need(next_set_ < view_.set_count, "no set is left");
  shm::SetRecord& set = at(view_.set(view_.current(), next_set_));
  set = {};
  for (std::size_t w = 0; w < windows.size(); ++w) {
    set.rule[w] = add_rule(windows[w], limit.index, static_cast<std::uint8_t>(w));
  }
  set.windows = static_cast<std::uint8_t>(windows.size());
  set.limit = static_cast<std::uint16_t>(limit.index);
  return next_set_++;
}

std::uint32_t ImageEdit::add_set(rule::LimitKind kind) {
  need(next_set_ < view_.set_count, "no set is left");
  shm::SetRecord& set = at(view_.set(view_.current(), next_set_));
  set = {};
  set.kind = static_cast<std::uint8_t>(kind);
  return next_set_++;
}

void ImageEdit::add_override(shm::LimitRef limit, shm::KeyHash key, std::uint32_t set,
                             std::uint32_t until_s) {
  const std::uint64_t hash = shm::override_hash(key);
  std::uint64_t place = shm::mulhi(hash, view_.override_count);
  for (std::uint32_t probe = 0;; ++probe) {
    need(probe < shm::kOverrideProbes, "no place for an override");
    shm::OverrideRecord& record =
        at(view_.override_record(view_.current(), static_cast<std::uint32_t>(place)));
    if (record.key_hash == 0 || record.key_hash == hash) {
      record = {hash, until_s, set};
      break;
    }
    place = (place + 1) % view_.override_count;
  }
  set_flag(limit, shm::kLimitHasOverrides, true);
}

void ImageEdit::drop_override(shm::LimitRef limit, shm::KeyHash key) {
  // The record stays and names no set any more: the chain behind it stays whole.
  add_override(limit, key, 0);
}

void ImageEdit::add_pattern(shm::LimitRef limit, std::string_view pattern, std::uint32_t set) {
  need(next_pattern_ < view_.pattern_count, "no pattern is left");
  const std::uint64_t c = view_.current();
  shm::PatternRecord& record = at(view_.pattern(c, next_pattern_));
  record = {};
  record.set = set;
  record.length = static_cast<std::uint8_t>(pattern.size());
  record.star = static_cast<std::uint8_t>(pattern.find('*'));
  record.limit = static_cast<std::uint16_t>(limit.index);
  std::memcpy(record.text, pattern.data(), pattern.size());
  shm::LimitConfig& config = at(view_.limit_config(c, limit.index));
  if (config.patterns++ == 0) config.first_pattern = static_cast<std::uint16_t>(next_pattern_);
  ++next_pattern_;
  set_flag(limit, shm::kLimitHasPatterns, true);
}

void ImageEdit::announce() {
  const auto image = static_cast<int>(view_.current() & shm::kCurrentImageBit);
  at(view_.image_head(view_.current())).crc32c = shm::image_crc(view_, image);
  std::uint64_t& word = view_.rules_control->current;
  __atomic_store_n(&word, view_.current() + (std::uint64_t{1} << shm::kCurrentGenerationShift),
                   __ATOMIC_RELEASE);
}

}  // namespace cutwater::test
