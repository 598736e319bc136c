// SPDX-License-Identifier: Apache-2.0
#include "journal.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "act_book.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

using test::read_file;
using test::ScratchPlace;
using test::write_file;

Act ban(std::string key, std::uint64_t until_s = 0) {
  Act act;
  act.kind = ActKind::Ban;
  act.limit = "login";
  act.key = std::move(key);
  act.at_s = 1000;
  act.until_s = until_s;
  act.who = "uid 0";
  act.note = "scraping, \"again\"\n\xc3\xa4";
  return act;
}

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

  for (const Act& act : {override_act, shadow, banned, breaker}) {
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

struct JournalFile : testing::Test {
  Journal::Opened open() {
    return Journal::open(loop, {.setting = place.path() + "/state/main"});
  }
  /// Runs the loop until `count` appends are answered.
  void append(Journal& journal, const std::vector<JournalEntry>& entries) {
    bool done = false;
    journal.append(entries, [&](const Result<void>& result) {
      done = true;
      saved = result.ok();
    });
    test::eventually([&] { loop.restart(); loop.poll(); return done; });
  }
  std::vector<JournalEntry> act(std::uint64_t id) {
    Act one = ban("k" + std::to_string(id));
    one.id = id;
    return {one};
  }
  ScratchPlace place;
  asio::io_context loop;
  bool saved = false;
  std::string file = place.path() + "/state/main/journal";
};

TEST_F(JournalFile, WhatWasSavedIsThereAfterwards) {
  {
    auto opened = open();
    EXPECT_TRUE(opened.remarks.empty());
    append(*opened.journal, act(1));
    append(*opened.journal, act(2));
    EXPECT_TRUE(saved);
  }

  EXPECT_EQ(open().entries.size(), 2U);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(JournalFile, ALineCutByACrashIsDroppedSilently) {
  append(*open().journal, act(1));
  const std::string whole = read_file(file);
  for (std::size_t cut = 1; cut < whole.size(); cut += 7) {
    write_file(file, whole + whole.substr(0, cut));

    auto opened = open();

    EXPECT_EQ(opened.entries.size(), 1U);
    EXPECT_TRUE(opened.remarks.empty());
    append(*opened.journal, act(2));
    opened.journal.reset();
    EXPECT_EQ(open().entries.size(), 2U) << "the half line must not spoil the next";
    write_file(file, whole);
  }
}

TEST_F(JournalFile, ADamagedLineIsSkippedAndKeptAside) {
  {
    auto opened = open();
    for (const std::uint64_t id : {1U, 2U, 3U}) append(*opened.journal, act(id));
  }
  std::string bytes = read_file(file);
  bytes[bytes.find("login", bytes.find('\n'))] = 'X';
  write_file(file, bytes);

  auto opened = open();

  EXPECT_EQ(opened.entries.size(), 2U);
  ASSERT_EQ(opened.remarks.size(), 1U);
  EXPECT_NE(opened.remarks[0].find("line 2: its checksum is wrong"), std::string::npos);
  EXPECT_EQ(read_file(file + ".bad"), bytes);
}

TEST_F(JournalFile, ManyEndedActsAreCompactedAway) {
  auto opened = open();
  EXPECT_FALSE(opened.journal->wants_rewrite(1));
  std::vector<JournalEntry> many(Journal::kLinesBeforeCompaction + 2, act(1)[0]);
  append(*opened.journal, many);
  EXPECT_TRUE(opened.journal->wants_rewrite(1));

  opened.journal->rewrite(act(9));
  append(*opened.journal, act(10));

  EXPECT_FALSE(opened.journal->wants_rewrite(1));
  opened.journal.reset();
  const auto entries = open().entries;
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(std::get<Act>(entries[0]).id, 9U);
}

TEST_F(JournalFile, AFileThatIsRemovedUnderItComesBackWithTheNextAct) {
  {
    auto opened = open();
    append(*opened.journal, act(1));
    ASSERT_EQ(::unlink(file.c_str()), 0);
    append(*opened.journal, act(2));
    EXPECT_TRUE(saved);
    append(*opened.journal, act(3));
  }

  EXPECT_EQ(open().entries.size(), 3U);
}

TEST_F(JournalFile, WhatLiesInItsPlaceIsKeptAside) {
  {
    auto opened = open();
    append(*opened.journal, act(1));
    ASSERT_EQ(::unlink(file.c_str()), 0);
    write_file(file, "somebody's\n");
    append(*opened.journal, act(2));
  }

  EXPECT_EQ(open().entries.size(), 2U);
  EXPECT_EQ(read_file(file + ".bad"), "somebody's\n");
}

TEST_F(JournalFile, ADirectoryThatIsGoneMeansNotSaved) {
  auto opened = open();
  append(*opened.journal, act(1));
  std::filesystem::remove_all(place.path() + "/state");

  append(*opened.journal, act(2));

  EXPECT_FALSE(saved);
}

TEST_F(JournalFile, TwoDaemonsNeverWriteOneJournal) {
  auto first = open();
  auto second = open();

  ASSERT_EQ(second.remarks.size(), 1U);
  EXPECT_NE(second.remarks[0].find("another daemon writes it"), std::string::npos);
  append(*second.journal, act(1));
  EXPECT_FALSE(saved);
}

TEST_F(JournalFile, APlaceThatCannotBeHadIsSaidAndOffIsQuiet) {
  write_file(place.path() + "/file", "");
  auto opened = Journal::open(loop, {.setting = place.path() + "/file/below"});
  EXPECT_EQ(opened.remarks.size(), 1U);

  auto off = Journal::open(loop, {.setting = "off"});
  EXPECT_TRUE(off.remarks.empty());
  append(*off.journal, act(1));
  EXPECT_FALSE(saved);
}

}  // namespace
}  // namespace cutwater::server
