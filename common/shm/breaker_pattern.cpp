// SPDX-License-Identifier: Apache-2.0
// Breakers that a pattern makes at first use (S22).
//
// The publisher gives a pattern its own breaker and max-instances places beside it, each whole and
// without a name. Whoever asks for a name first gives it a place, daemon or not, in two swaps: one
// of the pattern's `create` word, which orders all creations, then one of the place's own word.
// Anybody finishes what a killed process began, so a name never has two places. Nothing takes a
// name away again but a reload.
#include <algorithm>
#include <cstring>

#include "base/sync_point.hpp"
#include "rule/breaker_pattern.hpp"
#include "rule/limit_settings.hpp"
#include "shm/breaker_detail.hpp"
#include "shm/rule_reader.hpp"

namespace cutwater::shm {
namespace {

const BreakerConfig* configs(const View& view, std::uint64_t current) noexcept {
  return reinterpret_cast<const BreakerConfig*>(view.image[current & kCurrentImageBit] +
                                                view.image_breakers_offset);
}

/// Of the patterns that stand for the name, the one with the most literal characters.
std::uint32_t pattern_for(const View& view, std::uint64_t current, std::string_view name) noexcept {
  std::uint32_t best = kNoLine;
  std::size_t length = 0;
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    const BreakerConfig& config = configs(view, current)[i];
    if (read_once(config.used) == 0 || read_once(config.kind) != kBreakerPattern) continue;
    char text[sizeof(NameRecord::text) + 1];
    breaker_name(view, current, i, text, sizeof text);
    const std::string_view pattern(text);
    if (!rule::pattern_stands_for(pattern, name) || pattern.size() <= length) continue;
    best = i;
    length = pattern.size();
  }
  return best;
}

/// The text behind its hash: the same bytes, whoever writes them; its first word last.
void write_name(BreakerInstance& at, std::string_view name) noexcept {
  if (__atomic_load_n(&at.name[0], __ATOMIC_ACQUIRE) != 0) return;
  std::uint64_t words[sizeof at.name / 8] = {};
  std::memcpy(words, name.data(), std::min(name.size(), sizeof at.name - 1));
  for (std::size_t i = std::size(words); i-- > 0;) {
    // release: who sees the first word sees the others; pairs with the acquire in instance_name().
    __atomic_store_n(&at.name[i], words[i], __ATOMIC_RELEASE);
  }
}

/// Gives the place of a creation under way its name, and ends the creation.
void finish_creation(const View& view, std::uint64_t current, std::uint32_t pattern,
                     BreakerInstance& own, Word16 pending) noexcept {
  const auto slot = static_cast<std::uint32_t>(pending.lo);
  if (slot < view.breaker_count) {
    const BreakerConfig& config = configs(view, current)[slot];
    BreakerInstance* const at = instance_at(view, read_once(config.instance));
    if (at != nullptr && read_once(config.kind) == kBreakerInstance &&
        read_once(config.pattern) == pattern) {
      Word16 free{};
      CUTWATER_SYNC_POINT("breaker.before_named");
      cas16(&at->identity, free, {pending.hi, 0});
    }
  }
  const std::uint64_t next = (pending.lo >> 32) + 1;
  cas16(&own.create, pending, {next << 32, 0});
}

}  // namespace

BreakerInstance* instance_at(const View& view, std::uint32_t line) noexcept {
  const std::uint64_t end = std::uint64_t{line} * kCacheLine + sizeof(BreakerInstance);
  if (line == kNoLine || end > view.breaker_lines * std::uint64_t{kCacheLine}) return nullptr;
  return reinterpret_cast<BreakerInstance*>(view.breaker_memory +
                                            std::uint64_t{line} * kCacheLine);
}

std::uint64_t instance_hash(const View& view, std::uint32_t line) noexcept {
  const BreakerInstance* const at = instance_at(view, line);
  return at == nullptr ? 0 : load16(&at->identity).lo;
}

void instance_name(const View& view, std::uint32_t line, char* out, std::size_t size) noexcept {
  const BreakerInstance* const at = instance_at(view, line);
  std::uint64_t words[sizeof(BreakerInstance::name) / 8] = {};
  for (std::size_t i = 0; at != nullptr && i < std::size(words); ++i) {
    // acquire: pairs with the release in write_name().
    words[i] = __atomic_load_n(&at->name[i], __ATOMIC_ACQUIRE);
  }
  const std::size_t length = std::min(sizeof words, size) - 1;
  std::memcpy(out, words, length);
  out[length] = 0;
}

std::uint64_t instance_hash_of(std::string_view name) noexcept {
  const std::uint64_t hash = rule::name_hash(name);
  return hash == 0 ? 1 : hash;
}

ResolvedBreaker resolve_breaker(const View& view, std::string_view name,
                                StripeHandle stripe) noexcept {
  const BreakerRef known = find_breaker(view, name);
  if (known.index != kNoLine) {
    const BreakerConfig& config = configs(view, view.current())[known.index];
    BreakerInstance* const at = instance_at(view, read_once(config.instance));
    // Whoever made it may have been killed before it wrote the text.
    const bool own = read_once(config.kind) == kBreakerInstance && at != nullptr &&
                     load16(&at->identity).lo == instance_hash_of(name);
    if (own) write_name(*at, name);
    return {known, false};
  }
  if (!rule::is_name(name)) return {};
  const std::uint64_t hash = instance_hash_of(name);
  for (int round = 0; round < kBreakerRounds; ++round) {
    const std::uint64_t current = view.current();
    const std::uint32_t pattern = pattern_for(view, current, name);
    if (pattern == kNoLine) return {};
    const BreakerConfig& config = configs(view, current)[pattern];
    BreakerInstance* const own = instance_at(view, read_once(config.instance));
    if (own == nullptr) return {};
    Word16 create = load16(&own->create);
    if (create.hi != 0) {
      finish_creation(view, current, pattern, *own, create);
      continue;
    }
    std::uint32_t free = kNoLine;
    for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
      const BreakerConfig& place = configs(view, current)[i];
      if (read_once(place.used) == 0 || read_once(place.kind) != kBreakerInstance ||
          read_once(place.pattern) != pattern) {
        continue;
      }
      BreakerInstance* const at = instance_at(view, read_once(place.instance));
      const std::uint64_t there = instance_hash(view, read_once(place.instance));
      if (there == hash && at != nullptr) {
        const BreakerRef ref{i, read_once(place.incarnation)};
        if (view.current() != current) break;
        write_name(*at, name);
        return {ref, false};
      }
      if (there == 0 && free == kNoLine) free = i;
    }
    if (view.current() != current) continue;
    if (free == kNoLine) {                           // the pattern's own answers for the rest
      count_breaker(view, stripe, pattern, BreakerCounter::BeyondInstances);
      return {{pattern, read_once(config.incarnation)}, true};
    }
    CUTWATER_SYNC_POINT("breaker.before_create");
    cas16(&own->create, create, {(create.lo >> 32) << 32 | free, hash});
  }
  count_contention(view);
  return {};
}

}  // namespace cutwater::shm
