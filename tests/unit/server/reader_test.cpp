// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <gtest/gtest.h>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

class ReaderTest : public testing::Test {
 protected:
  ReaderTest() {
    auto loaded = config::load_text(R"(
capacity: { keys: 1024, limits: 64, processes: 16, stripes: 2, events: 1024 }
limits:
  api: { rate: 10/s, burst: 10, note: "for all" }
  slow: { rate: 1/m, burst: 2, initial: empty }
breakers:
  "dep-*": { max-instances: 20 }
bulkheads:
  "gate-*": { max-instances: 5, max-concurrent-calls: 1 }
)", "test.yaml");
    running_.config = std::move(*loaded.config);
    running_.config.instance.memory_directory = place_.memory();
    std::vector<std::string> remarks;
    memory_ = Memory::open(running_.config, {.stepped = true, .runtime_directory = {},
                                             .xdg_runtime_dir = {}}, remarks).value();
    reader_ = std::make_unique<Reader>(
        *memory_, running_,
        ReaderFacts{.fill = [] { return rows::TableFill{}; },
                    .add_status = [](wire::Value& row) { row.set("connections", 7); },
                    .add_clients = [](rows::Rows&) {}});
  }

  std::variant<wire::ReadAnswer, wire::Fault> ask(wire::Read asked, std::size_t bytes = 65536) {
    return reader_->answer(asked, bytes);
  }
  std::vector<wire::Value> rows(std::string what) {
    wire::Read asked;
    asked.what = std::move(what);
    auto answer = ask(std::move(asked));
    EXPECT_TRUE(std::holds_alternative<wire::ReadAnswer>(answer));
    return std::get<wire::ReadAnswer>(answer).rows;
  }
  static std::string text(const wire::Value& row, const char* key) {
    const wire::Value* found = row.find(key);
    return found != nullptr && found->as_string() != nullptr ? *found->as_string() : "(none)";
  }

  test::ScratchPlace place_;
  Running running_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(ReaderTest, StatusNamesInstanceMemoryAndConfiguration) {
  const auto all = rows("status");

  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(text(all[0], "instance"), "main");
  EXPECT_EQ(text(all[0], "clock"), "stepped");
  EXPECT_EQ(text(all[0], "memory_directory"), place_.memory());
  EXPECT_EQ(all[0].find("limits")->as_unsigned(), 2U);
  EXPECT_EQ(all[0].find("connections")->as_unsigned(), 7U);
  EXPECT_EQ(text(all[0], "config_hash").size(), 16U);
}

TEST_F(ReaderTest, LimitsCarryWhatTheImageDoesNotHold) {
  const auto all = rows("limits");

  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(text(all[0], "limit"), "api");
  EXPECT_EQ(text(all[0], "note"), "for all");
  EXPECT_EQ(text(all[1], "initial"), "empty");
}

TEST_F(ReaderTest, ALimitWithAKeySaysWhatItWouldAnswerAndWritesNothing) {
  wire::Read asked;
  asked.what = "limit";
  asked.name = "api";
  asked.key = "alice";
  asked.options.set("cost", 11);
  const std::string before = test::read_file(place_.memory() + "/state");

  auto answer = ask(asked);

  const auto& row = std::get<wire::ReadAnswer>(answer).rows.at(0);
  EXPECT_EQ(text(*row.find("answer"), "reason"), "never");
  EXPECT_EQ(test::read_file(place_.memory() + "/state"), before);
}

TEST_F(ReaderTest, UnknownLimitsNameTheNearest) {
  wire::Read asked;
  asked.what = "limit";
  asked.name = "apj";

  auto answer = ask(asked);

  ASSERT_TRUE(std::holds_alternative<wire::Fault>(answer));
  EXPECT_NE(std::get<wire::Fault>(answer).text.find("'api'"), std::string::npos);
}

TEST_F(ReaderTest, RefusesWhatItDoesNotKnow) {
  wire::Read asked;
  asked.what = "weather";
  EXPECT_EQ(std::get<wire::Fault>(ask(asked)).field, "what");
  asked.what = "limits";
  asked.cursor = "nonsense";
  EXPECT_EQ(std::get<wire::Fault>(ask(asked)).field, "cursor");
  asked = {};
  asked.what = "limit";
  EXPECT_EQ(std::get<wire::Fault>(ask(asked)).field, "name");
  asked.name = "api";
  asked.key = "k";
  asked.options.set("cost", -1);
  EXPECT_EQ(std::get<wire::Fault>(ask(asked)).field, "options.cost");
}

TEST_F(ReaderTest, PagesByRowsAndByBytesAndLeavesNothingOut) {
  const std::size_t all = rows("config").size();
  for (const std::size_t bytes : {std::size_t{400}, std::size_t{65536}}) {
    wire::Read asked;
    asked.what = "config";
    asked.max_rows = 3;
    std::size_t seen = 0, pages = 0;
    do {
      auto page = std::get<wire::ReadAnswer>(ask(asked, bytes));
      ASSERT_LE(page.rows.size(), 3U);
      ASSERT_FALSE(page.rows.empty());
      std::size_t size = 0;
      for (const wire::Value& row : page.rows) size += wire::encoded_size(row);
      ASSERT_LE(size, bytes);
      seen += page.rows.size();
      asked.cursor = page.cursor;
      ASSERT_LT(++pages, 1000U);
    } while (!asked.cursor.empty());
    EXPECT_EQ(seen, all);
  }
}

TEST_F(ReaderTest, ConfigSaysWhereEachValueCameFrom) {
  bool found = false;
  for (const wire::Value& row : rows("config")) {
    if (text(row, "path") != "limits.api.rate") continue;
    found = true;
    EXPECT_EQ(text(row, "value"), "10/s");
    EXPECT_EQ(text(row, "origin").rfind("test.yaml:4:", 0), 0U);
  }
  EXPECT_TRUE(found);
}

TEST_F(ReaderTest, EventsAreFollowedByNumber) {
  for (int i = 0; i < 5; ++i) memory_->note(shm::EventKind::LimitReset, 0, "api");
  wire::Read asked;
  asked.what = "events";
  asked.max_rows = 2;
  std::uint64_t next = 0;
  std::size_t seen = 0;
  while (true) {
    asked.cursor = std::to_string(next);
    const auto page = std::get<wire::ReadAnswer>(ask(asked));
    for (const wire::Value& row : page.rows) {
      EXPECT_EQ(row.find("number")->as_unsigned(), next);
      ++next;
      ++seen;
    }
    if (page.cursor.empty()) break;
    EXPECT_EQ(page.cursor, std::to_string(next));
  }
  EXPECT_GE(seen, 5U);
}

TEST_F(ReaderTest, ManyBreakersAreToldInPagesWithNoneTwiceThoughNamesCome) {
  std::vector<std::string> made, told;
  for (char c = 'b'; c < 'l'; ++c) made.push_back(std::string("dep-") + c);
  for (const std::string& name : made) shm::resolve_breaker(memory_->view(), name, {});
  wire::Read asked;
  asked.what = "breakers";
  asked.max_rows = 4;
  do {
    const auto answer = std::get<wire::ReadAnswer>(ask(asked));
    EXPECT_LE(answer.rows.size(), 4U);
    for (const wire::Value& row : answer.rows) told.push_back(text(row, "breaker"));
    asked.cursor = answer.cursor;
    shm::resolve_breaker(memory_->view(), "dep-a", {});   // before all that were told
  } while (!asked.cursor.empty());

  made.insert(made.begin(), "dep-*");
  EXPECT_EQ(told, made);
  EXPECT_EQ(rows("breakers").size(), made.size() + 1);
}

TEST_F(ReaderTest, OfWhatIsWellNothingIsToldToWhoAsksForTheRest) {
  const shm::View& view = memory_->view();
  for (const char* name : {"dep-a", "dep-b"}) shm::resolve_breaker(view, name, {});
  const shm::BreakerRef forced = shm::find_breaker(view, "dep-b");
  ASSERT_EQ(shm::steer_breaker(view, forced, shm::Steer::ForceOpen, 0, 1), shm::Steered::Done);
  const auto full = shm::resolve_bulkhead(view, "gate-full", {});
  shm::resolve_bulkhead(view, "gate-empty", {});
  const auto row = memory_->rows().grant({.pid = 42, .name = "worker"}).value();
  ASSERT_TRUE(shm::enter_bulkhead(view, full.ref, {row.index, row.generation, {}}).granted);
  const auto not_well = [&](const char* what) {
    wire::Read asked;
    asked.what = what;
    asked.options.set("not_well", true);
    return std::get<wire::ReadAnswer>(ask(asked)).rows;
  };

  const auto breakers = not_well("breakers"), bulkheads = not_well("bulkheads");

  ASSERT_EQ(breakers.size(), 1U);
  EXPECT_EQ(text(breakers[0], "breaker"), "dep-b");
  ASSERT_EQ(bulkheads.size(), 1U);
  EXPECT_EQ(text(bulkheads[0], "bulkhead"), "gate-full");
  EXPECT_EQ(rows("breakers").size(), 3U);
  EXPECT_EQ(rows("bulkheads").size(), 3U);
}

}  // namespace
}  // namespace cutwater::server
