// SPDX-License-Identifier: Apache-2.0
#include "shm/pattern_place.hpp"

#include <algorithm>
#include <cstring>

#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "rule/breaker_pattern.hpp"
#include "rule/limit_settings.hpp"
#include "shm/breaker/detail.hpp"

namespace cutwater::shm {
namespace {

constexpr std::size_t kTextWords = sizeof(PatternPlace::name) / sizeof(Word16);

std::uint64_t hash_of(std::string_view name) noexcept {
  const std::uint64_t hash = rule::name_hash(name);
  return hash == 0 ? 1 : hash;
}

/// I1: the name that has the place under this incarnation; 0 = none.
std::uint64_t holder_of(const PatternEntry& entry) noexcept {
  if (entry.place == nullptr) return 0;
  const Word16 identity = load16(&entry.place->identity);
  const bool holds =
      identity.hi == entry.incarnation || !guarded(Guard::PatternNameOfIncarnation);
  return holds ? identity.lo : 0;
}

/// Of the patterns that stand for the name, the one with the most literal characters.
std::uint32_t pattern_for(const PatternSide& side, std::uint64_t current,
                          std::string_view name) noexcept {
  std::uint32_t best = kNoLine;
  std::size_t length = 0;
  for (std::uint32_t i = 0; i < side.count(); ++i) {
    const PatternEntry entry = side.entry(current, i);
    if (!entry.used || entry.kind != kPatternEntry) continue;
    char text[sizeof(NameRecord::text) + 1];
    side.name(current, i, text, sizeof text);
    const std::string_view pattern(text);
    if (!rule::pattern_stands_for(pattern, name) || pattern.size() <= length) continue;
    best = i;
    length = pattern.size();
  }
  return best;
}

/// Signed difference modulo 2^32, as all incarnations are compared.
bool is_older(std::uint64_t incarnation, std::uint32_t than) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(incarnation) - than) < 0;
}

/// I3: the text of a name, by whoever finds it not written, or not to the end.
void write_text(const PatternEntry& entry, std::string_view name) noexcept {
  std::uint64_t words[kTextWords] = {};
  std::memcpy(words, name.data(), std::min(name.size(), sizeof words - 1));
  for (std::size_t i = 0; i < kTextWords; ++i) {
    Word16 seen = load16(&entry.place->name[i]);
    while (seen == Word16{} || is_older(seen.hi, entry.incarnation)) {
      if (cas16(&entry.place->name[i], seen, {words[i], entry.incarnation})) break;
    }
  }
}

/// Gives the place of a creation under way its name, and ends the creation.
void finish_creation(const PatternSide& side, std::uint64_t current, std::uint32_t pattern,
                     PatternPlace& own, Word16 pending) noexcept {
  const auto index = static_cast<std::uint32_t>(pending.lo);
  if (index < side.count()) {
    const PatternEntry entry = side.entry(current, index);
    if (entry.place != nullptr && entry.used && entry.kind == kInstanceEntry &&
        entry.pattern == pattern) {
      Word16 before = load16(&entry.place->identity);
      CUTWATER_SYNC_POINT("pattern.before_named");
      // Older than the incarnation at hand, or never used: free. A word that is as new or newer is
      // of somebody who was quicker, maybe by rules this caller has not seen.
      if (before.lo == 0 || is_older(before.hi, entry.incarnation)) {
        cas16(&entry.place->identity, before, {pending.hi, entry.incarnation});
      }
    }
  }
  const std::uint64_t next = (pending.lo >> 32) + 1;
  cas16(&own.create, pending, {next << 32, 0});
}

/// Looks through the places of a pattern: the name's own, else the first free one.
struct Places {
  std::uint32_t own = kNoLine, free = kNoLine;
  PatternEntry entry;                ///< of `own`
};
Places look_through(const PatternSide& side, std::uint64_t current, std::uint32_t pattern,
                    std::uint64_t hash) noexcept {
  Places out;
  for (std::uint32_t i = 0; i < side.count() && out.own == kNoLine; ++i) {
    const PatternEntry entry = side.entry(current, i);
    if (!entry.used || entry.kind != kInstanceEntry || entry.pattern != pattern ||
        entry.place == nullptr) {
      continue;
    }
    const std::uint64_t there = holder_of(entry);
    if (there == hash) {
      out.own = i;
      out.entry = entry;
    }
    if (there == 0 && out.free == kNoLine) out.free = i;
  }
  return out;
}

}  // namespace

bool is_taken(const PatternEntry& entry) noexcept { return holder_of(entry) != 0; }

void taken_name(const PatternEntry& entry, char* out, std::size_t size) noexcept {
  char text[kTextWords * 8] = {};
  bool whole = entry.place != nullptr;
  for (std::size_t i = 0; whole && i < kTextWords; ++i) {
    const Word16 word = load16(&entry.place->name[i]);
    whole = word.hi == entry.incarnation;
    std::memcpy(text + 8 * i, &word.lo, 8);
  }
  const std::size_t length = whole ? std::min(sizeof text, size) - 1 : 0;
  std::memcpy(out, text, length);
  out[length] = 0;
}

ResolvedName find_name(const PatternSide& side, std::string_view wanted) noexcept {
  const std::uint64_t hash = hash_of(wanted);
  for (int read = 0; read < kConfigReads; ++read) {
    const std::uint64_t current = side.view().current();
    ResolvedName found;
    for (std::uint32_t i = 0; i < side.count(); ++i) {
      const PatternEntry entry = side.entry(current, i);
      if (!entry.used) continue;
      if (entry.kind == kInstanceEntry) {
        if (holder_of(entry) != hash) continue;
        if (found.index == kNoLine) found = {i, entry.incarnation, false};
        continue;                                    // an exact name beats it
      }
      char name[sizeof(NameRecord::text) + 1];
      side.name(current, i, name, sizeof name);
      if (wanted != name) continue;
      found = {i, entry.incarnation, false};
      break;
    }
    if (side.view().current() == current) return found;
  }
  return {};
}

ResolvedName resolve_name(const PatternSide& side, std::string_view name,
                          StripeHandle stripe) noexcept {
  const View& view = side.view();
  const ResolvedName known = find_name(side, name);
  if (known.index != kNoLine) {
    const PatternEntry entry = side.entry(view.current(), known.index);
    // Whoever made it may have been killed before it wrote the text.
    const bool own = entry.kind == kInstanceEntry && entry.place != nullptr &&
                     entry.incarnation == known.incarnation && holder_of(entry) == hash_of(name);
    if (own) write_text(entry, name);
    return known;
  }
  if (!rule::is_name(name)) return {};
  const std::uint64_t hash = hash_of(name);
  for (int round = 0; round < kBreakerRounds; ++round) {
    const std::uint64_t current = view.current();
    const std::uint32_t pattern = pattern_for(side, current, name);
    if (pattern == kNoLine) return {};
    const PatternEntry own = side.entry(current, pattern);
    if (own.place == nullptr) return {};
    Word16 create = load16(&own.place->create);
    if (create.hi != 0) {
      finish_creation(side, current, pattern, *own.place, create);
      continue;
    }
    const Places places = look_through(side, current, pattern, hash);
    if (view.current() != current) continue;
    if (places.own != kNoLine) {
      write_text(places.entry, name);
      return {places.own, places.entry.incarnation, false};
    }
    if (places.free == kNoLine) {                    // the pattern's own answers for the rest
      side.count_beyond(stripe, pattern);
      return {pattern, own.incarnation, true};
    }
    CUTWATER_SYNC_POINT("pattern.before_create");
    const Word16 next{(create.lo >> 32) << 32 | places.free, hash};
    if (guarded(Guard::PatternCreatesInOrder)) {
      cas16(&own.place->create, create, next);
    } else {
      finish_creation(side, current, pattern, *own.place, next);
    }
  }
  count_contention(view);
  return {};
}

}  // namespace cutwater::shm
