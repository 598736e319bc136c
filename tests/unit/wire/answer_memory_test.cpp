// SPDX-License-Identifier: Apache-2.0
#include "wire/answer_memory.hpp"

#include <gtest/gtest.h>

namespace cutwater::wire {
namespace {

using Seen = AnswerMemory::Seen;
constexpr auto kStale = static_cast<std::uint16_t>(ItemError::Stale);
constexpr auto kNotRemembered = static_cast<std::uint16_t>(ItemError::NotRemembered);

AnswerMemory::Executed executed(std::string payload, std::size_t items = 1,
                                std::initializer_list<const char*> receipts = {}) {
  AnswerMemory::Executed out{MessageType::AcquireAnswer, std::move(payload), items, {}};
  for (const char* receipt : receipts) out.receipts.add(receipt);
  return out;
}

TEST(AnswerMemory, KnowsWhatRunsWhatIsAnsweredAndWhatNeverCame) {
  AnswerMemory memory;
  memory.use(3);
  memory.begin(1, MessageType::Acquire);
  memory.begin(2, MessageType::Enter);
  memory.remember(1, executed("one"));

  EXPECT_EQ(memory.seen(1), Seen::Answered);
  EXPECT_EQ(memory.answer_of(1)->payload, "one");
  EXPECT_EQ(memory.seen(2), Seen::Running);
  EXPECT_EQ(memory.running_type(2), MessageType::Enter);
  EXPECT_EQ(memory.seen(3), Seen::Never);  // it was answered BUSY or ERROR
  EXPECT_EQ(memory.last_request(), 3u);

  memory.not_executed(2);
  EXPECT_EQ(memory.seen(2), Seen::Never);
  EXPECT_EQ(memory.running(), 0u);
}

TEST(AnswerMemory, Keeps1024ItemsAndTheOldestAnswerGoesFirst) {
  AnswerMemory memory;
  for (std::uint32_t id = 1; id <= 4; ++id) memory.remember(id, executed("x", 256));
  EXPECT_EQ(memory.items(), kRememberedItems);
  EXPECT_EQ(memory.floor(), 0u);

  memory.remember(5, executed("x", 1));

  EXPECT_EQ(memory.seen(1), Seen::Forgotten);
  EXPECT_EQ(memory.seen(2), Seen::Answered);
  EXPECT_EQ(memory.floor(), 1u);
  EXPECT_EQ(memory.items(), 3 * 256u + 1u);
}

TEST(AnswerMemory, Keeps64KiBOfAnswersAndReceipts) {
  AnswerMemory memory;
  const std::string half(kRememberedBytes / 2 - 4, 'a');
  memory.remember(1, executed(half, 1, {"abcd"}));
  memory.remember(2, executed(half, 1, {"efgh"}));
  EXPECT_EQ(memory.bytes(), kRememberedBytes);

  memory.remember(3, executed("x"));

  EXPECT_EQ(memory.seen(1), Seen::Forgotten);
  EXPECT_EQ(memory.seen(2), Seen::Answered);
  EXPECT_LE(memory.bytes(), kRememberedBytes);
}

TEST(AnswerMemory, AnAnswerThatIsTooLargeIsForgottenAtOnceAndNeverExecutedAgain) {
  AnswerMemory memory;
  memory.begin(9, MessageType::Steer);

  memory.remember(9, executed(std::string(kRememberedBytes + 1, 'a')));

  EXPECT_EQ(memory.seen(9), Seen::Forgotten);
  EXPECT_EQ(memory.bytes(), 0u);
  EXPECT_EQ(memory.items(), 0u);
}

TEST(AnswerMemory, ARequestAnsweredLateIsRememberedAlthoughHigherOnesAreForgotten) {
  AnswerMemory memory;
  memory.begin(1, MessageType::Enter);
  for (std::uint32_t id = 2; id < 2 + kRememberedItems + 10; ++id) {
    memory.remember(id, executed(""));
  }
  ASSERT_EQ(memory.floor(), 11u);
  EXPECT_EQ(memory.seen(1), Seen::Running);

  memory.remember(1, executed("late"));

  EXPECT_EQ(memory.seen(1), Seen::Answered);
  EXPECT_EQ(memory.seen(12), Seen::Forgotten);
  EXPECT_EQ(memory.seen(13), Seen::Answered);
  EXPECT_EQ(memory.items(), kRememberedItems);
}

TEST(AnswerMemory, AReceiptIsSpentOnce) {
  AnswerMemory memory;
  memory.remember(7, executed("", 2, {"r0", "r1"}));

  EXPECT_EQ(memory.take(7, 0), (TakenReceipt{0, "r0", {}}));
  EXPECT_EQ(memory.take(7, 0).code, kStale);
  EXPECT_EQ(memory.take(7, 1), (TakenReceipt{0, "r1", {}}));
  EXPECT_EQ(memory.take(7, 2).code, kNotRemembered);
  EXPECT_EQ(memory.take(8, 0).code, kNotRemembered);
}

TEST(AnswerMemory, AReceiptPutBackCanBeTakenAgain) {
  AnswerMemory memory;
  memory.remember(7, executed("", 1, {"r0"}));
  (void)memory.take(7, 0);

  memory.put_back(7, 0);
  memory.put_back(7, 99);
  memory.put_back(8, 0);

  EXPECT_EQ(memory.take(7, 0).receipt, "r0");
}

TEST(AnswerMemory, CancelTakesWhatWasNotTakenAndWhatLiesBehindTheItems) {
  AnswerMemory memory;
  memory.remember(7, executed("", 2, {"r0", "r1", "place"}));
  (void)memory.take(7, 1);
  EXPECT_EQ(memory.take(7, 2).code, kNotRemembered);  // not an item

  const auto all = memory.take_all(7);

  EXPECT_TRUE(all.found);
  EXPECT_EQ(all.receipts, (std::vector<std::string>{"r0", "place"}));
  EXPECT_TRUE(memory.take_all(7).receipts.empty());
  EXPECT_EQ(memory.take(7, 0).code, kStale);
  EXPECT_FALSE(memory.take_all(8).found);
}

TEST(AnswerMemory, OnlyWhatChangesSomethingIsRemembered) {
  for (const auto type : {MessageType::Acquire, MessageType::Enter, MessageType::Cancel,
                          MessageType::Refund, MessageType::Outcome, MessageType::Present,
                          MessageType::Steer}) {
    EXPECT_TRUE(is_remembered(type));
  }
  for (const auto type : {MessageType::Resolve, MessageType::Peek, MessageType::Read,
                          MessageType::Watch, MessageType::Ping, MessageType::Hello}) {
    EXPECT_FALSE(is_remembered(type));
  }
}

TEST(Receipts, KeepsEmptyOnesInTheirPlace) {
  Receipts receipts;
  receipts.add("");
  receipts.add("ab");
  receipts.add("");

  EXPECT_EQ(receipts.size(), 3u);
  EXPECT_EQ(receipts.at(0), "");
  EXPECT_EQ(receipts.at(1), "ab");
  EXPECT_EQ(receipts.at(2), "");
  EXPECT_EQ(receipts.at(3), "");
  EXPECT_EQ(receipts.bytes(), 2u);
}

}  // namespace
}  // namespace cutwater::wire
