// SPDX-License-Identifier: Apache-2.0
// A small shared memory for crash and stress tests: real files on a tmpfs, so that forked children
// decide in the same bytes, with keys that lie where the test wants them.
//
// Time is stepped unless a test asks for the real clock. Two groups of 16 slots are the smallest
// table: there every key may lie in every slot. Everything is deterministic for a given seed: keys
// are hashes made from numbers, not strings under the segment's random secret.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shm/limit/bucket.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::test {

inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kHour = 3600 * kSecond;

/// Spread of a number over 64 bits (splitmix).
constexpr std::uint64_t spread(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Chance of a test: the seed is printed with every failure.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t operator()() noexcept { return spread(state_ += 0x9E3779B97F4A7C15ULL); }
  /// 0..bound-1
  std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : (*this)() % bound; }
  bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

struct Rate {
  std::uint64_t count = 1;
  std::int64_t period_ns = kSecond;
};

rule::LimitSettings limit(std::string name, Rate rate, std::uint64_t burst,
                          std::int64_t max_wait_ns = 0);

/// Hash number `n`: lies anywhere.
shm::KeyHash key(std::uint64_t n) noexcept;

struct WorldOptions {
  std::uint64_t keys = 16;             ///< rounded up to two groups of 16 slots
  std::uint32_t limits = 4;
  std::uint32_t processes = 4;
  std::uint32_t stripes = 3;
  std::uint32_t events = 8;
  std::uint32_t overrides = 4;
  std::uint32_t tops = 1;
  std::uint32_t calendars = 2;
  std::uint32_t breakers = 0;
  std::uint64_t breaker_memory = 0;    ///< bytes
  std::uint32_t trips = 2;
  std::uint32_t bulkheads = 0;
  std::uint32_t bulkhead_cells = 0;
  std::uint32_t waiters = 0;
  bool remember_keys = false;
  shm::ClockKind clock = shm::ClockKind::Stepped;
};

/// Every byte of a segment that an operation may change.
using Snapshot = std::vector<std::uint8_t>;

class World {
 public:
  explicit World(std::vector<rule::LimitSettings> limits, WorldOptions options = {});

  const shm::View& view() const noexcept { return segment_->view(); }
  shm::Publisher& publisher() noexcept { return *publisher_; }
  shm::PublishReport publish(const std::vector<rule::LimitSettings>& limits);
  /// The publisher of a daemon that is started now and adopts what it finds.
  void adopt() { publisher_ = std::make_unique<shm::Publisher>(view()); }

  std::int64_t now() const noexcept { return view().clock.now(); }
  /// Moves the stepped clock.
  void pass(std::int64_t ns) noexcept { shm::step_clock(view(), now() + ns); }

  shm::LimitRef ref(const std::string& name) const { return shm::find_limit(view(), name); }
  DecisionData take(shm::LimitRef limit, shm::KeyHash key, std::uint64_t cost = 1,
                    std::int64_t max_wait_ns = 0) const;
  DecisionData take(const std::string& limit, shm::KeyHash key, std::uint64_t cost = 1,
                    std::int64_t max_wait_ns = 0) const {
    return take(ref(limit), key, cost, max_wait_ns);
  }
  /// With a reading of the clock that may be old.
  DecisionData take_at(std::int64_t t, shm::LimitRef limit, shm::KeyHash key,
                       std::uint64_t cost = 1) const;
  DecisionData take_at(std::int64_t t, const std::string& limit, shm::KeyHash key,
                       std::uint64_t cost = 1) const {
    return take_at(t, ref(limit), key, cost);
  }
  DecisionData peek(shm::LimitRef limit, shm::KeyHash key, std::uint64_t cost = 1) const;
  DecisionData peek(const std::string& limit, shm::KeyHash key, std::uint64_t cost = 1) const {
    return peek(ref(limit), key, cost);
  }
  /// Asks for one token until refused; how many were given, at most `most`.
  std::uint64_t drain(const std::string& limit, shm::KeyHash key, std::uint64_t most = 64) const;
  /// Fills every slot with debts of `limit` in keys from number `first` on; returns how many.
  std::uint64_t crowd(const std::string& limit, std::uint64_t cost, std::uint64_t first) const;

  std::uint64_t members_of(shm::KeyHash key) const noexcept;
  std::uint64_t claims_of(shm::KeyHash key) const noexcept;
  /// Puts a claim of a key there, as an inserter that was killed leaves it.
  void plant_claim(const std::string& limit, shm::KeyHash key, bool other_group, std::uint32_t slot,
                   std::int64_t deadline_in_ns) const;
  /// What verify() finds, as one text; empty when all is well.
  std::string verify() const;

  Snapshot save() const;
  void restore(const Snapshot& snapshot) const;
  /// True while every byte is as it was then.
  bool same(const Snapshot& snapshot) const;

 private:
  struct Range {
    void* start;
    std::size_t length;
  };
  static std::vector<Range> ranges_of(const shm::View& view);

  shm::test::TmpfsDirectory directory_;
  std::unique_ptr<shm::Segment> segment_;
  std::unique_ptr<shm::Publisher> publisher_;
  std::vector<Range> ranges_;
};

}  // namespace cutwater::test
