// SPDX-License-Identifier: Apache-2.0
// Limits that are not one plain window, and several at once, through the library. Rules are written
// by hand into the private memory (support/image_edit.hpp).
#include <gtest/gtest.h>

#include <array>
#include <string>

#include <cutwater/client.hpp>

#include "shm/limit/admit.hpp"
#include "src/core.hpp"
#include "support/image_edit.hpp"

namespace cutwater {
namespace {

using namespace std::chrono_literals;
using cutwater::test::ImageEdit;
constexpr std::int64_t kSecond = 1'000'000'000;

class SpecialLimits : public testing::Test {
 protected:
  SpecialLimits()
      : client(Client::in_memory("capacity: {keys: 1024, limits: 16, overrides: 64}\n"
                                 "limits: {plain: {rate: 1/s, burst: 5}}\n",
                                 clock)
                   .value()),
        edit(client.core().view()) {}

  const shm::View& view() { return client.core().view(); }
  Limit add(std::string_view name, const std::vector<ImageEdit::Window>& windows,
            std::uint8_t flags = 0) {
    edit.add_limit(name, windows, flags);
    return client.limit(name).value();
  }
  shm::LimitHandle handle(std::string_view name) { return shm::resolve(view(), name); }
  std::uint64_t counted(std::string_view name, shm::LimitCounter counter) {
    return shm::sum_counters(view(), handle(name).ref.index)[static_cast<std::size_t>(counter)];
  }
  static ImageEdit::Window rate(std::uint64_t count, std::int64_t period, std::uint64_t burst) {
    return {.count = count, .period_ns = period, .burst = burst};
  }

  SteppedClock clock;
  Client client;
  ImageEdit edit;
};

TEST_F(SpecialLimits, EveryWayOfAskingSeesAllWindows) {
  Limit api = add("api", {rate(10, kSecond, 10), rate(20, 60 * kSecond, 20)});
  Key k = api.key("k");

  EXPECT_EQ(api.try_acquire("k", 4).remaining(), 6U);
  EXPECT_EQ(k.try_acquire(4).remaining(), 2U);
  EXPECT_EQ(api.peek("k", 3).reason(), Reason::Limit);
  EXPECT_EQ(k.peek(3).reason(), Reason::Limit);
  std::array<Decision, 3> out;
  const std::array<std::string_view, 3> keys = {"k", "other", "k"};
  api.acquire_batch(keys, out, 1);
  EXPECT_EQ(out[0].remaining(), 1U);
  EXPECT_EQ(out[1].remaining(), 9U);
  EXPECT_EQ(out[2].remaining(), 0U);
  clock.advance(1s);
  EXPECT_EQ(api.try_acquire("k", 10).remaining(), 0U);
  const Decision d = api.reserve("k", {.cost = 1, .max_wait = 10s});
  EXPECT_TRUE(d.allowed());
  EXPECT_EQ(d.starts_in(), 2s);                        // 20 a minute, two used up a second ago
  EXPECT_EQ(d.window(), 0);
}

TEST_F(SpecialLimits, ARefundGivesBackEveryWindowOnce) {
  Limit api = add("api", {rate(10, kSecond, 10), rate(20, 60 * kSecond, 20)});
  Decision d = api.try_acquire("k", 4);
  EXPECT_EQ(d.charged(), 4U);
  Decision later = api.try_acquire("k", 1);

  EXPECT_EQ(api.refund(d).error().code(), Errc::TooLate);
  EXPECT_EQ(api.refund(later).value(), 1U);
  EXPECT_EQ(api.refund(d).value(), 4U);
  EXPECT_EQ(api.refund(d).error().code(), Errc::AlreadyUsed);

  EXPECT_EQ(api.peek("k", 0).remaining(), 10U);
  EXPECT_EQ(api.peek("k", 0).reset_after(), 0s);
  EXPECT_EQ(counted("api", shm::LimitCounter::Undone), 5U);
}

TEST_F(SpecialLimits, AKeyHandleFollowsAPatternThatComesAndGoes) {
  Limit api = client.limit("plain").value();
  Key big = api.key("partner:big");
  EXPECT_EQ(big.peek(0).remaining(), 5U);

  const shm::LimitHandle plain = handle("plain");
  edit.add_pattern(plain.ref, "partner:*", edit.add_set(plain.ref, {rate(50, kSecond, 50)}));
  EXPECT_EQ(big.try_acquire(10).remaining(), 40U);
  EXPECT_EQ(Key{big}.try_acquire(10).remaining(), 30U);
  EXPECT_EQ(api.try_acquire("alice").remaining(), 4U);
  edit.set_flag(plain.ref, shm::kLimitHasPatterns, false);

  EXPECT_EQ(big.try_acquire(1).reason(), Reason::Limit);   // the debt is the key's
  EXPECT_EQ(counted("plain", shm::LimitCounter::Overridden), 2U);
}

TEST_F(SpecialLimits, ABanIsSeenAtOnceByAKeyThatWasPlain) {
  Limit api = client.limit("plain").value();
  Key k = api.key("mallory");
  EXPECT_TRUE(k.try_acquire());
  EXPECT_TRUE(k.try_acquire());
  const shm::LimitHandle plain = handle("plain");

  const shm::BanAnswer done =
      shm::ban(view(), plain.ref, shm::key_of(plain, "mallory").hash, view().clock.now() + kSecond);
  EXPECT_TRUE(done.announce);
  edit.announce();

  EXPECT_EQ(k.try_acquire().reason(), Reason::Banned);
  EXPECT_EQ(api.try_acquire("mallory").retry_after(), 1s);
  EXPECT_TRUE(api.try_acquire("alice"));
  EXPECT_EQ(counted("plain", shm::LimitCounter::Banned), 2U);
  clock.advance(1s);
  EXPECT_TRUE(k.try_acquire());
  EXPECT_TRUE(shm::clear_bans(view()));
  edit.announce();
  EXPECT_TRUE(k.try_acquire());
}

TEST_F(SpecialLimits, ShadowAndUnlimitedCountApart) {
  Limit shadow = add("shadow", {rate(1, kSecond, 1)}, shm::kLimitShadow);
  Limit open = add("open", {rate(1, kSecond, 1)}, shm::kLimitUnlimited);
  Limit shut = add("shut", {rate(1, kSecond, 1)}, shm::kLimitBlocked);

  EXPECT_FALSE(shadow.try_acquire("k").shadow());
  const Decision d = shadow.try_acquire("k");
  EXPECT_TRUE(d);
  EXPECT_TRUE(d.shadow());
  EXPECT_EQ(d.would(), Reason::Limit);
  EXPECT_EQ(d.charged(), 0U);
  EXPECT_TRUE(open.try_acquire("k", 1000));
  EXPECT_EQ(shut.try_acquire("k").retry_after(), kNever);

  EXPECT_EQ(counted("shadow", shm::LimitCounter::Allowed), 2U);
  EXPECT_EQ(counted("shadow", shm::LimitCounter::ShadowRefused), 1U);
  EXPECT_EQ(counted("shadow", shm::LimitCounter::Tokens), 1U);
  EXPECT_EQ(counted("open", shm::LimitCounter::Unlimited), 1U);
  EXPECT_EQ(counted("shut", shm::LimitCounter::Banned), 1U);
  EXPECT_EQ(counted("shut", shm::LimitCounter::Refused), 1U);
}

TEST_F(SpecialLimits, ChargeAfterTheFactSaysHowMuch) {
  Limit api = client.limit("plain").value();
  EXPECT_TRUE(api.try_acquire("k", 5));

  Decision d = api.charge("k", 3);
  EXPECT_TRUE(d);
  EXPECT_EQ(d.charged(), 3U);
  EXPECT_EQ(d.remaining(), 0U);
  EXPECT_EQ(d.reset_after(), 8s);
  EXPECT_EQ(api.try_acquire("k").retry_after(), 4s);
  EXPECT_EQ(api.refund(d).value(), 3U);
  EXPECT_EQ(api.peek("k", 0).reset_after(), 5s);
  EXPECT_EQ(api.charge("k", kMaxCost + 1).reason(), Reason::InvalidArgument);
  EXPECT_EQ(counted("plain", shm::LimitCounter::Charged), 3U);
}

TEST_F(SpecialLimits, C011AcquireAllIsAllOrNoneInBothOrders) {
  for (const bool user_first : {true, false}) {
    const std::string suffix = user_first ? "-1" : "-2";
    Limit user = add("user" + suffix, {rate(1, 60 * kSecond, 1)});
    Limit global = add("global" + suffix, {rate(10, 60 * kSecond, 10)});
    const auto ask = [&](std::string_view who) {
      return user_first ? client.acquire_all({{user, who}, {global, "all"}})
                        : client.acquire_all({{global, "all"}, {user, who}});
    };
    int admitted = 0;
    for (int i = 0; i < 20; ++i) admitted += ask("A").allowed();
    EXPECT_EQ(admitted, 1);
    EXPECT_EQ(ask("A").limit_name(), "user" + suffix);
    EXPECT_EQ(ask("A").retry_after(), 60s);
    for (char who = 'B'; who <= 'J'; ++who) admitted += ask(std::string(1, who)).allowed();
    EXPECT_EQ(admitted, 10);
    EXPECT_EQ(global.peek("all", 0).remaining(), 0U);
    const Admission last = ask("K");
    EXPECT_EQ(last.limit_name(), "global" + suffix);
    EXPECT_EQ(last.index(), user_first ? 1U : 0U);
    EXPECT_EQ(counted("global" + suffix, shm::LimitCounter::Allowed), 10U);
    EXPECT_EQ(counted("global" + suffix, shm::LimitCounter::Refused), 1U);
  }
}

TEST_F(SpecialLimits, C011TheSlowWindowShowsExactlyWhatWasAdmitted) {
  Limit fast = add("fast", {rate(10, 60 * kSecond, 10)});
  Limit slow = add("slow", {rate(30, 1800 * kSecond, 30)});
  std::uint64_t admitted = 0;
  for (int i = 0; i < 31; ++i) {
    admitted += client.acquire_all({{fast, "k"}, {slow, "k"}}).allowed();
    clock.advance(120s / 31);
  }

  EXPECT_EQ(slow.peek("k", 0).reset_after(),
            Nanos{static_cast<std::int64_t>(admitted) * 60 * kSecond} - 120s / 31 * 31);
}

TEST_F(SpecialLimits, AnAdmissionIsRefundedAsAWhole) {
  Limit api = client.limit("plain").value();
  Limit two = add("two", {rate(10, kSecond, 10), rate(20, 60 * kSecond, 20)});
  Admission a = client.acquire_all({{api, "k", 2}, {two, "k", 3}, {api, "k", 1}});
  ASSERT_TRUE(a);
  EXPECT_EQ(a.each().size(), 3U);
  EXPECT_EQ(a.remaining(), 2U);
  EXPECT_EQ(a.limit_name(), "plain");
  EXPECT_TRUE(client.peek_all({{api, "k", 2}, {two, "k", 7}}));
  EXPECT_FALSE(client.peek_all({{api, "k", 2}, {two, "k", 8}}));

  EXPECT_EQ(client.refund(a).value(), 6U);              // 3 of plain, 3 of two
  EXPECT_EQ(client.refund(a).error().code(), Errc::AlreadyUsed);

  EXPECT_EQ(api.peek("k", 0).remaining(), 5U);
  EXPECT_EQ(two.peek("k", 0).reset_after(), 0s);
}

TEST_F(SpecialLimits, BadListsAreAnsweredAndChargeNothing) {
  Limit api = client.limit("plain").value();
  Client other = Client::in_memory("limits: {far: {rate: 1/s}}").value();
  Limit far = other.limit("far").value();
  const std::string long_key(kMaxKeyBytes + 1, 'x');

  EXPECT_EQ(client.acquire_all({}).reason(), Reason::InvalidArgument);
  EXPECT_EQ(client.acquire_all({{api, "k"}, {far, "k"}}).reason(), Reason::InvalidArgument);
  EXPECT_EQ(client.acquire_all({{api, "k"}, {api, long_key}}).reason(), Reason::KeyTooLong);
  EXPECT_EQ(client.acquire_all({{api, "k"}, {api, long_key}}).index(), 1U);
  EXPECT_EQ(client.acquire_all({{api, "k", kMaxCost + 1}}).reason(), Reason::InvalidArgument);
  const std::vector<LimitAsk> nine(kMaxLimitsAtOnce + 1, LimitAsk{api, "k"});
  EXPECT_EQ(client.acquire_all(nine).reason(), Reason::InvalidArgument);

  EXPECT_EQ(api.peek("k", 0).remaining(), 5U);
}

}  // namespace
}  // namespace cutwater
