// SPDX-License-Identifier: Apache-2.0
// Golden bytes of asking, entering and watching, and what their readers take.
#include <gtest/gtest.h>

#include "unit/wire/both_ways.hpp"
#include "wire/enter_message.hpp"
#include "wire/watch_message.hpp"

namespace cutwater::wire {
namespace {

Item item(std::optional<std::string> limit, std::string key, std::uint64_t cost = 1,
          std::uint8_t flags = 0) {
  return {std::move(limit), std::move(key), cost, flags};
}

DecisionAnswer decision(std::uint16_t reason, std::uint64_t remaining, std::uint64_t retry_ns,
                        std::uint64_t reset_ns) {
  DecisionAnswer out;
  out.reason = reason;
  out.remaining = remaining;
  out.retry_after_ns = retry_ns;
  out.reset_after_ns = reset_ns;
  return out;
}

TEST(GoldenAsking, AcquireAsPublished) {
  const Acquire ask{50'000'000, 0, {item("api-per-user", "alice"), item({}, "bob", 3)}};
  const AcquireAnswer answer{{decision(0, 9, 0, 100'000'000),
                              decision(1, 2, 100'000'000, 800'000'000)}};

  EXPECT_EQ(golden("acquire").size(), 16u + 37u);
  EXPECT_EQ(golden("acquire_answer").size(), 16u + 30u);
  both_ways("acquire", 7, ask);
  both_ways("acquire_answer", 7, answer);
}

TEST(GoldenAsking, AcquireWithEverything) {
  const Acquire ask{kNever, 200'000'000,
                    {item("api-per-user", "", 0),
                     item({}, std::string("\0\xff", 2), kMaxCost, kItemAfterTheFact),
                     item("tenant", "acme", 1, kItemAfterTheFact)}};
  DecisionAnswer full = decision(0, kNever, 0, 1ULL << 32);
  full.wait_ns = 300;
  full.window = 5;
  full.flags = 1023;   // those there were when its bytes were written
  full.would = 1;
  DecisionAnswer never = decision(2, 0, kNever, 65536);
  never.window = 255;
  never.flags = kAnswerHint;
  const AcquireAnswer answer{
      {full, never,
       DecisionAnswer::error(ItemError::UnknownName, "no limit `tenat`; did you mean `tenant`?"),
       DecisionAnswer::error(ItemError::KeyTooLong, "")}};

  both_ways("acquire_all", 8, ask);
  both_ways("acquire_answer_all", 8, answer);
}

TEST(GoldenAsking, WhatIsNotUsuallyTold) {
  DecisionAnswer cut = decision(0, 0, 0, 800'000'000);
  cut.charged = 3;
  DecisionAnswer stepped = decision(1, 2, 100'000'000, 800'000'000);
  stepped.charged = 0;
  stepped.clock_ns = 6'000'000'000;
  const AcquireAnswer answer{{cut, stepped}};
  Admission all;
  all.remaining = 2;
  all.clock_ns = 6'000'000'000;
  all.each = {cut, stepped};

  both_ways("acquire_answer_told", 9, answer);
  both_ways("enter_answer_told", 15, EnterAnswer{all});
}

TEST(GoldenAsking, ResolveAndPeek) {
  const Resolve resolve{{{NameKind::Limit, "api-per-user"},
                         {NameKind::Breaker, "fraudCheck"},
                         {NameKind::Bulkhead, "bank-1"},
                         {NameKind::Guard, "checkout"}}};
  ResolveAnswer resolved;
  resolved.names.resize(4);
  resolved.names[0].settings =
      Value::map({{"windows", Value::Array{Value::array({10, 1'000'000'000, 10})}},
                  {"max_wait_ns", 0},
                  {"ip_prefix", Value::array({32, 64})}});
  resolved.names[1].code = static_cast<std::uint16_t>(ItemError::UnknownName);
  resolved.names[1].nearest = {"fraudChecks", "bank-*"};
  resolved.names[2].code = static_cast<std::uint16_t>(ItemError::NoRoom);
  const Peek peek{{item("api-per-user", "alice"), item({}, "bob", 3)}};
  const PeekAnswer peeked{{decision(0, 9, 0, 100'000'000), decision(3, 0, kNever, kNever)}};

  both_ways("resolve", 9, resolve);
  both_ways("resolve_answer", 9, resolved);
  both_ways("peek", 10, peek);
  both_ways("peek_answer", 10, peeked);
}

TEST(GoldenAsking, CancelAndRefund) {
  both_ways("cancel", 11, Cancel{7});
  both_ways("cancel_answer", 11, CancelAnswer{{0, 4}});
  both_ways("refund", 12, Refund{{{7, 0, {}}, {7, 255, 3}, {4294967295, 1, kMaxCost}}});
  both_ways("refund_answer", 12, RefundAnswer{{{0, 1}, {71, 0}, {70, 0}}});
}

TEST(GoldenAsking, Enter) {
  Admission open;
  open.reason = 5;
  open.part = Part::Breaker;
  open.retry_after_ns = 15'000'000'000;
  open.state = BreakerWord::Open;
  open.epoch = 7;
  open.since_ns = 1'000'000'000;
  open.why = "failure rate 60 % of 10 calls";
  Admission all;
  all.index = 1;
  all.remaining = 8;
  all.reset_after_ns = 100'000'000;
  all.wait_ns = 300;
  all.window = 2;
  all.flags = kAnswerHolds;
  all.state = BreakerWord::HalfOpen;
  all.epoch = 1ULL << 32;
  all.ticket = sequence(0, 48);
  all.deadline_ns = 30'000'000'000;
  all.holding = 7;
  all.oldest_ns = 1'000'000;
  all.waiting = 70000;
  all.since_ns = 5;

  both_ways("enter", 13, Enter{0, 0, {}, {}, "fraudCheck"});
  both_ways("enter_all", 14,
            Enter{50'000'000, 200'000'000,
                  {item("api-per-user", "alice"), item("tenant", "acme", 2)},
                  "fraudCheck", "fraudCheck"});
  Enter apart{0, kNever, {}, "gate", "fraudCheck", 2'000'000'000, true};
  both_ways("enter_apart", 14, apart);
  Admission granted;
  granted.flags = kAnswerHolds;
  granted.state = BreakerWord::Closed;
  granted.epoch = 7;
  granted.ticket = "call";
  granted.waited_ns = 300;
  granted.place_ticket = sequence(0, 48);
  both_ways("enter_answer_apart", 14, EnterAnswer{granted});
  Admission shared;
  shared.reason = 5;
  shared.part = Part::Breaker;
  shared.flags = kAnswerNoLine;
  shared.state = BreakerWord::Open;
  shared.why = "by hand";
  shared.pattern = "bank-*";
  both_ways("enter_answer_shared", 14, EnterAnswer{shared});
  both_ways("enter_answer", 13, EnterAnswer{open});
  both_ways("enter_answer_all", 14, EnterAnswer{all});
  both_ways("enter_answer_error", 14,
            EnterAnswer{Admission::error(ItemError::NotPermitted,
                                         "identity edge.1 may not use `tenant`")});
}

TEST(GoldenAsking, OutcomeAndPresent) {
  const Outcome outcome{{{sequence(0, 48), OutcomeKind::Succeeded, kNever, 0, "", kNever, {}},
                         {"t", OutcomeKind::Failed, 1'000'000, 0, "", kNever, {}},
                         {"", OutcomeKind::TimedOut, kNever, kNever, "", kNever, {}},
                         {"u", OutcomeKind::Ignored, 0, 0, "timeout", kNever, {}}}};

  both_ways("outcome", 15, outcome);
  Outcome more{{{"v", OutcomeKind::Failed, kNever, 0, "http-503", kNever, {}},
                {"w", OutcomeKind::Failed, kNever, 0, "slow-bank", kNever, {}}}};
  more.reports[0].retry_after_ns = 2'000'000'000;
  more.reports[1].others = {"bank", "exception"};
  both_ways("outcome_all", 15, more);
  both_ways("outcome_answer", 15, OutcomeAnswer{{0, 68, 67, 0}});
  both_ways("present", 16, Present{{sequence(0, 48), "t"}});
  both_ways("present_answer", 16, PresentAnswer{{sequence(1, 48), ""}});
}

TEST(GoldenAsking, WatchAndEvent) {
  Event event;
  event.watch = 1;
  event.events.resize(2);
  event.events[0] = {4711, 5'000'000'000, kEventTransition, "bank-1", 7,
                     Value::map({{"from", "CLOSED"}, {"to", "OPEN"}})};
  event.events[1].seq = 4712;
  event.events[1].clock_ns = 5'000'000'001;
  event.events[1].kind = kEventConfig;
  event.missed = 3;

  both_ways("watch", 17, Watch{kKnownEventKinds, "bank-*", 4711, kMaxPending});
  both_ways("watch_answer", 17, WatchAnswer{1, 1ULL << 32});
  both_ways("event", 0, event);
  both_ways("event_missed", 0, Event{4, {}, kNever});
}

TEST(GoldenAsking, AnUnknownTailIsIgnored) {
  takes_a_tail<Resolve>("resolve");
  takes_a_tail<ResolveAnswer>("resolve_answer");
  takes_a_tail<Acquire>("acquire_all");
  takes_a_tail<AcquireAnswer>("acquire_answer_all");
  takes_a_tail<Peek>("peek");
  takes_a_tail<PeekAnswer>("peek_answer");
  takes_a_tail<Cancel>("cancel");
  takes_a_tail<CancelAnswer>("cancel_answer");
  takes_a_tail<Refund>("refund");
  takes_a_tail<RefundAnswer>("refund_answer");
  takes_a_tail<Enter>("enter_apart");
  takes_a_tail<EnterAnswer>("enter_answer_all");
  takes_a_tail<Outcome>("outcome_all");
  takes_a_tail<OutcomeAnswer>("outcome_answer");
  takes_a_tail<Present>("present");
  takes_a_tail<PresentAnswer>("present_answer");
  takes_a_tail<Watch>("watch");
  takes_a_tail<WatchAnswer>("watch_answer");
  takes_a_tail<Event>("event");
}

/// The payload with a tail behind the last field of every innermost array of element 0 .. n of the
/// list at `field`.
std::string with_element_tails(const std::string& name, std::size_t field) {
  Value root = decode_value(golden_payload(name)).value();
  for (Value& element : *(*root.as_array())[field].as_array()) {
    element.as_array()->push_back("new");
  }
  return encode_value(root).value();
}

// The elements of lists grow like messages do. Only those with all their fields can show it.
TEST(GoldenAsking, AnUnknownTailOfAnElementIsIgnored) {
  EXPECT_EQ(*decode<RefundAnswer>(with_element_tails("refund_answer", 0)),
            *decode<RefundAnswer>(golden_payload("refund_answer")));
  EXPECT_EQ(*decode<Resolve>(with_element_tails("resolve", 0)),
            *decode<Resolve>(golden_payload("resolve")));
  EXPECT_EQ(*decode<ResolveAnswer>(with_element_tails("resolve_answer", 0)),
            *decode<ResolveAnswer>(golden_payload("resolve_answer")));
  EXPECT_EQ(*decode<Event>(with_element_tails("event", 1)),
            *decode<Event>(golden_payload("event")));
  Value root = decode_value(golden_payload("enter_answer_all")).value();
  Value::Array& admission = *(*root.as_array())[0].as_array();
  EnterAnswer whole = *decode<EnterAnswer>(golden_payload("enter_answer_all"));
  whole.admission.places = 5;            // both may be left out, and are in the golden file
  whole.admission.waited_ns = 6;
  whole.admission.clock_ns = 7;
  whole.admission.each.resize(1);
  whole.admission.place_ticket = "p";
  whole.admission.pattern = "own-*";
  for (const int number : {5, 6, 7}) admission.push_back(number);
  admission.push_back(Value::array({Value::array({0, 0, 0, 0, 0, 0, 0})}));
  admission.push_back(Value::binary("p"));
  admission.push_back("own-*");
  admission.push_back(1);                // a tail of a newer daemon
  EXPECT_EQ(*decode<EnterAnswer>(encode_value(root).value()), whole);
}

TEST(Asking, UnknownBitsOfAnAnswerAreDroppedAndUnknownReasonsRefuse) {
  const auto answer = decode<AcquireAnswer>(
      from_hex("91 92 97 2a 00 00 00 00 00 cd f8 01 98 00 00 00 00 00 00 "
               "cf ff ff ff ff ff ff f8 04 cc 63"));
  ASSERT_TRUE(answer.ok()) << answer.fault().text;

  EXPECT_EQ(answer->decisions[0].reason, 42);
  EXPECT_FALSE(answer->decisions[0].allowed());
  EXPECT_FALSE(answer->decisions[0].is_error());
  EXPECT_EQ(answer->decisions[0].flags, kAnswerDegraded);
  EXPECT_TRUE(answer->decisions[1].allowed());
  EXPECT_EQ(answer->decisions[1].flags, kAnswerOverflow);
  EXPECT_EQ(answer->decisions[1].would, 99);
}

TEST(Asking, AnItemErrorIsToldByItsCodeAlone) {
  const auto answer = decode<AcquireAnswer>(from_hex("91 91 93 cd 03 e7 a1 78 07"));
  ASSERT_TRUE(answer.ok()) << answer.fault().text;

  EXPECT_TRUE(answer->decisions[0].is_error());
  EXPECT_EQ(answer->decisions[0].reason, 999);
  EXPECT_EQ(answer->decisions[0].text, "x");
}

TEST(Asking, ADecisionIsNeverLongerThanItsBound) {
  DecisionAnswer widest_one = decision(63, kNever, kNever, kNever);
  widest_one.wait_ns = kNever;
  widest_one.window = 255;
  widest_one.flags = kKnownAnswerFlags;
  widest_one.would = 65535;
  widest_one.charged = widest_one.clock_ns = kNever;
  AcquireAnswer many{std::vector<DecisionAnswer>(256, widest_one)};

  EXPECT_LE(encode(many)->size(), 256 * kMaxDecisionBytes + 16);
}

TEST(Asking, AKeyThatIsTooLongIsReadAndNeverWritten) {
  Acquire ask{0, 0, {item("a", std::string(kMaxKey, 'k'))}};
  EXPECT_TRUE(encode(ask).ok());
  ask.items[0].key += 'k';
  EXPECT_EQ(encode(ask).error().code(), Errc::InvalidArgument);
  EXPECT_NE(encode(ask).error().text().find("items[0].key"), std::string::npos);

  const std::string raw = from_hex("93 00 00 91 92 a1 61 c5 10 01") + ask.items[0].key;
  EXPECT_EQ(decode<Acquire>(raw)->items[0].key.size(), kMaxKey + 1);
}

TEST(Asking, AKeyMayComeAsAString) {
  EXPECT_EQ(decode<Peek>(from_hex("91 91 92 a1 61 a2 68 69"))->items[0].key, "hi");
}

TEST(Asking, BoundsAreThoseOfReadingAndWriting) {
  const auto acquire = [](std::size_t n) {
    return Acquire{0, 0, std::vector<Item>(n, item("a", "k"))};
  };
  const auto enter = [](std::size_t n) {
    return Enter{0, 0, std::vector<Item>(n, item("a", "k")), {}, {}};
  };

  EXPECT_TRUE(encode(acquire(kMaxItems)).ok());
  EXPECT_FALSE(encode(acquire(kMaxItems + 1)).ok());
  EXPECT_FALSE(encode(acquire(0)).ok());
  EXPECT_TRUE(encode(enter(0)).ok());
  EXPECT_TRUE(encode(enter(kMaxEnterItems)).ok());
  EXPECT_FALSE(encode(enter(kMaxEnterItems + 1)).ok());
  EXPECT_FALSE(encode(Acquire{0, 0, {item("a", "k", kMaxCost + 1)}}).ok());
  EXPECT_FALSE(encode(Acquire{0, 0, {item("a", "k", 1, 2)}}).ok());
  EXPECT_FALSE(encode(Acquire{0, 0, {item({}, "k")}}).ok());
  EXPECT_FALSE(encode(Acquire{0, 0, {item("no name", "k")}}).ok());
  EXPECT_FALSE(encode(Refund{}).ok());
  EXPECT_FALSE(encode(Refund{{{7, 256, {}}}}).ok());
  EXPECT_FALSE(encode(Refund{{{7, 0, 0}}}).ok());
  EXPECT_FALSE(encode(Refund{std::vector<RefundItem>(kMaxItems + 1)}).ok());
  EXPECT_FALSE(encode(Resolve{std::vector<NameAsk>(kMaxResolve + 1, {NameKind::Limit, "a"})}).ok());
  EXPECT_FALSE(encode(Outcome{std::vector<OutcomeReport>(kMaxOutcomes + 1)}).ok());
  Outcome named{std::vector<OutcomeReport>(1)};
  named.reports[0].others.resize(kMaxOtherClasses, "a");
  EXPECT_TRUE(encode(named).ok());
  named.reports[0].others.emplace_back("one too many");
  EXPECT_FALSE(encode(named).ok());
  EXPECT_FALSE(encode(Present{std::vector<std::string>(kMaxOutcomes + 1)}).ok());
  EXPECT_FALSE(encode(Present{{std::string(kMaxTicket + 1, 't')}}).ok());
  EXPECT_FALSE(encode(Watch{1, std::string(kMaxPattern + 1, 'p'), 0, 1}).ok());
  EXPECT_FALSE(encode(Watch{kKnownEventKinds + 1, "", 0, 1}).ok());
  EXPECT_FALSE(encode(Watch{1, "", 0, 0}).ok());
  EXPECT_FALSE(encode(Event{1, std::vector<EventRow>(kMaxEvents + 1), 0}).ok());
}

// covers: C121 (a cost of every wrong shape adds no tokens: it names its field, nothing is done)
TEST(Asking, ACostOfTheWrongShapeNamesItsField) {
  const std::pair<const char*, const char*> cases[] = {
      {"ff", "got -1"},
      {"cf 80 00 00 00 00 00 00 00", "got 9223372036854775808"},
      {"cf ff ff ff ff ff ff ff ff", "got 18446744073709551615"},
      {"cb 3f f8 00 00 00 00 00 00", "got a float"},
      {"cb 7f f8 00 00 00 00 00 00", "got a float"},
      {"a1 33", "got a string of 1 bytes"},
      {"c0", "got nil"},
      {"82 a1 61 01 a1 61 02", "got a map with one key twice"}};

  for (const auto& [raw, got] : cases) {
    const auto read =
        decode<Acquire>(from_hex("93 00 00 91 93 a1 61 c4 01 6b") + from_hex(raw));
    ASSERT_FALSE(read.ok()) << raw;
    EXPECT_EQ(read.fault().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(read.fault().field, "items[0].cost");
    EXPECT_EQ(read.fault().text, std::string("cost must be 0 .. 1000000000, ") + got);
  }
  EXPECT_EQ(decode<Acquire>(from_hex("93 00 00 91 92 a1 61 07")).fault().field, "items[0].key");
  EXPECT_EQ(decode<Acquire>(from_hex("93 00 00 91 91 a1 61")).fault().text, "key is missing");
}

TEST(Asking, PatternsMatchNames) {
  EXPECT_TRUE(matches_pattern("", "anything"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("bank-*", "bank-"));
  EXPECT_TRUE(matches_pattern("bank-*", "bank-17"));
  EXPECT_TRUE(matches_pattern("*-*-b", "a-b-b-b"));
  EXPECT_TRUE(matches_pattern("a**b", "ab"));
  EXPECT_FALSE(matches_pattern("bank-*", "bank"));
  EXPECT_FALSE(matches_pattern("*a", "ab"));
  EXPECT_FALSE(matches_pattern("a", "aa"));
  EXPECT_FALSE(matches_pattern("a", ""));
}

TEST(Asking, CodesHaveTheirWords) {
  const std::string_view words[] = {"unknown_name", "key_too_long", "not_permitted",
                                    "invalid_argument", "stale", "cancelled", "not_remembered",
                                    "too_late", "no_room", "unknown"};
  for (std::size_t i = 0; i < std::size(words); ++i) {
    EXPECT_EQ(name_of(static_cast<ItemError>(kFirstItemError + i)), words[i]);
  }
}

}  // namespace
}  // namespace cutwater::wire
