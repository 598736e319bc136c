// SPDX-License-Identifier: Apache-2.0
// READ `keys`: which keys of a limit are in debt, page by page.
#include <gtest/gtest.h>

#include <set>

#include "reader.hpp"
#include "rows/key_rows.hpp"
#include "shm/limit/admit.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

class KeysReader : public testing::Test {
 protected:
  void open(const std::string& capacity, bool remember = true) {
    auto loaded = config::load_text(
        "instance: { remember-keys: " + std::string(remember ? "true" : "false") + " }\n" +
            "capacity: { " + capacity + ", limits: 8, processes: 16, stripes: 2, events: 1024 }\n" +
            R"(
limits:
  api: { rate: 10/h, burst: 10, show-keys: shown, keys: { vip: { rate: 60/h, burst: 60 } } }
  two: { windows: [ { rate: 2/m, burst: 2 }, { rate: 100/d, burst: 100 } ], show-keys: shown }
  hashed: { rate: 1/h, burst: 2 }
  hidden: { rate: 1/h, burst: 2, show-keys: hidden }
)", "test.yaml");
    ASSERT_TRUE(loaded.config) << loaded.report("");
    running_.config = std::move(*loaded.config);
    running_.config.instance.memory_directory = place_.memory();
    std::vector<std::string> remarks;
    auto memory = Memory::open(running_.config, {.stepped = true, .runtime_directory = {},
                                                 .xdg_runtime_dir = {}}, remarks);
    ASSERT_TRUE(memory) << memory.error().text();
    memory_ = std::move(*memory);
    reader_ = std::make_unique<Reader>(
        *memory_, running_,
        ReaderFacts{.fill = [] { return rows::TableFill{}; },
                    .add_status = [](wire::Value&) {}, .add_clients = [](rows::Rows&) {}});
    shm::step_clock(view(), view().clock.now() + 1'000'000'000);
  }
  const shm::View& view() const { return memory_->view(); }
  void take(const char* limit, std::string_view key, std::uint64_t cost = 1) const {
    const shm::LimitHandle handle = shm::resolve(view(), limit);
    DecisionData out;
    ASSERT_EQ(shm::admit(view(), {handle.ref, shm::key_of(handle, key), cost, 0}, out),
              shm::Outcome::Answered);
  }
  struct List {
    rows::Rows rows;
    std::size_t pages = 0, empty = 0;
  };
  List list(const std::string& limit, std::uint32_t max_rows = 1000, std::size_t bytes = 65536) {
    List out;
    wire::Read asked;
    asked.what = "keys";
    asked.name = limit;
    asked.max_rows = max_rows;
    do {
      auto answer = reader_->answer(asked, bytes);
      EXPECT_TRUE(std::holds_alternative<wire::ReadAnswer>(answer));
      auto& page = std::get<wire::ReadAnswer>(answer);
      EXPECT_LE(page.rows.size(), max_rows);
      ++out.pages;
      out.empty += page.rows.empty() ? 1 : 0;
      for (wire::Value& row : page.rows) out.rows.push_back(std::move(row));
      asked.cursor = page.cursor;
    } while (!asked.cursor.empty() && out.pages < 10'000);
    return out;
  }
  static std::string key(const wire::Value& row) {
    const wire::Value& found = *row.find("key");
    return found.as_binary() != nullptr ? *found.as_binary() : *found.as_string();
  }
  static std::uint64_t number(const wire::Value& row, const char* name) {
    return *row.find(name)->as_unsigned();
  }

  test::ScratchPlace place_;
  Running running_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(KeysReader, SaysOfEachKeyInDebtWhatItsNextTokenWouldBeAnswered) {
  open("keys: 1024");
  take("api", "alice", 3);
  take("api", "bob", 10);
  take("api", "vip", 20);
  take("hashed", "carol");

  const List found = list("api");

  ASSERT_EQ(found.rows.size(), 3U);
  for (const wire::Value& row : found.rows) {
    EXPECT_TRUE(*row.find("named")->as_bool());
    EXPECT_FALSE(*row.find("cut")->as_bool());
    const bool bob = key(row) == "bob", vip = key(row) == "vip";
    EXPECT_EQ(number(row, "remaining"), bob ? 0U : vip ? 40U : 7U) << key(row);
    EXPECT_EQ(number(row, "retry_after_ns"), bob ? 360'000'000'000U : 0U) << key(row);
    const std::uint64_t full_s = bob ? 3600U : vip ? 1200U : 1080U;
    EXPECT_EQ(number(row, "reset_after_ns"), full_s * 1'000'000'000) << key(row);
  }
  shm::step_clock(view(), view().clock.now() + 1080'000'000'000);
  EXPECT_EQ(list("api").rows.size(), 2U) << "alice owes nothing any more";
}

TEST_F(KeysReader, AKeyInDebtInTwoWindowsHasTwoRowsOfOneNumber) {
  open("keys: 1024", false);
  take("two", "acme", 2);

  const List found = list("two");

  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_EQ(key(found.rows[0]), key(found.rows[1]));
  EXPECT_EQ(key(found.rows[0]).size(), 13U);
  EXPECT_FALSE(*found.rows[0].find("named")->as_bool());
  EXPECT_NE(number(found.rows[0], "window"), number(found.rows[1], "window"));
}

TEST_F(KeysReader, KeysAreShownAsTheLimitAllows) {
  open("keys: 1024");
  take("hashed", "alice");
  take("hidden", "alice");
  take("api", std::string("a\0\n", 3));

  EXPECT_EQ(key(list("hashed").rows.at(0)).front(), '#');
  EXPECT_EQ(key(list("hidden").rows.at(0)), "");
  EXPECT_FALSE(*list("hidden").rows.at(0).find("named")->as_bool());
  EXPECT_EQ(key(list("api").rows.at(0)), std::string("a\0\n", 3));
}

TEST_F(KeysReader, PagesAreBoundedByRowsByBytesAndBySlots) {
  open("keys: 100000");
  ASSERT_GT(view().slot_count, 3 * rows::kSlotsPerPage);
  std::set<std::string> asked;
  for (int i = 0; i < 200; ++i) {
    asked.insert("key-" + std::to_string(i));
    take("api", "key-" + std::to_string(i));
  }
  for (const auto& [max_rows, bytes] : {std::pair{1000U, std::size_t{65536}},
                                        std::pair{7U, std::size_t{65536}},
                                        std::pair{1000U, std::size_t{600}},
                                        std::pair{1000U, std::size_t{1}}}) {
    const List found = list("api", max_rows, bytes);
    std::set<std::string> seen;
    for (const wire::Value& row : found.rows) seen.insert(key(row));
    EXPECT_EQ(found.rows.size(), 200U);
    EXPECT_EQ(seen, asked);
  }
  const List nobody = list("two");
  EXPECT_EQ(nobody.pages, (view().slot_count + rows::kSlotsPerPage - 1) / rows::kSlotsPerPage);
  EXPECT_EQ(nobody.empty, nobody.pages);
}

TEST_F(KeysReader, WhatIsAskedWronglyIsRefusedWithItsField) {
  open("keys: 1024");
  wire::Read asked;
  asked.what = "keys";
  const auto nameless = reader_->answer(asked, 65536);
  asked.name = "ap";
  const auto unknown = reader_->answer(asked, 65536);
  asked.name = "api";
  asked.cursor = "x";
  const auto cursor = reader_->answer(asked, 65536);
  asked.cursor = "18446744073709551615";
  const auto beyond = reader_->answer(asked, 65536);

  EXPECT_EQ(std::get<wire::Fault>(nameless).field, "name");
  EXPECT_NE(std::get<wire::Fault>(unknown).text.find("did you mean 'api'?"), std::string::npos);
  EXPECT_EQ(std::get<wire::Fault>(cursor).field, "cursor");
  EXPECT_TRUE(std::get<wire::ReadAnswer>(beyond).rows.empty());
  EXPECT_EQ(std::get<wire::ReadAnswer>(beyond).cursor, "");
}

}  // namespace
}  // namespace cutwater::server
