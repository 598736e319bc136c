// SPDX-License-Identifier: Apache-2.0
// TestLimits: limits for tests of a program that uses cutwater. No daemon, no files, no waiting.
//
//   auto limits = cutwater::TestLimits::make("limits: { api: { rate: 1/s, burst: 2 } }").value();
//   Service service(limits.client());                       // the code under test asks as always
//   (void)limits.force("api", {.reason = Reason::Limit, .retry_after = 30s});
//   EXPECT_EQ(service.get("/").status, 429);
//   EXPECT_EQ(limits.counts("api").refused, 1U);
//
// The client decides by the real code in a private memory, on a clock that stands until the test
// moves it: results do not depend on the machine. On top of it a test can
//   force    an answer for a limit, for one key of it, or for a bulkhead, some times or until it is
//            released:
//            a refusal with its wait, Reason::Degraded as without a daemon, an allowance. A forced
//            answer charges nothing.
//   count    what was asked: per limit, per key, per bulkhead, and the last asks of limits one by
//            one.
// Every way of asking is seen: names, keys with handles, batches, acquire_all, acquire with a wait,
// charge, peek, refund. A forced item of an all-or-none ask refuses it or is left out of it.
//
// Costs do not matter here: each ask takes a lock and remembers what was asked, keys in plain text.
// Bounds: kTestAsksKept asks one by one, kTestKeysCounted keys of all limits together; what is
// beyond still counts for its limit. Thread safety: everything from any thread. After fork() a
// child counts by itself. The client and everything got from it end with the TestLimits.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/client.hpp>
#include <cutwater/export.hpp>
#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

inline constexpr std::size_t kTestAsksKept = 1024;
inline constexpr std::size_t kTestKeysCounted = 65536;

/// An answer to give instead of deciding.
struct Forced {
  Reason reason = Reason::Limit;       ///< Allowed: an allowance
  Nanos retry_after{std::chrono::seconds{1}};   ///< of a refusal; kNever: no wait helps
  std::uint64_t times = 0;             ///< answers to give; 0 = until released
};

/// What was asked of a limit or of one key. Looks (peek, a cost of 0) count as looks alone.
struct TestCounts {
  std::uint64_t asked = 0;             ///< allowed + refused
  std::uint64_t allowed = 0;
  std::uint64_t refused = 0;
  std::uint64_t tokens = 0;            ///< cost of what was allowed
  std::uint64_t looks = 0;
  std::uint64_t forced = 0;            ///< answers that were forced, looks included
  std::uint64_t refunds = 0;           ///< that gave something back
};

/// One ask.
struct TestAsk {
  std::string limit;
  std::string key;
  std::uint64_t cost = 0;
  bool look = false;
  bool forced = false;
  Reason reason = Reason::Allowed;     ///< of the answer
};

class CUTWATER_EXPORT TestLimits {
 public:
  /// `yaml`: a configuration as the daemon's. InvalidConfig has every error with line:column.
  static Result<TestLimits> make(std::string_view yaml);

  /// For the code under test. The reference stays good when the TestLimits moves.
  Client& client() noexcept;

  /// Moves the clock forward; it begins at 0.
  void advance(Nanos by) noexcept;
  Nanos now() const noexcept;
  /// Another configuration, as a reload of the daemon; forced answers and counts stay.
  Result<void> reload(std::string_view yaml);

  /// Answers asks of `limit` so from now on; replaces what was forced before. UnknownName lists the
  /// nearest names.
  Result<void> force(std::string_view limit, Forced forced = {});
  /// The same for one key; goes before what is forced for the whole limit.
  Result<void> force(std::string_view limit, std::string_view key, Forced forced = {});
  /// The same for asks of a place. A forced grant holds nothing.
  Result<void> force_bulkhead(std::string_view bulkhead, Forced forced = {.reason = Reason::Full});
  void release_bulkhead(std::string_view bulkhead);
  /// Decides again; of all keys of the limit, of every limit and bulkhead.
  void release(std::string_view limit);
  void release();

  TestCounts counts(std::string_view limit) const;
  TestCounts counts(std::string_view limit, std::string_view key) const;
  /// Asks of a place: asked, allowed, refused, forced.
  TestCounts bulkhead_counts(std::string_view bulkhead) const;
  /// The last kTestAsksKept asks of limits, the oldest first.
  std::vector<TestAsk> asks() const;
  /// Counts from 0 again; forced answers and buckets stay.
  void forget();

  TestLimits(TestLimits&&) noexcept;
  TestLimits& operator=(TestLimits&&) noexcept;
  ~TestLimits();

 private:
  class Inside;
  explicit TestLimits(std::unique_ptr<Inside> inside) noexcept;
  std::unique_ptr<Inside> inside_;
};

}  // namespace cutwater
