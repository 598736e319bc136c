// SPDX-License-Identifier: Apache-2.0
#include "wire/value.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "unit/wire/golden.hpp"

namespace cutwater::wire {
namespace {

Value decoded(std::string_view hex) { return decode_value(from_hex(hex)).value(); }

ErrorCode code_of(std::string_view bytes) {
  const auto value = decode_value(bytes);
  return value ? ErrorCode{0} : value.fault().code;
}

std::string nested(std::size_t arrays, std::string_view inner) {
  return std::string(arrays, '\x91') + std::string(inner);
}

/// A value nested `arrays` deep.
Value nest(std::size_t arrays) {
  Value value = 1;
  for (std::size_t i = 0; i < arrays; ++i) value = Value::array({value});
  return value;
}

TEST(Value, WritesEveryIntegerInItsShortestForm) {
  const std::pair<Value, std::string> cases[] = {
      {0, "00 "}, {127, "7f "}, {128, "cc 80 "}, {255, "cc ff "}, {256, "cd 01 00 "},
      {65535, "cd ff ff "}, {65536, "ce 00 01 00 00 "}, {4294967295u, "ce ff ff ff ff "},
      {4294967296u, "cf 00 00 00 01 00 00 00 00 "},
      {std::numeric_limits<std::uint64_t>::max(), "cf ff ff ff ff ff ff ff ff "},
      {-1, "ff "}, {-32, "e0 "}, {-33, "d0 df "}, {-128, "d0 80 "}, {-129, "d1 ff 7f "},
      {-32769, "d2 ff ff 7f ff "},
      {std::numeric_limits<std::int64_t>::min(), "d3 80 00 00 00 00 00 00 00 "}};

  for (const auto& [value, hex] : cases) {
    EXPECT_EQ(to_hex(encode_value(value).value()), hex);
    EXPECT_EQ(decoded(hex), value);
    EXPECT_EQ(decode_value(widest(value)).value(), value) << hex;
    EXPECT_EQ(encoded_size(value), from_hex(hex).size());
  }
}

TEST(Value, ReadsAPositiveNumberInASignedForm) {
  EXPECT_EQ(decoded("d0 05"), Value(5));
  EXPECT_EQ(decoded("d3 00 00 00 00 00 00 00 07"), Value(7));
}

TEST(Value, GivesOnlyWhatItHolds) {
  EXPECT_EQ(Value(7).as_signed(), 7);
  EXPECT_EQ(Value(-7).as_unsigned(), std::nullopt);
  EXPECT_EQ(Value(std::numeric_limits<std::uint64_t>::max()).as_signed(), std::nullopt);
  EXPECT_EQ(Value("x").as_binary(), nullptr);
  EXPECT_EQ(Value::binary("x").as_string(), nullptr);
  EXPECT_EQ(Value(true).as_bool(), true);
  EXPECT_EQ(Value(1).as_bool(), std::nullopt);
  EXPECT_TRUE(Value().is_nil());
}

TEST(Value, SetsAndFindsEntries) {
  Value row;
  row.set("name", "a");
  row.set("burst", 10);
  row.set("name", "b");

  EXPECT_EQ(row, Value::map({{"name", "b"}, {"burst", 10}}));
  EXPECT_EQ(*row.find("burst"), Value(10));
  EXPECT_EQ(row.find("rate"), nullptr);
}

// covers: C119 (decoder alone)
TEST(Value, AcceptsDepth8AndRefusesDepth9) {
  EXPECT_EQ(code_of(nested(7, "\x90")), ErrorCode{0});
  EXPECT_EQ(code_of(nested(8, "\xc0")), ErrorCode{0});
  EXPECT_EQ(code_of(nested(8, "\x90")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(nested(8, "\x80")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(nested(9, "\xc0")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(nested(10000, "")), ErrorCode::BadFrame);
  std::string maps;
  for (int i = 0; i < 5000; ++i) maps += "\x81\xa1\x61";
  EXPECT_EQ(code_of(maps), ErrorCode::BadFrame);
  std::string eight_maps;
  for (int i = 0; i < 8; ++i) eight_maps += "\x81\xa1\x61";
  EXPECT_EQ(code_of(eight_maps + "\x01"), ErrorCode{0});
}

// covers: C119 (writer and reader agree)
TEST(Value, WritesNoDeeperThanItReads) {
  EXPECT_EQ(decode_value(encode_value(nest(8)).value()).value(), nest(8));
  EXPECT_EQ(encode_value(nest(9)).error().code(), Errc::InvalidArgument);
}

TEST(Value, AcceptsAnArrayOf1024AndRefuses1025) {
  const Value::Array most(kMaxArray, Value());
  const Value::Array over(kMaxArray + 1, Value());

  EXPECT_EQ(decode_value(encode_value(most).value()).value(), Value(most));
  EXPECT_FALSE(encode_value(over).ok());
  EXPECT_EQ(code_of(from_hex("dc 04 01") + std::string(1025, '\xc0')), ErrorCode::BadFrame);
}

TEST(Value, AcceptsAMapOf64AndRefuses65) {
  Value most;
  for (int i = 0; i < 64; ++i) most.set("k" + std::to_string(i), i);
  Value over = most;
  over.set("one more", 1);

  EXPECT_EQ(decode_value(encode_value(most).value()).value(), most);
  EXPECT_FALSE(encode_value(over).ok());
  EXPECT_EQ(code_of(widest(over)), ErrorCode::BadFrame);
}

TEST(Value, RefusesWhatIsNotExactlyOneValue) {
  EXPECT_EQ(code_of(""), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(from_hex("c1")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(from_hex("91")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(from_hex("a3 61 62")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(from_hex("01 02")), ErrorCode::BadFrame);
  EXPECT_EQ(code_of(from_hex("90 c0")), ErrorCode::BadFrame);
}

TEST(Value, RefusesEveryExtType) {
  for (const char* hex : {"d4 01 00", "d5 01 00 00", "d6 ff 00 00 00 00", "c7 00 01",
                          "c9 ff ff ff ff 01", "d7 ff 00 00 00 00 00 00 00 00"}) {
    EXPECT_EQ(code_of(from_hex(hex)), ErrorCode::BadFrame) << hex;
  }
}

TEST(Value, KeepsThePlaceOfAFloatAndOfOddMaps) {
  const auto of_float = decoded("92 01 81 a1 61 cb 7f f8 00 00 00 00 00 00").find_foreign();
  const auto of_key = decoded("91 81 05 01").find_foreign();
  const auto of_twice = decoded("82 a1 61 01 a1 61 02").find_foreign();

  ASSERT_TRUE(of_float && of_key && of_twice);
  EXPECT_EQ(of_float->path, "[1].a");
  EXPECT_EQ(of_float->what, "a float");
  EXPECT_EQ(of_key->path, "[0]");
  EXPECT_EQ(of_twice->path, "");
  EXPECT_FALSE(decoded("92 01 81 a1 61 02").find_foreign());
  EXPECT_FALSE(encode_value(Value::foreign("a float")).ok());
}

TEST(Value, WritesNoKeyTwice) {
  const Value::Map twice{{"a", 1}, {"a", 2}};

  EXPECT_FALSE(encode_value(twice).ok());
}

Value random_value(std::mt19937_64& chance, int depth) {
  const auto pick = chance() % (depth > 0 ? 8 : 6);
  switch (pick) {
    case 0: return {};
    case 1: return chance() % 2 == 0;
    case 2: return chance() >> (chance() % 64);
    case 3: return static_cast<std::int64_t>(chance()) >> (chance() % 64);
    case 4: return std::string(chance() % 400 >> (chance() % 9), 's');
    case 5: return Value::binary(std::string(chance() % 400 >> (chance() % 9), '\xfe'));
    case 6: {
      Value::Array elements(chance() % 20);
      for (auto& element : elements) element = random_value(chance, depth - 1);
      return elements;
    }
    default: {
      Value map = Value::Map{};
      for (auto n = chance() % 20; n > 0; --n) {
        map.set(std::string(n * 2, 'k'), random_value(chance, depth - 1));
      }
      return map;
    }
  }
}

TEST(Value, ReadsBackWhateverItWritesAndKnowsItsSize) {
  std::mt19937_64 chance(42);

  for (int i = 0; i < 20000; ++i) {
    const Value value = random_value(chance, 3);
    const auto bytes = encode_value(value).value();

    ASSERT_EQ(decode_value(bytes).value(), value);
    ASSERT_EQ(decode_value(widest(value)).value(), value);
    ASSERT_EQ(encoded_size(value), bytes.size());
  }
}

}  // namespace
}  // namespace cutwater::wire
