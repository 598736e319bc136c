// SPDX-License-Identifier: Apache-2.0
// Golden bytes of every message, in both directions, with a tail and in the widest forms.
#include "wire/message.hpp"

#include <gtest/gtest.h>

#include <set>

#include "unit/wire/both_ways.hpp"
#include "wire/enter_message.hpp"
#include "wire/watch_message.hpp"

namespace cutwater::wire {
namespace {

Hello published_hello() {
  Hello hello;
  hello.features = kFeatureRemember;
  hello.client_name = "billing-worker";
  hello.want = Want::Map;
  hello.layout = {.major = 1, .minor = 0, .bits = 0};
  hello.clock_ns = 5'000'000'000;
  hello.time_ns = 4026531834;
  return hello;
}

TEST(GoldenMessages, Hello) {
  Hello all;
  all.max_version = 200;
  all.features = 7;
  all.client_name = "größe";
  all.want = Want::Row;
  all.layout = {.major = 65535, .minor = 300, .bits = kNever};
  all.segment = sequence(0, 16);
  all.clock_ns = kNever;
  all.time_ns = 1;
  all.session = sequence(16, 16);
  all.auth = "hmac";
  all.identity = "edge.1";
  all.nonce = sequence(32, 32);

  EXPECT_EQ(golden("hello").size(), 16u + 54u);
  both_ways("hello", 1, published_hello());
  both_ways("hello_all", 4294967295, all);
}

TEST(GoldenMessages, Welcome) {
  Welcome ask;
  ask.instance = "main";
  ask.daemon = sequence(1, 16);
  ask.session = sequence(17, 16);
  ask.rights = kRightUse;
  ask.why = "uid 1001 is not in access.map";
  ask.generation = 1;
  ask.clock_ns = 7'000'000'000;
  Welcome map = ask;
  map.features = kFeatureRemember | kFeatureSteppedClock;
  map.resumed = true;
  map.rights = kRightUse | kRightLook | kRightSteer;
  map.mode = Want::Map;
  map.why = "";
  map.descriptors = {"rules", "state", "stats"};
  map.row_index = 70000;
  map.row_generation = 300;
  map.generation = kNever;
  map.clock_ns = 255;
  map.credit_items = 1;
  map.credit_bytes = 4294967295;
  map.max_frame = kMaxFrameLargest;
  map.proof = sequence(0, 32);

  both_ways("welcome_ask", 1, ask);
  both_ways("welcome_map", 2, map);
}

TEST(GoldenMessages, PingPongByeGoawayBusy) {
  both_ways("ping", 3, Ping{kNever});
  both_ways("pong", 3, Pong{kNever, 65536});
  both_ways("bye", 4, Bye{});
  both_ways("bye_ok", 4, ByeOk{});
  both_ways("goaway", 0, Goaway{GoawayReason::Shutdown, 10'000'000'000, "shutting down"});
  both_ways("busy", 9, Busy{1'000'000'000});
}

TEST(GoldenMessages, Error) {
  EXPECT_EQ(golden("error_field").size(), 16u + 55u);
  both_ways("error_field", 8,
            ErrorMessage{ErrorCode::InvalidArgument, "items[0].cost",
                         "cost must be 0 .. 1000000000, got -1", false});
}

TEST(GoldenMessages, Read) {
  Read read;
  read.what = "limits";
  Read all;
  all.what = "limit";
  all.name = "api-per-user";
  all.key = std::string("ali\0ce\xff", 7);
  all.cursor = sequence(0, 40);
  all.max_rows = 1;
  all.options = Value::map({{"sort", "name"},
                            {"deep", Value::array({1, -1, true, Value(), Value::binary("x")})}});

  both_ways("read", 5, read);
  both_ways("read_all", 6, all);
}

TEST(GoldenMessages, ReadAnswer) {
  ReadAnswer answer;
  answer.rows = {
      Value::map({{"name", "api-per-user"}, {"burst", 10}, {"rate", 10}, {"note", ""}}),
      Value::map({{"name", "b"},
                  {"debt", -129},
                  {"windows", Value::Array{Value::array({1, 2}), Value(Value::Array{})}},
                  {"key", Value::binary(std::string(1, '\0'))},
                  {"on", false}})};
  answer.cursor = "next";

  both_ways("read_answer", 6, answer);
  both_ways("read_answer_empty", 5, ReadAnswer{});
}

TEST(GoldenMessages, Steer) {
  Steer reload;
  reload.verb = kVerbConfigReload;
  reload.arguments = Value::map({{"dry", true}});
  Steer reset;
  reset.verb = kVerbLimitReset;
  reset.name = "api-per-user";
  reset.key = "alice";
  reset.note = "ticket 4711";
  Steer step;
  step.verb = kVerbClockStep;
  step.arguments = Value::map({{"to_ns", std::uint64_t{86'400'000'000'000}}});

  both_ways("steer_reload", 7, reload);
  both_ways("steer_reset", 8, reset);
  both_ways("steer_step", 9, step);
}

TEST(GoldenMessages, SteerAnswer) {
  both_ways("steer_answer", 7, SteerAnswer{kSteerDone, "reloaded", 12});
  both_ways("steer_answer_act", 7,
            SteerAnswer{kSteerDone, "fraud FORCED_OPEN", 12, 7, kSteerSavePending});
  both_ways("steer_answer_invalid", 7,
            SteerAnswer{kSteerInvalid, "4:7: unknown key `brust`, did you mean `burst`?", 11});
}

TEST(GoldenMessages, AnUnknownTailIsIgnored) {
  takes_a_tail<Hello>("hello_all");
  takes_a_tail<Welcome>("welcome_map");
  takes_a_tail<Ping>("ping");
  takes_a_tail<Pong>("pong");
  takes_a_tail<Bye>("bye");
  takes_a_tail<ByeOk>("bye_ok");
  takes_a_tail<Goaway>("goaway");
  takes_a_tail<Busy>("busy");
  takes_a_tail<Read>("read_all");
  takes_a_tail<ReadAnswer>("read_answer");
  takes_a_tail<Steer>("steer_reset");
  takes_a_tail<SteerAnswer>("steer_answer_act");
}

// Every error of the daemon's end, as bytes. server_errors_test.cpp makes each of them happen.
TEST(GoldenMessages, EveryErrorReadsAndWritesTheSame) {
  int errors = 0;
  for (const auto& name : golden_names()) {
    if (!name.starts_with("error_")) continue;
    const std::string bytes = golden(name);
    const auto header = decode_header(bytes, kVersion, kMaxFrameBeforeWelcome);
    ASSERT_TRUE(header.ok()) << name;
    const auto error = decode<ErrorMessage>(golden_payload(name));
    ASSERT_TRUE(error.ok()) << name;
    both_ways(name, header->request, *error);
    takes_a_tail<ErrorMessage>(name);
    ++errors;
  }

  EXPECT_EQ(errors, 51);
}

TEST(Messages, EveryFieldOfARequestIsMissedByItsName) {
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"hello_all", {"min_version", "max_version", "features", "client_name", "want", "layout",
                     "segment", "clock_ns", "time_ns", "session", "auth", "identity", "nonce"}},
      {"steer_reset", {"verb", "name", "key", "arguments", "for_ns", "note"}}};

  for (const auto& [name, fields] : cases) {
    const Value whole = decode_value(golden_payload(name)).value();
    for (std::size_t kept = 0; kept < fields.size(); ++kept) {
      const Value::Array cut(whole.as_array()->begin(), whole.as_array()->begin() + kept);
      const auto payload = encode_value(cut).value();
      const Fault fault = name == "hello_all" ? decode<Hello>(payload).fault()
                                              : decode<Steer>(payload).fault();

      EXPECT_EQ(fault.code, ErrorCode::InvalidArgument);
      EXPECT_EQ(fault.field, fields[kept]);
    }
  }
}

TEST(Messages, ALeftOutTailTakesItsDefault) {
  const auto read = decode<Read>(golden_payload("read"));

  EXPECT_EQ(read->options, Value(Value::Map{}));
}

TEST(Messages, AKeyGivenAsAStringIsReadAsItsBytes) {
  Value::Array fields{"limit", Value(), "alice", Value::binary(""), 1};

  EXPECT_EQ(decode<Read>(encode_value(fields).value())->key, "alice");
}

TEST(Messages, NamesHaveTheirForm) {
  EXPECT_TRUE(is_name("a"));
  EXPECT_TRUE(is_name("0.x_y:z-"));
  EXPECT_TRUE(is_name(std::string(63, 'n')));
  for (const std::string& wrong :
       {std::string(), std::string("-a"), std::string("a b"), std::string("ä"),
        std::string("a\0b", 3), std::string("bank-*"), std::string(64, 'n')}) {
    EXPECT_FALSE(is_name(wrong)) << wrong;
  }
}

TEST(Messages, APatternIsNamedWhereABreakerIsAskedLookedAtOrSteered) {
  Read read;
  read.what = "breaker";
  Steer steer;
  steer.verb = "breaker.reset";
  for (const std::string& name : {std::string("bank-*"), std::string("*-eu"), std::string("a*b"),
                                  "*" + std::string(62, 'n')}) {
    EXPECT_TRUE(is_pattern_name(name)) << name;
    steer.name = read.name = name;
    EXPECT_EQ(decode<Read>(encode(read).value())->name, name);
    EXPECT_EQ(decode<Steer>(encode(steer).value())->name, name);
  }
  for (const std::string& name : {std::string("*"), std::string("a*b*"), std::string("-*"),
                                  std::string("a *"), "*" + std::string(63, 'n')}) {
    EXPECT_FALSE(is_pattern_name(name)) << name;
    steer.name = read.name = name;
    EXPECT_FALSE(encode(read)) << name;
    EXPECT_FALSE(encode(steer)) << name;
    const Value::Array fields{"breaker", name, Value(), Value::binary(""), 1};
    EXPECT_FALSE(decode<Read>(encode_value(fields).value())) << name;
  }
  Event event;
  event.events.resize(1);
  for (const char* name : {"", "bank", "bank-*"}) {
    event.events[0].name = name;
    EXPECT_EQ(decode<Event>(encode(event).value())->events[0].name, name);
  }
  event.events[0].name = "bank-*-*";
  EXPECT_FALSE(encode(event));
  EXPECT_FALSE(is_pattern_name("plain"));
  Enter enter;
  enter.breaker = enter.bulkhead = "bank-*";
  EXPECT_EQ(decode<Enter>(encode(enter).value())->breaker, "bank-*");
  EXPECT_EQ(decode<Enter>(encode(enter).value())->bulkhead, "bank-*");
  enter.breaker = "bank-*-*";
  EXPECT_FALSE(encode(enter));
  Resolve resolve;
  resolve.names = {{NameKind::Breaker, "bank-*"}};
  EXPECT_EQ(decode<Resolve>(encode(resolve).value())->names[0].name, "bank-*");
}

TEST(Messages, WritingRefusesWhatReadingWouldRefuse) {
  Hello hello = published_hello();
  hello.segment = "short";
  Read read;
  read.what = "";
  Steer steer;
  steer.verb = "x";
  steer.arguments = "no map";
  ReadAnswer answer;
  answer.rows = {Value(1)};
  Welcome welcome = plain_welcome();
  welcome.mode = Want::Map;

  EXPECT_EQ(encode(hello).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(encode(read).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(encode(steer).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(encode(answer).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(encode(welcome).error().code(), Errc::InvalidArgument);
  EXPECT_NE(encode(welcome).error().text().find("descriptors"), std::string::npos);
}

TEST(Messages, UnknownNumbersOfNewerDaemonsAreKept) {
  EXPECT_EQ(static_cast<int>(decode<ErrorMessage>(from_hex("94 cd 03 e7 a0 a0 c2"))->code), 999);
  EXPECT_EQ(static_cast<int>(decode<Goaway>(from_hex("93 63 00 a0"))->reason), 99);
}

}  // namespace
}  // namespace cutwater::wire
