// SPDX-License-Identifier: Apache-2.0
// Where the publisher puts the parts of a breaker: the first gap of the breaker memory that no
// image names and that has rested.
#include "shm/breaker/places.hpp"

#include <vector>

#include "shm/breaker/publisher.hpp"

namespace cutwater::shm {

std::uint64_t breaker_memory_needed(const std::vector<rule::BreakerSettings>& breakers) {
  std::uint64_t lines = 0;
  for (const rule::BreakerSettings& settings : breakers) {
    const rule::BreakerNumbers n = rule::numbers_of(settings, settings.name);
    const std::uint64_t one = std::uint64_t{ring_lines(n)} + probe_lines(n) + kUserLines +
                              (n.span_slot_ns != 0 ? kSpanLines : 0) +
                              (counts_hanging(n) ? kHangingLines : 0);
    lines += rule::is_pattern(settings)
                 ? (one + kInstanceLines) * (std::uint64_t{settings.max_instances} + 1)
                 : one;
  }
  return lines * kCacheLine;
}

RingView BreakerPublisher::ring_view(std::uint32_t line, std::uint64_t mask) const noexcept {
  std::uint8_t* const at = view_.breaker_memory + std::uint64_t{line} * kCacheLine;
  return {reinterpret_cast<BreakerRing*>(at),
          reinterpret_cast<Word16*>(at + sizeof(BreakerRing)), mask};
}

Result<void> BreakerPublisher::place_ring(BreakerConfig& c, const rule::BreakerNumbers& n,
                                          std::uint32_t epoch, std::int64_t now) {
  auto line = take_lines(ring_lines(n));
  if (!line) return line.error();
  c.ring = *line;
  c.ring_mask = static_cast<std::uint32_t>(cells_for(n) - 1);
  c.window_kept = n.window_calls;
  const RingView ring = ring_view(c.ring, c.ring_mask);
  if (is_time(n)) {
    init_time_ring(ring, slot_of(now, n.slot_ns), epoch);
  } else {
    init_count_ring(ring, epoch);
  }
  return {};
}

Result<void> BreakerPublisher::place_span(BreakerConfig& c, const rule::BreakerNumbers& n,
                                          std::uint32_t epoch, std::int64_t now) {
  c.span_ring = kNoLine;
  if (n.span_slot_ns == 0) return {};
  auto line = take_lines(kSpanLines);
  if (!line) return line.error();
  c.span_ring = *line;
  init_time_ring(ring_view(*line, kMinSpanCells - 1), slot_of(now, n.span_slot_ns), epoch);
  return {};
}

Result<void> BreakerPublisher::place_probes(BreakerConfig& c, const rule::BreakerNumbers& n,
                                            std::uint32_t epoch) {
  auto line = take_lines(probe_lines(n));
  if (!line) return line.error();
  c.probe_cells = *line;
  auto* cells = reinterpret_cast<Word16*>(view_.breaker_memory + std::uint64_t{*line} * kCacheLine);
  const std::size_t room = std::size_t{probe_lines(n)} * kCacheLine / sizeof(Word16);
  ProbeCell free;
  free.epoch = epoch;
  for (std::size_t i = 0; i < room; ++i) cells[i] = pack_probe(free);
  return {};
}

Result<void> BreakerPublisher::place_hanging(BreakerConfig& c, const rule::BreakerNumbers& n,
                                             std::uint32_t epoch) {
  c.hanging_cells = kNoLine;
  c.hanging_count = 0;
  if (!counts_hanging(n)) return {};
  auto line = take_lines(kHangingLines);
  if (!line) return line.error();
  c.hanging_cells = *line;
  c.hanging_count = kHangingCells;
  auto* cells = reinterpret_cast<Word16*>(view_.breaker_memory + std::uint64_t{*line} * kCacheLine);
  ProbeCell free;
  free.epoch = epoch;
  for (std::uint32_t i = 0; i < kHangingCells; ++i) cells[i] = pack_probe(free);
  return {};
}

Result<std::uint32_t> BreakerPublisher::take_lines(std::uint32_t count) {
  if (!gaps_) gaps_ = free_lines();
  const Gap* const gap = gaps_->first_fit(count);
  if (gap == nullptr) {
    return Error{Errc::Busy,
                 "windows and probes of breakers that were changed or removed keep their places "
                 "for an hour, and no room is left; raise capacity.breaker-memory (now " +
                     std::to_string(std::uint64_t{view_.breaker_lines} * kCacheLine) +
                     " bytes) and restart, or wait"};
  }
  const std::uint32_t at = gap->first;
  gaps_->take({at, count});
  return at;
}

/// Nothing becomes free while one apply() runs: what it gives up rests.
Gaps BreakerPublisher::free_lines() {
  std::vector<Gap> used;
  for (const Resting& r : resting_next_) {
    if (r.until > now_) used.push_back({r.lines.first, r.lines.count});
  }
  for (std::uint32_t i = 0; i < view_.breaker_count; ++i) {
    const BreakerConfig& c = config(i);
    if (c.used == 0) continue;
    used.push_back({c.ring, ring_lines(c)});
    used.push_back({c.probe_cells, probe_lines(c.numbers)});
    used.push_back({c.user_records, kUserLines});
    if (c.span_ring != kNoLine) used.push_back({c.span_ring, kSpanLines});
    if (c.hanging_cells != kNoLine) used.push_back({c.hanging_cells, kHangingLines});
    if (c.kind != kNamedEntry) used.push_back({c.instance, kInstanceLines});
  }
  return Gaps(std::move(used), view_.breaker_lines);
}

void BreakerPublisher::rest(Lines lines, std::int64_t now) {
  resting_next_.push_back({lines, now + kBreakerRestNs});
}

}  // namespace cutwater::shm
