// SPDX-License-Identifier: Apache-2.0
// Frames written in place have the bytes of the message structs, and answers read in place their
// fields.
#include "src/ask/ask_codec.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "wire/enter_message.hpp"

namespace cutwater::client {
namespace {

TEST(AskCodec, AcquireIsTheMessageByteForByte) {
  const std::string long_key(4096, 'k');
  for (const std::uint64_t cost : {0ULL, 1ULL, 3ULL, 1'000'000'000ULL}) {
    for (const std::size_t count : {1U, 2U, 15U, 16U, 256U}) {
      std::vector<std::string_view> keys(count, "alice");
      keys.back() = long_key;
      wire::Acquire message;
      message.ttl_ns = 50'000'000;
      message.max_wait_ns = cost;
      for (std::size_t i = 0; i < count; ++i) {
        wire::Item item;
        if (i == 0) item.limit = "api-per-user";
        item.key = keys[i];
        item.cost = cost;
        message.items.push_back(std::move(item));
      }
      std::string bytes;

      put_acquire(bytes, {50'000'000, cost}, "api-per-user", keys, cost);

      EXPECT_EQ(bytes, wire::encode(message).value()) << cost << " " << count;
    }
  }
}

TEST(AskCodec, PeekEnterAndRefundAreTheMessagesByteForByte) {
  std::string peek, refund;
  const NamedAsk asks[] = {{"api", std::string_view("a\0b", 3), 7}, {"tenant", "", 1}};
  put_peek(peek, {asks, 1});
  put_refund(refund, 4'000'000'000U, 255);

  wire::Peek message;
  message.items.push_back({"api", std::string("a\0b", 3), 7, 0});
  EXPECT_EQ(peek, wire::encode(message).value());
  wire::Refund back;
  back.items.push_back({4'000'000'000U, 255, std::nullopt});
  EXPECT_EQ(refund, wire::encode(back).value());

  std::string charge;
  put_charge(charge, {9, 0}, asks[0]);
  wire::Acquire used;
  used.ttl_ns = 9;
  used.items = {message.items[0]};
  used.items[0].flags = wire::kItemAfterTheFact;
  EXPECT_EQ(charge, wire::encode(used).value());

  std::string bytes;
  put_enter(bytes, {9, 8}, asks);
  wire::Enter enter;
  enter.ttl_ns = 9;
  enter.max_wait_ns = 8;
  enter.items = {message.items[0], {"tenant", "", 1, 0}};
  EXPECT_EQ(bytes, wire::encode(enter).value());
}

TEST(AskCodec, AdmissionsAndOutcomesAreThoseOfTheProtocol) {
  const NamedAsk limits[] = {{"api", "k", 2}, {"tenant", "", 1}};
  for (const std::int64_t call_ns : {0, 250}) {
    std::string bytes;
    put_admission(bytes, {9, 8},
                  {.bulkhead = "gate", .breaker = {}, .limits = limits, .call_ns = Nanos{call_ns}});
    wire::Enter enter;
    enter.ttl_ns = 9;
    enter.max_wait_ns = 8;
    enter.items = {{"api", "k", 2, 0}, {"tenant", "", 1, 0}};
    enter.bulkhead = "gate";
    enter.call_ns = static_cast<std::uint64_t>(call_ns);
    EXPECT_EQ(bytes, wire::encode(enter).value());
  }
  wire::OutcomeReport report;
  report.ticket = std::string("t\0t", 3);
  for (const auto outcome : {wire::OutcomeKind::Succeeded, wire::OutcomeKind::TimedOut}) {
    for (const std::uint64_t took : {std::uint64_t{5}, wire::kNever}) {
      for (const std::uint64_t open_for : {std::uint64_t{0}, std::uint64_t{7}, wire::kNever}) {
        for (const char* name : {"", "http-503"}) {
          report.outcome = outcome;
          report.duration_ns = took;
          report.open_for_ns = open_for;
          report.outcome_class = name;
          std::string bytes;
          put_outcome(bytes, report);
          EXPECT_EQ(bytes, wire::encode(wire::Outcome{{report}}).value());
        }
      }
    }
  }
}

TEST(AskCodec, FramesTakeAsManyKeysAsFit) {
  const std::string four(4096, 'x'), over(4097, 'x');
  const std::vector<std::string_view> many(1000, "k"), large(10, four);
  std::vector<std::string_view> cut(10, "k");
  cut[3] = over;

  EXPECT_EQ(keys_of_frame(many, 64 << 10), wire::kMaxItems);
  EXPECT_EQ(keys_of_frame(large, 64 << 10), 3U) << "16 KiB";
  EXPECT_EQ(keys_of_frame(large, 4096), 1U) << "one at least";
  EXPECT_EQ(keys_of_frame(cut, 64 << 10), 3U) << "up to a key that is too long";
  for (const std::size_t max_frame : {4096U, 5000U, 65536U}) {
    std::vector<std::string_view> keys(300, std::string_view(four).substr(0, 100));
    const std::size_t count = keys_of_frame(keys, max_frame);
    std::string bytes;
    put_acquire(bytes, {~0ULL, ~0ULL}, std::string(63, 'n'), std::span(keys).first(count),
                1'000'000'000);
    EXPECT_LE(bytes.size(), max_frame);
  }
}

class AskCodecAnswers : public ::testing::Test {
 protected:
  detail::LimitState state;
  std::vector<Decision> out;

  bool take(const std::vector<wire::DecisionAnswer>& answers, std::uint64_t cost = 3,
            bool look = false) {
    const std::string bytes = wire::encode(wire::AcquireAnswer{answers}).value();
    out = std::vector<Decision>(answers.size());
    return take_decisions(bytes, {&state, out, cost, look, 99}, {7, 2});
  }
};

TEST_F(AskCodecAnswers, HaveEveryFieldOfTheMessage) {
  std::mt19937_64 random(20'26);
  const auto number = [&] { return random() >> (random() % 64); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<wire::DecisionAnswer> answers(1 + random() % 5);
    for (auto& answer : answers) {
      answer.reason = static_cast<std::uint16_t>(random() % 9);
      answer.remaining = number();
      answer.retry_after_ns = number();
      answer.reset_after_ns = number();
      answer.wait_ns = number();
      answer.window = static_cast<std::uint8_t>(random() % 6);
      answer.flags = static_cast<std::uint16_t>(random() % 128);
      if ((answer.flags & wire::kAnswerShadow) != 0) answer.would = answer.reason;
    }
    ASSERT_TRUE(take(answers));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& told = answers[i];
      const Decision& d = out[i];
      const auto nanos = [](std::uint64_t ns) {
        return ns > static_cast<std::uint64_t>(kNever.count())
                   ? kNever
                   : Nanos{static_cast<std::int64_t>(ns)};
      };
      EXPECT_EQ(static_cast<int>(d.reason()), told.reason);
      EXPECT_EQ(d.remaining(), told.remaining);
      EXPECT_EQ(d.retry_after(), nanos(told.retry_after_ns));
      EXPECT_EQ(d.reset_after(), nanos(told.reset_after_ns));
      EXPECT_EQ(d.starts_in(), nanos(told.wait_ns));
      EXPECT_EQ(d.window(), told.window);
      EXPECT_EQ(d.data().flags, told.flags);
      EXPECT_EQ(static_cast<int>(d.would()), told.would);
      EXPECT_EQ(d.decided_by(), DecidedBy::Socket);
      EXPECT_EQ(d.stamp(), Nanos{99});
      const bool charged = d.allowed() && !d.shadow();
      EXPECT_EQ(d.charged(), charged ? 3U : 0U);
      EXPECT_EQ(d.data().receipt, charged ? Receipt::Remembered : Receipt::None);
      if (charged) {
        EXPECT_EQ(d.data().tag, i);
      }
    }
  }
}

TEST_F(AskCodecAnswers, ItemErrorsAreRefusalsOfTheirKind) {
  const auto error = [](wire::ItemError code) {
    return wire::DecisionAnswer::error(code, "in words");
  };
  ASSERT_TRUE(take({error(wire::ItemError::UnknownName), error(wire::ItemError::KeyTooLong),
                    error(wire::ItemError::InvalidArgument), error(wire::ItemError::Stale),
                    error(static_cast<wire::ItemError>(999))}));

  EXPECT_EQ(out[0].reason(), Reason::Degraded);
  EXPECT_TRUE(out[0].degraded());
  EXPECT_EQ(out[1].reason(), Reason::KeyTooLong);
  EXPECT_EQ(out[2].reason(), Reason::InvalidArgument);
  EXPECT_EQ(out[2].retry_after(), kNever);
  EXPECT_EQ(out[3].reason(), Reason::Degraded);
  EXPECT_FALSE(out[4].allowed());
}

TEST_F(AskCodecAnswers, LooksAndCostlessAsksHaveNoReceipt) {
  ASSERT_TRUE(take({wire::DecisionAnswer{}}, 1, true));
  EXPECT_EQ(out[0].data().receipt, Receipt::None);
  ASSERT_TRUE(take({wire::DecisionAnswer{}}, 0));
  EXPECT_EQ(out[0].data().receipt, Receipt::None);
}

TEST_F(AskCodecAnswers, AnythingElseIsNoAnswer) {
  const std::string good = wire::encode(wire::AcquireAnswer{{wire::DecisionAnswer{}}}).value();
  out = std::vector<Decision>(2);
  EXPECT_FALSE(take_decisions(good, {&state, out, 1, false, 0}, {})) << "one where two were asked";
  out = std::vector<Decision>(1);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(take_decisions(good.substr(0, length), {&state, out, 1, false, 0}, {}));
  }
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes += static_cast<char>(random());
    out = std::vector<Decision>(1);
    (void)take_decisions(bytes, {&state, out, 1, false, 0}, {});
    std::uint16_t code = 0;
    std::uint64_t tokens = 0;
    (void)take_refund(bytes, code, tokens);
  }
}

}  // namespace
}  // namespace cutwater::client
