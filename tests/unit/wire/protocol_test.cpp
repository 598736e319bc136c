// SPDX-License-Identifier: Apache-2.0
// PROTOCOL.md says what the code does: its tables are compared with the code's, word for word.
// After a change of the table: CUTWATER_WRITE_PROTOCOL=1 wire_test --gtest_filter='Protocol.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "unit/wire/golden.hpp"
#include "wire/message_table.hpp"

namespace cutwater::wire {
namespace {

constexpr std::string_view kBegin = "<!-- tables: written by protocol_tables() -->\n";
constexpr std::string_view kEnd = "<!-- end of tables -->\n";

std::string read_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Protocol, TheTablesOfTheDocumentAreThoseOfTheCode) {
  std::string document = read_file(CUTWATER_PROTOCOL);
  const auto begin = document.find(kBegin);
  const auto end = document.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const auto at = begin + kBegin.size();
  const std::string expected = "\n" + protocol_tables() + "\n";
  if (std::getenv("CUTWATER_WRITE_PROTOCOL") != nullptr) {
    document.replace(at, end - at, expected);
    std::ofstream(CUTWATER_PROTOCOL) << document;
  }

  EXPECT_EQ(read_file(CUTWATER_PROTOCOL).substr(at).substr(0, expected.size()), expected);
}

TEST(Protocol, TheDocumentNamesEveryErrorCode) {
  const std::string document = read_file(CUTWATER_PROTOCOL);

  for (int code = 1; code <= 8; ++code) {
    const std::string row = "| " + std::to_string(code) + " | `" +
                            std::string(name_of(static_cast<ErrorCode>(code))) + "` |";
    EXPECT_NE(document.find(row), std::string::npos) << row;
  }
  EXPECT_EQ(name_of(static_cast<ErrorCode>(9)), "unknown");
}

TEST(Protocol, TheDocumentNamesEveryItemErrorAndTheBoundsOfASession) {
  const std::string document = read_file(CUTWATER_PROTOCOL);

  for (int code = kFirstItemError; code <= 72; ++code) {
    const std::string word =
        std::to_string(code) + " `" + std::string(name_of(static_cast<ItemError>(code))) + "`";
    EXPECT_NE(document.find(word), std::string::npos) << word;
  }
  const auto kib = [](std::size_t bytes) { return std::to_string(bytes >> 10) + " KiB"; };
  for (const std::string& text :
       {"the last " + std::to_string(kRememberedItems) + " items",
        "at most " + kib(kRememberedBytes),
        "reading stops at " + kib(kUnsentPause), std::string("at 1 MiB, or after 2 s"),
        "At most " + std::to_string(kMaxWatches) + " per session",
        "0.." + std::to_string(kMaxCost), "bin, any 0.." + std::to_string(kMaxKey) + " bytes",
        "ticket bin 0.." + std::to_string(kMaxTicket)}) {
    EXPECT_NE(document.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(kUnsentClose, 1U << 20);
  EXPECT_EQ(ServerSettings{}.stalled_ns, 2'000'000'000U);
}

TEST(Protocol, EveryTypeStandsOnceAndEveryBuiltOneHasAGoldenFile) {
  std::set<MessageType> with_golden;
  for (const auto& name : golden_names()) {
    with_golden.insert(static_cast<MessageType>(golden(name)[3]));
  }
  std::set<MessageType> seen;
  for (const auto& row : message_table()) {
    EXPECT_TRUE(seen.insert(row.type).second) << row.name;
    EXPECT_EQ(find_message(row.type), &row);
    const bool from_daemon = (static_cast<int>(row.type) & kFromDaemon) != 0;
    EXPECT_EQ(from_daemon, row.sender != "client") << row.name;
    if (row.built) {
      EXPECT_TRUE(with_golden.contains(row.type)) << row.name;
    }
  }
  EXPECT_EQ(seen.size(), 36u);
  EXPECT_EQ(find_message(static_cast<MessageType>(0x7f)), nullptr);
}

TEST(Protocol, GoldenPayloadsHaveTheFieldsOfTheTable) {
  for (const auto& name : golden_names()) {
    const auto* row = find_message(static_cast<MessageType>(golden(name)[3]));
    if (row == nullptr || !row->built) continue;
    const Value payload = decode_value(golden_payload(name)).value();

    EXPECT_GE(payload.as_array()->size(), row->required()) << name;
    EXPECT_LE(payload.as_array()->size(), row->fields.size()) << name;
  }
}

}  // namespace
}  // namespace cutwater::wire
