// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.hpp"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cutwater {
namespace {

std::uint32_t sum_of(const std::string& text) { return crc32c(text.data(), text.size()); }

// Known sums: the catalogue's check value, and the examples of RFC 3720 B.4.
TEST(Crc32c, GivesTheKnownSums) {
  EXPECT_EQ(sum_of(""), 0U);
  EXPECT_EQ(sum_of("123456789"), 0xe3069283U);
  EXPECT_EQ(sum_of(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(sum_of(std::string(32, '\xff')), 0x62a8ab43U);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  EXPECT_EQ(sum_of(rising), 0x46dd794eU);
}

TEST(Crc32c, TablesAndInstructionAgreeForEveryLengthAndAlignment) {
  std::mt19937 random(20'260'101);
  std::vector<std::uint8_t> bytes(600);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t length = 0; length + start <= bytes.size(); length += 7) {
      const std::uint8_t* at = bytes.data() + start;
      ASSERT_EQ(crc32c(at, length, 5), crc32c_by_table(at, length, 5)) << start << ' ' << length;
    }
  }
}

TEST(Crc32c, GoesOnWhereItStopped) {
  const std::string text = "limits that every process on a host shares";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::uint32_t first = crc32c(text.data(), cut);
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, first), sum_of(text));
  }
}

TEST(Crc32c, SeesEverySingleFlippedBit) {
  std::vector<std::uint8_t> bytes(64, 0x5a);
  const std::uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    EXPECT_NE(crc32c(bytes.data(), bytes.size()), whole);
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
  }
}

}  // namespace
}  // namespace cutwater
