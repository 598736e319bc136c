// SPDX-License-Identifier: Apache-2.0
// The line of an act, and the book of those that stand.
#include "acts/act_book.hpp"

#include <gtest/gtest.h>

#include "unit/server/some_acts.hpp"

namespace cutwater::server {
namespace {

Act read_act(const std::string& line) {
  auto entry = from_line(std::string_view(line).substr(0, line.size() - 1));
  return entry ? std::get<Act>(*entry) : Act{};
}

TEST(JournalLine, EveryKindOfActComesBackAsItWas) {
  Act override_act = ban(std::string("\0\xff key", 6), 2000);
  override_act.kind = ActKind::Override;
  override_act.rate_count = 100;
  override_act.rate_period_ns = 60'000'000'000;
  override_act.burst = 7;
  override_act.id = 3;
  Act shadow = ban("");
  shadow.kind = ActKind::Shadow;
  shadow.shadow = true;
  shadow.id = 4;
  Act banned = ban("mallory");
  banned.id = 5;

  Act breaker;
  breaker.kind = ActKind::Breaker;
  breaker.breaker = "fraud";
  breaker.state = rule::BreakerState::MetricsOnly;
  breaker.until_s = 2000;
  breaker.who = "uid 0";
  breaker.note = "their maintenance";
  breaker.id = 6;

  Act reset = breaker;
  reset.kind = ActKind::Reset;
  reset.state = Act{}.state;
  reset.id = 7;
  Act set_free = reset;
  set_free.kind = ActKind::Auto;
  set_free.id = 8;

  for (const Act& act : {override_act, shadow, banned, breaker, reset, set_free}) {
    EXPECT_EQ(read_act(to_line(act)), act);
  }

  const ActEnd end{3, EndKind::Expired, 2000, ""};
  const std::string line = to_line(end);
  EXPECT_EQ(std::get<ActEnd>(*from_line(std::string_view(line).substr(0, line.size() - 1))), end);
}

TEST(JournalLine, AChangedByteIsDamage) {
  Act act = ban("alice");
  act.id = 1;
  const std::string whole = to_line(act);
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    std::string line = whole.substr(0, whole.size() - 1);
    line[i] = static_cast<char>(line[i] ^ 1);
    const auto entry = from_line(line);
    // A digit of the sum may be written in another case; nothing else may pass.
    EXPECT_TRUE(!entry || std::get<Act>(*entry) == act) << i;
  }
  EXPECT_FALSE(from_line(""));
  EXPECT_FALSE(from_line("00000000 {}"));
}

TEST(ActBook, ALaterActReplacesTheEarlierOneOfTheSameKey) {
  ActBook book;
  EXPECT_EQ(book.begin(ban("a"))->size(), 1U);
  EXPECT_EQ(book.begin(ban("b"))->size(), 1U);
  const auto entries = book.begin(ban("a", 5000));

  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(std::get<ActEnd>(entries->at(0)).how, EndKind::Replaced);
  EXPECT_EQ(std::get<Act>(entries->at(1)).id, 3U);
  EXPECT_EQ(book.standing().size(), 2U);
  EXPECT_EQ(book.find(ActKind::Ban, "login", "a")->until_s, 5000U);
}

TEST(ActBook, OneActStandsForABreakerWhateverItsState) {
  ActBook book;
  Act act;
  act.kind = ActKind::Breaker;
  act.breaker = "login";
  act.state = rule::BreakerState::ForcedOpen;
  ASSERT_TRUE(book.begin(act));
  ASSERT_TRUE(book.begin(ban("mallory"))) << "a limit may have the same name";
  act.state = rule::BreakerState::Disabled;

  const auto entries = book.begin(act);

  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(std::get<ActEnd>((*entries)[0]).how, EndKind::Replaced);
  EXPECT_EQ(book.standing().size(), 2U);
  EXPECT_EQ(book.find(ActKind::Breaker, "login", "")->state, rule::BreakerState::Disabled);
  EXPECT_EQ(book.last_ended("login")->act.state, rule::BreakerState::ForcedOpen);
  EXPECT_EQ(book.last_ended("other"), nullptr);
}

TEST(ActBook, AnActThatIsOverAtOnceIsRememberedAndNeverStands) {
  ActBook book;
  Act act;
  act.kind = ActKind::Reset;
  act.breaker = "fraud";
  act.at_s = 1000;
  act.note = "mended";

  const JournalEntry line = book.moment(act);
  ActBook again;
  again.replay(line);

  for (const ActBook* one : {&book, &again}) {
    EXPECT_TRUE(one->standing().empty());
    ASSERT_EQ(one->ended().size(), 1U);
    EXPECT_EQ(one->last_ended("fraud")->act.note, "mended");
    EXPECT_EQ(one->last_ended("fraud")->end.how, EndKind::Done);
    EXPECT_EQ(one->last_id(), 1U);
  }
  EXPECT_FALSE(book.end(1, EndKind::Undone, 1001, "")) << "nothing undoes it";
}

TEST(ActBook, WhatIsWrittenAnewIsAllThatItKnows) {
  ActBook book;
  ASSERT_TRUE(book.begin(ban("a")));
  ASSERT_TRUE(book.begin(ban("b")));
  Act act;
  act.kind = ActKind::Auto;
  act.breaker = "fraud";
  static_cast<void>(book.moment(act));
  ASSERT_TRUE(book.end(1, EndKind::Undone, 1100, "uid 0"));

  ActBook again;
  for (const JournalEntry& entry : book.entries()) again.replay(entry);

  EXPECT_EQ(again.standing(), book.standing());
  EXPECT_EQ(again.last_id(), 3U);
  ASSERT_EQ(again.ended().size(), 2U);
  EXPECT_EQ(again.ended()[0].end.how, EndKind::Done);
  EXPECT_EQ(again.ended()[1].end.how, EndKind::Undone);
}

TEST(ActBook, KnowsWhatTheDiskDoesNot) {
  ActBook book;
  ASSERT_TRUE(book.begin(ban("a")));
  ASSERT_TRUE(book.begin(ban("b")));

  book.set_saving({1, 2, 99}, Saving::Pending);
  EXPECT_EQ(book.unsaved(), 2U) << "nobody remembers act 99";
  book.set_saving({1}, Saving::Failed);
  book.all_saved_anew();
  EXPECT_EQ(book.saving(1), Saving::Saved);
  EXPECT_EQ(book.saving(2), Saving::Pending) << "its own answer is still to come";
  book.set_saving({2}, Saving::Saved);
  EXPECT_EQ(book.unsaved(), 0U);
}

TEST(ActBook, WhatIsForgottenIsNoLongerUnsaved) {
  ActBook book;
  Act act;
  act.kind = ActKind::Reset;
  act.breaker = "fraud";
  for (std::size_t i = 0; i < ActBook::kMaxEnded + 10; ++i) {
    static_cast<void>(book.moment(act));
    book.set_saving({book.last_id()}, Saving::Failed);
  }
  EXPECT_EQ(book.unsaved(), ActBook::kMaxEnded);
}

TEST(ActBook, WhatIsReplayedIsWhatStood) {
  ActBook book;
  std::vector<JournalEntry> journal;
  const auto write = [&](const std::vector<JournalEntry>& entries) {
    journal.insert(journal.end(), entries.begin(), entries.end());
  };
  write(*book.begin(ban("a", 1500)));
  write(*book.begin(ban("b")));
  write(*book.begin(ban("c")));
  write({*book.end(3, EndKind::Undone, 1100, "uid 0")});
  write(book.expire(1499));
  EXPECT_EQ(book.standing().size(), 2U);
  write(book.expire(1500));

  ActBook again;
  for (const JournalEntry& entry : journal) again.replay(entry);

  EXPECT_EQ(again.standing(), book.standing());
  EXPECT_EQ(again.standing().size(), 1U);
  EXPECT_EQ(again.ended().size(), 2U);
  EXPECT_EQ(again.last_id(), 3U);
  EXPECT_FALSE(again.end(3, EndKind::Undone, 2000, ""));
}

TEST(ActBook, OnlySoManyStandAndSoManyEndedAreRemembered) {
  ActBook book;
  for (std::size_t i = 0; i < ActBook::kMaxStanding; ++i) {
    ASSERT_TRUE(book.begin(ban(std::to_string(i), 2000)));
  }

  EXPECT_EQ(book.begin(ban("one more")).error().code(), Errc::Busy);
  EXPECT_TRUE(book.begin(ban("7")));   // replaces, so it needs no room
  EXPECT_EQ(book.expire(2000).size(), ActBook::kMaxStanding - 1);
  EXPECT_EQ(book.ended().size(), ActBook::kMaxEnded);
}

TEST(ActBook, WhatWasReplacedNamesItsSuccessorAndLacksNothingOfItsOwn) {
  ActBook book;
  ASSERT_TRUE(book.begin(ban("mallory")));
  ASSERT_TRUE(book.begin(ban("another")));
  book.set_saving({1, 2}, Saving::Failed);
  ASSERT_TRUE(book.begin(ban("mallory")));
  book.set_saving({1, 3}, Saving::Failed);

  EXPECT_EQ(book.unsaved(), 2U) << "2 and 3 are in force";
  ASSERT_EQ(book.ended().size(), 1U);
  ASSERT_NE(book.replacer(book.ended()[0].act), nullptr);
  EXPECT_EQ(book.replacer(book.ended()[0].act)->id, 3U);

  ASSERT_TRUE(book.begin(ban("mallory")));
  EXPECT_EQ(book.replacer(book.ended()[0].act)->id, 3U) << "the next one, also when that ended";
  EXPECT_EQ(book.replacer(book.ended()[1].act)->id, 4U);
  EXPECT_EQ(book.replacer(*book.find(4)), nullptr);
}

}  // namespace
}  // namespace cutwater::server
