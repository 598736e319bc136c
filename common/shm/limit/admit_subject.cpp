// SPDX-License-Identifier: Apache-2.0
// By what a key is judged: a ban, an override, the limit itself.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "rule/limit_settings.hpp"
#include "shm/limit/admit_detail.hpp"

namespace cutwater::shm::detail {
namespace {

constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

/// An override's end as segment time; kBanForever without one.
std::int64_t end_of(std::uint32_t until_s) noexcept {
  return until_s == 0 ? kBanForever : std::int64_t{until_s} * kNanosPerSecond;
}

struct Found {
  std::uint32_t set = 0;               ///< 0 = none
  std::int64_t until = 0;
};

Found find_override(const View& view, std::uint64_t c, std::uint64_t hash,
                    std::int64_t t) noexcept {
  if (view.override_count == 0) return {};
  std::uint64_t at = mulhi(hash, view.override_count);
  for (std::uint32_t probe = 0; probe < kOverrideProbes; ++probe) {
    const OverrideRecord& record = view.override_record(c, static_cast<std::uint32_t>(at));
    const std::uint64_t found = read_once(record.key_hash);
    if (found == 0) return {};
    if (found == hash) {
      const std::int64_t until = end_of(read_once(record.until_s));
      return until > t ? Found{read_once(record.set), until} : Found{};
    }
    if (++at == view.override_count) at = 0;
  }
  return {};
}

/// A pattern's text around its one star, against the raw bytes of a key.
bool matches(const PatternRecord& pattern, std::string_view key) noexcept {
  // Word by word, as all of an image is read: it may be written over meanwhile.
  using Part [[gnu::may_alias]] = std::uint32_t;
  static_assert(offsetof(PatternRecord, text) % sizeof(Part) == 0 &&
                sizeof pattern.text % sizeof(Part) == 0);
  const std::size_t length = std::min<std::size_t>(read_once(pattern.length), sizeof pattern.text);
  char text[sizeof pattern.text];
  for (std::size_t i = 0; i < length; i += sizeof(Part)) {
    const Part part = read_once(*reinterpret_cast<const Part*>(pattern.text + i));
    std::memcpy(text + i, &part, sizeof part);
  }
  const std::size_t star = read_once(pattern.star);
  if (length == 0 || star >= length) return false;
  const std::string_view before{text, star};
  const std::string_view after{text + star + 1, length - star - 1};
  return key.size() + 1 >= length && key.starts_with(before) && key.ends_with(after);
}

Found find_pattern(const View& view, std::uint64_t c, const LimitConfig& config,
                   std::string_view key, std::int64_t t) noexcept {
  const std::uint32_t first = read_once(config.first_pattern);
  const std::uint32_t count =
      std::min<std::uint32_t>(read_once(config.patterns), rule::kMaxPatterns);
  for (std::uint32_t i = first; i < first + count && i < view.pattern_count; ++i) {
    const PatternRecord& record = view.pattern(c, i);
    if (!matches(record, key)) continue;
    const std::int64_t until = end_of(read_once(record.until_s));
    if (until > t) return {read_once(record.set), until};
  }
  return {};
}

void read_rules(const std::uint16_t* rules, std::uint8_t windows, Subject& out) noexcept {
  out.windows = std::min<std::uint8_t>(windows, kMaxWindows);
  for (std::size_t w = 0; w < out.windows; ++w) out.rule[w] = read_once(rules[w]);
}

void read_set(const View& view, Found found, Subject& out) noexcept {
  out.overridden = true;
  const SetRecord& set = view.set(out.c, found.set);
  switch (static_cast<rule::LimitKind>(read_once(set.kind))) {
    case rule::LimitKind::Unlimited: out.kind = SubjectKind::Unlimited; return;
    case rule::LimitKind::Blocked:
      out.kind = SubjectKind::Banned;
      out.banned_until = found.until;
      return;
    case rule::LimitKind::Bucket: break;
  }
  out.kind = SubjectKind::Bucket;
  read_rules(set.rule, read_once(set.windows), out);
}

void read_limit(const LimitConfig& config, std::uint8_t flags, Subject& out) noexcept {
  if ((flags & kLimitBlocked) != 0) {
    out.kind = SubjectKind::Banned;
    out.banned_until = kBanForever;
  } else if ((flags & kLimitUnlimited) != 0) {
    out.kind = SubjectKind::Unlimited;
  } else {
    out.kind = SubjectKind::Bucket;
    read_rules(config.rule, read_once(config.windows), out);
  }
}

}  // namespace

Outcome read_subject(const View& view, const AdmitAsk& ask, Bans bans, Subject& out) noexcept {
  out = {};
  out.t = view.clock.now();
  out.c = view.current();
  if ((out.c & kCurrentSupersededBit) != 0) return Outcome::Superseded;
  if (ask.limit.index >= view.limit_count) return Outcome::LimitGone;
  const LimitConfig& config = view.limit_config(out.c, ask.limit.index);
  if (read_once(config.windows) == 0 || read_once(config.incarnation) != ask.limit.incarnation) {
    return view.current() == out.c ? Outcome::LimitGone : Outcome::Changed;
  }
  const std::uint8_t flags = read_once(config.flags);
  out.shadow = guarded(Guard::ShadowNeverBlocks) && (flags & kLimitShadow) != 0;
  // A ban comes before everything: its end is the key's, whatever rule it has.
  const bool judged = bans == Bans::Judge && guarded(Guard::BanBeforeBucket);
  const std::int64_t ban_end =
      judged ? banned_until(view, ask.limit, ask.key.hash, out.t) : std::int64_t{0};
  if (ban_end != 0) {
    out.kind = SubjectKind::Banned;
    out.banned_until = ban_end;
    return view.current() == out.c ? Outcome::Answered : Outcome::Changed;
  }
  Found found;
  if ((flags & kLimitHasOverrides) != 0) {
    found = find_override(view, out.c, override_hash(ask.key.hash), out.t);
  }
  if (found.set == 0 && (flags & kLimitHasPatterns) != 0) {
    found = find_pattern(view, out.c, config, ask.key.text, out.t);
  }
  if (found.set != 0 && found.set < view.set_count) {
    read_set(view, found, out);
  } else {
    read_limit(config, flags, out);
  }
  if (view.current() != out.c) return Outcome::Changed;
  const bool empty = out.kind == SubjectKind::Bucket && out.windows == 0;
  return empty ? Outcome::LimitGone : Outcome::Answered;
}

}  // namespace cutwater::shm::detail
