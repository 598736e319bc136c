// SPDX-License-Identifier: Apache-2.0
// A reload never admits what neither the old nor the new configuration allows: on a real clock, in
// the moment between the publication and the time its numbers hold from.
#include <gtest/gtest.h>

#include <string>

#include <cutwater/client.hpp>

namespace cutwater {
namespace {

struct Change {
  const char* before;
  const char* after;
  std::uint64_t burst;       ///< of `after`, which the key may have at most at once
  std::uint64_t per_second;
};

constexpr Change kChanges[] = {
    {"{ rate: 1000/s, burst: 1000, keys: { k0: { banned: true } } }", "{ rate: 10/s, burst: 10 }",
     10, 10},
    {"{ rate: 1000/s, burst: 1000, keys: { k0: { rate: 1/s, burst: 2 } } }",
     "{ rate: 10/s, burst: 10 }", 10, 10},
    {"{ rate: 1000/s, burst: 1000, keys: { \"k*\": { rate: 1/s, burst: 2 } } }",
     "{ rate: 10/s, burst: 10 }", 10, 10},
    {"{ windows: [ 1000/s, { rate: 10/s, burst: 10 } ] }", "{ rate: 10/s, burst: 10 }", 10, 10},
    {"{ windows: [ 1000/s, 1000/s, { rate: 10/s, burst: 10 } ] }",
     "{ windows: [ { rate: 10/s, burst: 10 }, 1000/s ] }", 10, 10},
    {"{ windows: [ 500/s, { rate: 100/s, burst: 40 } ] }", "{ rate: 500/s, burst: 50 }", 50, 500},
    {"{ windows: [ { calendar: { count: 1000, per: hour } }, { rate: 10/s, burst: 10 } ] }",
     "{ calendar: { count: 10, per: hour } }", 20, 0},
};

TEST(ReloadBound, NothingIsAdmittedThatNeitherConfigurationAllows) {
  for (const Change& change : kChanges) {
    SCOPED_TRACE(std::string(change.before) + " -> " + change.after);
    const auto yaml = [](const char* limit) {
      return std::string("limits: { api: ") + limit + " }";
    };
    auto client = Client::in_memory(yaml(change.before)).value();
    Limit api = client.limit("api").value();
    const auto reloaded = client.reload(yaml(change.after));
    ASSERT_TRUE(reloaded.ok()) << reloaded.error().text();
    const Nanos from = client.now();

    std::uint64_t admitted = 0;
    for (int i = 0; i < 2000; ++i) admitted += api.try_acquire("k0").allowed() ? 1 : 0;

    // Everything the new configuration may give in the time that really passed, and one more.
    const auto passed = static_cast<std::uint64_t>((client.now() - from).count());
    EXPECT_LE(admitted, change.burst + change.per_second * passed / 1'000'000'000 + 1);
  }
}

}  // namespace
}  // namespace cutwater
