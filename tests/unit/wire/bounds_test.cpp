// SPDX-License-Identifier: Apache-2.0
// Every bound of a field: the last value inside is taken, the first one outside is refused by its
// path. (Frame, depth, array and map: frame_test.cpp, value_test.cpp. Credit: server_session_test.)
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/wire/golden.hpp"
#include "wire/message.hpp"

namespace cutwater::wire {
namespace {

std::string bytes(const Value& value) { return encode_value(value).value(); }

/// The golden payload with field `index` replaced by raw msgpack.
std::string replaced(const std::string& name, std::size_t index, const std::string& raw) {
  const Value root = decode_value(golden_payload(name)).value();
  const auto& fields = *root.as_array();
  std::string out = from_hex("dc 00");  // array 16: WELCOME has 17 fields
  out.push_back(static_cast<char>(fields.size()));
  for (std::size_t i = 0; i < fields.size(); ++i) out += i == index ? raw : bytes(fields[i]);
  return out;
}

template <class Message>
struct Field {
  std::string name;
  std::size_t index;

  void takes(const Value& value) const {
    const auto read = decode<Message>(replaced(name, index, bytes(value)));
    EXPECT_TRUE(read.ok()) << index << ": " << (read ? "" : read.fault().text);
  }
  void refuses_raw(const std::string& path, const std::string& raw) const {
    const auto read = decode<Message>(replaced(name, index, raw));
    ASSERT_FALSE(read.ok()) << path;
    EXPECT_EQ(read.fault().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(read.fault().field, path);
    EXPECT_FALSE(read.fault().text.empty());
  }
  void refuses(const std::string& path, const Value& value) const {
    refuses_raw(path, bytes(value));
  }
};

TEST(Bounds, Hello) {
  const auto field = [](std::size_t index) { return Field<Hello>{"hello", index}; };
  field(0).refuses("min_version", 0);
  field(0).refuses("max_version", 2);  // now above max_version
  field(0).refuses("min_version", 256);
  field(1).takes(255);
  field(1).refuses("max_version", 256);
  field(2).takes(kNever);
  field(3).takes(std::string(kMaxClientName, 'c'));
  field(3).refuses("client_name", Value(std::string(kMaxClientName + 1, 'c')));
  field(3).refuses("client_name", Value("\xff"));
  field(4).takes(3);
  field(4).refuses("want", 4);
  field(5).takes(Value::array({65535, 0, kNever, 1}));
  field(5).refuses("layout.bits", Value::array({1, 0}));
  field(5).refuses("layout.minor", Value::array({1, 65536, 0}));
  field(6).takes(Value::binary(std::string(16, 's')));
  field(6).refuses("segment", Value::binary(std::string(15, 's')));
  field(6).refuses("segment", Value::binary(std::string(17, 's')));
  field(9).refuses("session", Value::binary("s"));
  field(10).takes("mtls");
  field(10).refuses("auth", Value("none"));
  field(11).takes(std::string(63, 'i'));
  field(11).refuses("identity", Value(std::string(64, 'i')));
  field(12).takes(Value::binary(std::string(32, 'n')));
  field(12).refuses("nonce", Value::binary(std::string(31, 'n')));
}

TEST(Bounds, Welcome) {
  const auto field = [](std::size_t index) { return Field<Welcome>{"welcome_ask", index}; };
  field(2).refuses("instance", Value("no name"));
  field(3).refuses("daemon", Value::binary(""));
  field(7).refuses("mode", 4);
  field(9).refuses("descriptors", Value::array({"rules"}));
  field(10).refuses("row.generation", Value::array({0, 4294967296u}));
  field(13).refuses("credit_items", 0);
  field(14).refuses("credit_bytes", 0);
  field(15).takes(4096);
  field(15).refuses("max_frame", 4095);
  field(15).takes(1048576);
  field(15).refuses("max_frame", 1048577);
  field(16).refuses("proof", Value::binary("p"));
}

TEST(Bounds, Read) {
  const auto field = [](std::size_t index) { return Field<Read>{"read_all", index}; };
  field(0).takes(std::string(63, 'w'));
  field(0).refuses("what", Value(std::string(64, 'w')));
  field(1).takes(Value());
  field(1).takes("bank-*");
  field(1).refuses("name", Value("bank-*-*"));
  field(2).takes(Value::binary(""));
  field(2).takes(Value::binary(std::string(kMaxKey, 'k')));
  field(2).refuses("key", Value::binary(std::string(kMaxKey + 1, 'k')));
  field(3).takes(Value::binary(std::string(kMaxCursor, 'c')));
  field(3).refuses("cursor", Value::binary(std::string(kMaxCursor + 1, 'c')));
  field(4).takes(1000);
  field(4).refuses("max_rows", 1001);
  field(4).refuses("max_rows", 0);
  field(5).refuses("options", Value());
  field(5).refuses_raw("options.a[1]", from_hex("81 a1 61 92 01 ca 3f c0 00 00"));
}

TEST(Bounds, Steer) {
  const auto field = [](std::size_t index) { return Field<Steer>{"steer_reset", index}; };
  field(0).refuses("verb", Value(""));
  field(1).takes("bank-*");
  field(1).refuses("name", Value("*"));
  field(2).takes(Value::binary(std::string(kMaxKey, 'k')));
  field(2).refuses("key", Value::binary(std::string(kMaxKey + 1, 'k')));
  field(4).takes(kNever);
  field(5).takes(std::string(kMaxNote, 'n'));
  field(5).refuses("note", Value(std::string(kMaxNote + 1, 'n')));
  field(3).refuses_raw("arguments", from_hex("82 a1 61 01 a1 61 02"));  // one key twice
  field(3).refuses_raw("arguments", from_hex("81 05 01"));              // a key that is no string
  field(3).refuses_raw("arguments.dry", from_hex("81 a3 64 72 79 cb 7f f8 00 00 00 00 00 00"));
}

TEST(Bounds, Answers) {
  ReadAnswer most;
  most.rows.assign(kMaxRows, Value(Value::Map{}));
  ReadAnswer over;
  over.rows.assign(kMaxRows + 1, Value(Value::Map{}));

  EXPECT_TRUE(encode(most).ok());
  EXPECT_FALSE(encode(over).ok());
  Field<ReadAnswer>{"read_answer", 0}.refuses("rows[1]", Value::array({Value(Value::Map{}), 1}));
  Field<SteerAnswer>{"steer_answer", 0}.takes(65535);
  Field<SteerAnswer>{"steer_answer", 0}.refuses("code", 65536);
  Field<SteerAnswer>{"steer_answer", 1}.takes(std::string(kMaxText, 't'));
  Field<SteerAnswer>{"steer_answer", 1}.refuses("text", Value(std::string(kMaxText + 1, 't')));
}

TEST(Bounds, TextsForPeopleAreCutAtACharacter) {
  const std::string long_text(kMaxText - 1, 'a');
  const auto answer = decode<SteerAnswer>(*encode(SteerAnswer{0, long_text + "€", 1}));
  const auto error = decode<ErrorMessage>(
      *encode(ErrorMessage{ErrorCode::Internal, std::string(300, 'f'), "\xff" + long_text, true}));

  EXPECT_EQ(answer->text, long_text);
  EXPECT_EQ(error->text.size(), kMaxErrorText);
  EXPECT_EQ(error->text.substr(0, 2), "?a");
  EXPECT_EQ(error->field.size(), kMaxField);
}

TEST(Bounds, ANumberOfTheWrongShapeIsRefusedByItsPath) {
  const Field<Read> rows{"read_all", 4};
  const std::pair<const char*, const char*> cases[] = {
      {"ff", "got -1"},
      {"00", "got 0"},
      {"cf 80 00 00 00 00 00 00 00", "got 9223372036854775808"},
      {"cf ff ff ff ff ff ff ff ff", "got 18446744073709551615"},
      {"d3 80 00 00 00 00 00 00 00", "got -9223372036854775808"},
      {"cb 3f f8 00 00 00 00 00 00", "got a float"},
      {"ca 7f c0 00 00", "got a float"},
      {"cb 7f f8 00 00 00 00 00 00", "got a float"},
      {"a1 33", "got a string of 1 bytes"},
      {"c4 01 33", "got binary of 1 bytes"},
      {"c0", "got nil"},
      {"c3", "got a bool"},
      {"90", "got an array"},
      {"80", "got a map"}};

  for (const auto& [raw, got] : cases) {
    const auto read = decode<Read>(replaced("read_all", 4, from_hex(raw)));
    rows.refuses_raw("max_rows", from_hex(raw));
    EXPECT_EQ(read.fault().text, std::string("max_rows must be 1 .. 1000, ") + got);
  }
}

TEST(Bounds, AnExtInsteadOfANumberIsNoFrame) {
  const auto read = decode<Read>(replaced("read_all", 4, from_hex("d4 01 05")));

  EXPECT_EQ(read.fault().code, ErrorCode::BadFrame);
}

TEST(Bounds, NoKeyAppearsInAFault) {
  const std::string secret(kMaxKey + 1, 'S');
  const auto read = decode<Read>(replaced("read_all", 2, bytes(Value::binary(secret))));

  EXPECT_EQ(read.fault().text.find("SSS"), std::string::npos);
}

}  // namespace
}  // namespace cutwater::wire
