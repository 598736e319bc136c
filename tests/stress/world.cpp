// SPDX-License-Identifier: Apache-2.0
#include "stress/world.hpp"

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "shm/breaker/trip_layout.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/verify.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kMemberMask = ~(shm::kTagRuleMask | shm::kTagAlt);

[[noreturn]] void give_up(const std::string& what) {
  std::cerr << "the test's memory cannot be made: " << what << "\n";
  std::abort();
}

}  // namespace

// What operations write. `rules` as well: the publisher writes there.
std::vector<World::Range> World::ranges_of(const shm::View& view) {
  const auto image = [&](int i) { return const_cast<std::uint8_t*>(view.image[i]); };
  return {{view.rules_control, 128},
          {image(0), view.image_length},
          {image(1), view.image_length},
          {view.state_control, sizeof(std::uint64_t) * 2},
          {view.slots, view.slot_count * sizeof(Word16)},
          {view.limits, view.limit_count * sizeof(shm::LimitState)},
          {view.rows, view.row_count * sizeof(shm::ProcessRow)},
          {view.breakers, view.breaker_count * sizeof(shm::BreakerHead)},
          {view.breaker_memory, std::size_t{view.breaker_lines} * shm::kCacheLine},
          {view.bulkheads, view.bulkhead_count * sizeof(shm::BulkheadHead)},
          {view.bulkhead_cells, view.bulkhead_cell_count * sizeof(std::uint64_t)},
          {view.bulkhead_stamps, view.bulkhead_cell_count * sizeof(std::uint64_t)},
          {view.waiters, view.waiter_count * sizeof(shm::WaiterRecord)},
          {view.stats_control, sizeof(std::uint64_t) * 8},
          {view.stripes, std::size_t{view.stripe_count} * view.stripe_stride},
          {view.events, view.event_count * sizeof(shm::EventRecord)},
          {view.tops, std::size_t{view.limit_count} * view.tops_per_limit *
                          sizeof(shm::TopRecord)},
          {view.key_names, view.key_names == nullptr ? 0
                                                     : view.slot_count * sizeof(shm::KeyName)},
          {view.trips, view.trip_count * sizeof(shm::TripRecord)},
          {view.stories, view.breaker_count * sizeof(shm::BreakerStory)}};
}

rule::LimitSettings limit(std::string name, Rate rate, std::uint64_t burst,
                          std::int64_t max_wait_ns) {
  rule::LimitSettings settings;
  settings.windows.resize(1);
  settings.name = std::move(name);
  settings.windows[0].rate_count = rate.count;
  settings.windows[0].rate_period_ns = static_cast<std::uint64_t>(rate.period_ns);
  settings.windows[0].burst = burst;
  settings.max_wait_ns = static_cast<std::uint64_t>(max_wait_ns);
  return settings;
}

shm::KeyHash key(std::uint64_t n) noexcept { return {spread(2 * n), spread(2 * n + 1)}; }

World::World(std::vector<rule::LimitSettings> limits, WorldOptions options) {
  shm::SegmentOptions segment;
  segment.capacity = {.keys = options.keys,
                      .limits = options.limits,
                      .processes = options.processes,
                      .stripes = options.stripes,
                      .events = options.events,
                      .overrides = options.overrides,
                      .tops = options.tops,
                      .calendars = options.calendars,
                      .breakers = options.breakers,
                      .breaker_memory = options.breaker_memory,
                      .trips = options.trips,
                      .bulkheads = options.bulkheads,
                      .bulkhead_cells = options.bulkhead_cells,
                      .waiters = options.waiters,
                      .remember_keys = options.remember_keys};
  segment.clock = options.clock;
  auto made = shm::Segment::create_files(directory_.fd(), segment);
  if (!made) give_up(made.error().text());
  segment_ = std::make_unique<shm::Segment>(std::move(made.value()));
  ranges_ = ranges_of(view());
  std::erase_if(ranges_, [](const Range& range) { return range.length == 0; });  // may be null
  adopt();
  publish(limits);
}

shm::PublishReport World::publish(const std::vector<rule::LimitSettings>& limits) {
  auto done = publisher_->publish(limits, 0);
  if (!done) give_up(done.error().text());
  return *done;
}

DecisionData World::take(shm::LimitRef ref, shm::KeyHash hash, std::uint64_t cost,
                         std::int64_t max_wait_ns) const {
  DecisionData out;
  std::uint64_t hint = shm::kNoSlot;
  charge(view(), {ref, hash, cost, max_wait_ns}, hint, out);
  return out;
}

DecisionData World::take_at(std::int64_t t, shm::LimitRef ref, shm::KeyHash hash,
                            std::uint64_t cost) const {
  DecisionData out;
  std::uint64_t hint = shm::kNoSlot;
  charge_at(view(), {ref, hash, cost, 0}, t, hint, out);
  return out;
}

DecisionData World::peek(shm::LimitRef ref, shm::KeyHash hash, std::uint64_t cost) const {
  DecisionData out;
  std::uint64_t hint = shm::kNoSlot;
  look(view(), {ref, hash, cost, 0}, hint, out);
  return out;
}

std::uint64_t World::drain(const std::string& name, shm::KeyHash hash, std::uint64_t most) const {
  const shm::LimitRef limit = ref(name);
  std::uint64_t given = 0;
  while (given < most && take(limit, hash).reason == Reason::Allowed) ++given;
  return given;
}

std::uint64_t World::crowd(const std::string& name, std::uint64_t cost, std::uint64_t first) const {
  // A key too many is refused a place and changes the overflow word: look before each.
  std::uint64_t placed = 0;
  for (std::uint64_t n = 0; n < 64 * view().slot_count; ++n) {
    std::uint64_t taken = 0;
    for (std::uint64_t i = 0; i < view().slot_count; ++i) taken += view().slots[i].lo != 0;
    if (taken == view().slot_count) break;
    const shm::Place place = place_of(view(), key(first + n), 0);
    const auto room = [](const Word16* group) {
      for (std::size_t i = 0; i < shm::kGroupSlots; ++i) {
        if (group[i].lo == 0) return true;
      }
      return false;
    };
    if (!room(place.first) && !room(place.other)) continue;
    placed += take(name, key(first + n), cost).reason == Reason::Allowed;
  }
  return placed;
}

std::uint64_t World::members_of(shm::KeyHash hash) const noexcept {
  const std::uint64_t want = shm::fingerprint(hash, 0) << shm::kFingerprintShift;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < view().slot_count; ++i) {
    found += (load16(view().slots + i).lo & kMemberMask) == want;
  }
  return found;
}

std::uint64_t World::claims_of(shm::KeyHash hash) const noexcept {
  const std::uint64_t want =
      (shm::fingerprint(hash, 0) << shm::kFingerprintShift) | shm::kTagTentative;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < view().slot_count; ++i) {
    found += (load16(view().slots + i).lo & kMemberMask) == want;
  }
  return found;
}

void World::plant_claim(const std::string& name, shm::KeyHash hash, bool other_group,
                        std::uint32_t slot, std::int64_t deadline_in_ns) const {
  const shm::Place place = place_of(view(), hash, 0);
  const std::uint64_t c = view().current();
  const std::uint64_t id = view().limit_config(c, ref(name).index).rule[0];
  const auto deadline =
      static_cast<std::uint64_t>(now() + deadline_in_ns) >> shm::kClaimTickShift;
  Word16* where = (other_group ? place.other : place.first) + slot;
  *where = {place.fp_bits | (other_group ? shm::kTagAlt : 0) | shm::kTagTentative | id,
            deadline << shm::kClaimNonceBits | (0x4711 + slot)};
}

std::string World::verify() const {
  std::string all;
  for (const shm::Finding& finding : shm::verify(view()).findings) {
    all += finding.place + ": " + finding.text + "\n";
  }
  return all;
}

Snapshot World::save() const {
  Snapshot snapshot;
  for (const Range& range : ranges_) {
    const auto* start = static_cast<const std::uint8_t*>(range.start);
    snapshot.insert(snapshot.end(), start, start + range.length);
  }
  return snapshot;
}

bool World::same(const Snapshot& snapshot) const {
  const std::uint8_t* then = snapshot.data();
  for (const Range& range : ranges_) {
    if (std::memcmp(range.start, then, range.length) != 0) return false;
    then += range.length;
  }
  return true;
}

void World::restore(const Snapshot& snapshot) const {
  const std::uint8_t* from = snapshot.data();
  for (const Range& range : ranges_) {
    std::memcpy(range.start, from, range.length);
    from += range.length;
  }
}

}  // namespace cutwater::test
