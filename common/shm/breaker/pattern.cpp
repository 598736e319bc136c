// SPDX-License-Identifier: Apache-2.0
// Names of breakers, also of those a pattern made: shm/pattern_place.hpp told where they lie.
#include <algorithm>

#include "shm/breaker/detail.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/pattern_place.hpp"

namespace cutwater::shm {
namespace {

const BreakerConfig& config_at(const View& view, std::uint64_t current,
                               std::uint32_t index) noexcept {
  return reinterpret_cast<const BreakerConfig*>(view.image[current & kCurrentImageBit] +
                                                view.image_breakers_offset)[index];
}

PatternPlace* place_at(const View& view, std::uint32_t line) noexcept {
  const std::uint64_t end = std::uint64_t{line} * kCacheLine + sizeof(PatternPlace);
  if (line == kNoLine || end > view.breaker_lines * std::uint64_t{kCacheLine}) return nullptr;
  return reinterpret_cast<PatternPlace*>(view.breaker_memory + std::uint64_t{line} * kCacheLine);
}

}  // namespace

PatternEntry breaker_entry(const View& view, const BreakerConfig& config) noexcept {
  PatternEntry out;
  out.used = read_once(config.used) != 0;
  out.kind = read_once(config.kind);
  out.incarnation = read_once(config.incarnation);
  out.pattern = read_once(config.pattern);
  if (out.kind != kNamedEntry) out.place = place_at(view, read_once(config.instance));
  return out;
}

void breaker_name(const View& view, std::uint64_t current, std::uint32_t index, char* out,
                  std::size_t size) noexcept {
  const BreakerConfig& config = config_at(view, current, index);
  if (read_once(config.kind) == kInstanceEntry) {
    return taken_name(breaker_entry(view, config), out, size);
  }
  const auto* names = reinterpret_cast<const NameRecord*>(view.image[current & kCurrentImageBit] +
                                                          view.image_breaker_names_offset);
  const NameRecord& name = names[index];
  const std::size_t length = std::min<std::size_t>({read_once(name.length), sizeof name.text,
                                                    size - 1});
  for (std::size_t i = 0; i < length; ++i) out[i] = read_once(name.text[i]);
  out[length] = 0;
}

std::uint32_t BreakerSide::count() const noexcept { return view().breaker_count; }

PatternEntry BreakerSide::entry(std::uint64_t current, std::uint32_t index) const noexcept {
  return breaker_entry(view(), config_at(view(), current, index));
}

void BreakerSide::name(std::uint64_t current, std::uint32_t index, char* out,
                       std::size_t size) const noexcept {
  breaker_name(view(), current, index, out, size);
}

void BreakerSide::count_beyond(StripeHandle stripe, std::uint32_t pattern) const noexcept {
  count_breaker(view(), stripe, pattern, BreakerCounter::BeyondInstances);
}

std::uint64_t BreakerSide::uses(std::uint32_t index) const noexcept {
  return breaker_uses(view(), index);
}

bool BreakerSide::rests(std::uint32_t index) const noexcept {
  BreakerParts parts;
  if (!read_parts(view(), index, parts)) return false;
  const BreakerWord word = unpack_breaker(state_of(parts));
  if (!breaker_state_rests(parts, word)) return false;
  for (std::uint32_t i = 0; i < parts.hanging_count; ++i) {
    if (unpack_probe(load16(parts.hanging + i)).state == ProbeState::Held) return false;
  }
  return true;
}

bool breaker_state_rests(const BreakerParts& parts, const BreakerWord& word) noexcept {
  if (word.ramping || word.views) return false;
  switch (word.state) {
    case rule::BreakerState::Closed: return true;
    case rule::BreakerState::Open:
      return rule::is_over(parts.edge(), word.deadline_ns, parts.view->clock.now());
    case rule::BreakerState::HalfOpen: {
      std::uint32_t held = 0;
      static_cast<void>(collect_probes(parts, word.epoch, held));
      return held == 0;
    }
    default: return false;                           // set by hand
  }
}

BreakerRef find_breaker(const View& view, std::string_view name) noexcept {
  const ResolvedName found = find_name(BreakerSide(view), name);
  return {found.index, found.incarnation};
}

ResolvedBreaker resolve_breaker(const View& view, std::string_view name,
                                StripeHandle stripe) noexcept {
  const ResolvedName found = resolve_name(BreakerSide(view), name, stripe);
  return {{found.index, found.incarnation}, found.shared};
}

}  // namespace cutwater::shm
