// SPDX-License-Identifier: Apache-2.0
// The short way of an ACQUIRE means what the long one means: the same is read, the same bytes are
// written, and a session answers alike with and without an AcquireServer.
#include "wire/acquire_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/plain_answers.hpp"
#include "unit/wire/asking.hpp"

namespace cutwater::wire {
namespace {

constexpr std::uint64_t kSeed = 20'26;

using Random = std::mt19937_64;

std::uint64_t number(Random& random) { return random() >> (random() % 64); }

Acquire random_acquire(Random& random) {
  Acquire out{number(random), number(random), std::vector<Item>(1 + random() % 20)};
  for (Item& item : out.items) {
    if (&item == &out.items[0] || random() % 3 == 0)
      item.limit = "api-" + std::to_string(random() % 9);
    item.key = std::string(random() % 8 == 0 ? random() % kMaxKey : random() % 40, 'k');
    item.cost = random() % 2 == 0 ? 1 : random() % (kMaxCost + 1);
    item.flags = static_cast<std::uint8_t>(random() % 4 == 0);
  }
  return out;
}

void expect_same(const AcquireView& view, const Acquire& message) {
  EXPECT_EQ(view.ttl_ns, message.ttl_ns);
  EXPECT_EQ(view.max_wait_ns, message.max_wait_ns);
  ASSERT_EQ(view.items.size(), message.items.size());
  for (std::size_t i = 0; i < view.items.size(); ++i) {
    const Item& item = message.items[i];
    EXPECT_EQ(view.items[i].limit, item.limit.value_or(""));
    EXPECT_EQ(view.items[i].key, item.key);
    EXPECT_EQ(view.items[i].cost, item.cost);
    EXPECT_EQ(view.items[i].flags, item.flags);
  }
}

TEST(AcquireView, ReadsWhatAWriterWrites) {
  Random random(kSeed);
  std::vector<ItemView> items;
  for (int i = 0; i < 2000; ++i) {
    const Acquire message = random_acquire(random);
    const std::string payload = encode(message).value();
    AcquireView view;

    ASSERT_TRUE(read_acquire(payload, items, view));

    expect_same(view, message);
    if (HasFailure()) return;
  }
}

TEST(AcquireView, IsTheSameOfAMessageThatWasReadAlready) {
  Random random(kSeed);
  std::vector<ItemView> items;
  for (int i = 0; i < 100; ++i) {
    const Acquire message = random_acquire(random);
    expect_same(view_of(message, items), message);
  }
}

TEST(AcquireView, TakesTheMostItemsAndNotOneMore) {
  std::vector<ItemView> items;
  AcquireView view;
  EXPECT_TRUE(read_acquire(encode(acquire(kMaxItems)).value(), items, view));
  EXPECT_EQ(view.items.size(), kMaxItems);

  Value::Array many(kMaxItems + 1, Value::array({"a", "k"}));
  EXPECT_FALSE(read_acquire(encode_value(Value::array({0, 0, many})).value(), items, view));
  EXPECT_FALSE(
      read_acquire(encode_value(Value::array({0, 0, Value::Array{}})).value(), items, view));
}

TEST(AcquireView, LeavesTailsOfANewerPeerToTheLongWay) {
  std::vector<ItemView> items;
  AcquireView view;
  const Value item = Value::array({"a", "k", 1, 0, 7});
  const std::string longer = encode_value(Value::array({0, 0, Value::array({item})})).value();

  EXPECT_FALSE(read_acquire(longer, items, view));
  EXPECT_TRUE(decode<Acquire>(longer).ok());
}

// covers: what is wrong is told by the long way alone, so the short one may take no such message.
TEST(AcquireView, WhatItTakesTheLongWayTakesAsTheSame) {
  Random random(kSeed);
  std::vector<ItemView> items;
  std::size_t taken = 0, refused = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string payload = encode(random_acquire(random)).value();
    payload.resize(std::min<std::size_t>(payload.size(), 400));
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;) {
      payload[random() % std::min<std::size_t>(payload.size(), 60)] = static_cast<char>(random());
    }
    AcquireView view;
    if (!read_acquire(payload, items, view)) {
      ++refused;
      continue;
    }
    ++taken;
    const auto message = decode<Acquire>(payload);
    ASSERT_TRUE(message.ok()) << to_hex(payload) << ": " << message.fault().text;
    expect_same(view, *message);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(AcquireView, WritesTheAnswersBytes) {
  Random random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    AcquireAnswer answer;
    answer.decisions.resize(random() % 20);
    for (DecisionAnswer& d : answer.decisions) {
      d.reason = static_cast<std::uint16_t>(random() % kFirstItemError);
      d.remaining = number(random);
      d.retry_after_ns = number(random);
      d.reset_after_ns = number(random);
      d.wait_ns = number(random);
      d.window = static_cast<std::uint8_t>(random());
      d.flags = static_cast<std::uint16_t>(random());
      if (random() % 2 == 0) d.would = static_cast<std::uint16_t>(random());
      if (random() % 4 == 0) d.charged = number(random);
      if (random() % 4 == 0) d.clock_ns = number(random);
    }
    std::string bytes = "before";

    put_decisions(bytes, answer.decisions);

    ASSERT_EQ(to_hex(bytes.substr(6)), to_hex(encode(answer).value()));
  }
}

/// Allows what begins with "k"; refuses, or has an item error, else.
class Decides final : public AcquireServer {
 public:
  const AcquireAnswer& acquire_now(const AcquireView& asked, Receipts* receipts) override {
    ++asked_;
    answer_.decisions.clear();
    for (const ItemView& item : asked.items) {
      answer_.decisions.push_back(decide(item.key));
      if (receipts != nullptr) receipts->add(item.key);
    }
    return answer_;
  }
  static DecisionAnswer decide(std::string_view key) {
    if (key.starts_with('e')) return DecisionAnswer::error(ItemError::UnknownName, "no such limit");
    DecisionAnswer out;
    out.reason = key.starts_with('k') ? kReasonAllowed : std::uint16_t{1};
    out.remaining = key.size();
    return out;
  }
  std::size_t asked_ = 0;

 private:
  AcquireAnswer answer_;
};

/// What a session sends, with all its requests answered; frames in the order of their ids.
class Served {
 public:
  explicit Served(Decides* server) : server_(server) { session_.set_acquires(server); }

  void feed(std::string_view bytes) {
    ServerActions actions = session_.feed(bytes, {.now_ns = 5, .clock_ns = 5});
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (const auto* send = std::get_if<SendBytes>(&actions[i])) take(send->bytes);
      const auto* asked = std::get_if<AcquireRequested>(&actions[i]);
      if (asked != nullptr)
        answer(*asked);
      else
        keep(answer_plainly(session_, actions[i]));
    }
  }
  std::vector<std::string> frames() {
    std::stable_sort(frames_.begin(), frames_.end(),
                     [](const auto& a, const auto& b) { return a.substr(8, 4) < b.substr(8, 4); });
    return frames_;
  }
  ServerSession& session() { return session_; }

 private:
  void answer(const AcquireRequested& asked) {
    AcquireAnswer answer;
    Receipts receipts;
    for (const Item& item : asked.message.items) {
      answer.decisions.push_back(Decides::decide(item.key));
      receipts.add(item.key);
    }
    keep(session_.answer(asked.request, answer, std::move(receipts)));
  }
  void keep(const ServerActions& actions) { take(sent(actions)); }
  void take(std::string_view bytes) {
    FrameReader reader(kMaxFrameLargest);
    while (!bytes.empty()) {
      const auto frame = reader.next(bytes);
      ASSERT_TRUE(frame.ok() && frame->has_value());
      frames_.push_back(encode_frame((*frame)->header, (*frame)->payload));
    }
  }

  Decides* server_;
  ServerSession session_ = remembering_session();
  std::vector<std::string> frames_;
};

struct Sent {
  std::string bytes;
  bool mangled = false;  // may end the session, so it comes alone
};

/// `before`: the last id of an earlier read. One of the same read would be answered only once by
/// the long way.
Sent random_frame(Random& random, std::uint32_t before, std::uint32_t& request) {
  static constexpr std::string_view kKeys[] = {"k", "kk", "refused", "error", ""};
  const bool repeats = before > 2 && random() % 6 == 0;
  const std::uint32_t id =
      repeats ? 2 + static_cast<std::uint32_t>(random() % (before - 1)) : ++request;
  const std::uint16_t flags = repeats && random() % 8 != 0 ? kFlagRepeat : std::uint16_t{0};
  Acquire message = acquire(1 + random() % 4);
  for (Item& item : message.items) item.key = kKeys[random() % std::size(kKeys)];
  message.ttl_ns = random() % 4 == 0 ? random() % 5 : 0;
  std::string payload = encode(message).value();
  switch (random() % 8) {
    case 0:
      return {frame_of(Peek{message.items}, id, flags)};
    case 1: {
      const auto target = 2 + static_cast<std::uint32_t>(random() % id);
      return {frame_of(Refund{{{target, 0, {}}}}, id, flags)};
    }
    case 2:
      payload[random() % payload.size()] ^= static_cast<char>(1U << (random() % 8));
      return {frame_of(MessageType::Acquire, id, payload, flags), true};
    default:
      return {frame_of(MessageType::Acquire, id, payload, flags)};
  }
}

TEST(AcquireNow, ASessionAnswersAlikeWithAndWithoutIt) {
  Random random(kSeed);
  std::size_t asked = 0;
  for (int round = 0; round < 300; ++round) {
    Decides server;
    Served now(&server), later(nullptr);
    std::uint32_t request = 1;
    for (int read = 0; read < 12; ++read) {
      std::string bytes;
      const std::uint32_t before = request;
      for (std::uint64_t frames = 1 + random() % 4; frames-- > 0;) {
        const Sent frame = random_frame(random, before, request);
        if (frame.mangled) {
          now.feed(bytes);
          later.feed(bytes);
          bytes.clear();
        }
        bytes += frame.bytes;
        if (frame.mangled) break;
      }
      now.feed(bytes);
      later.feed(bytes);
    }
    ASSERT_EQ(now.frames(), later.frames()) << "round " << round;
    EXPECT_EQ(now.session().waiting_requests(), 0u);
    asked += server.asked_;
  }
  EXPECT_GT(asked, 1000u);
}

TEST(AcquireNow, WhatWasAskedBeforeIsCarriedOutBefore) {
  Decides server;
  ServerSession session = remembering_session();
  session.set_acquires(&server);

  const auto actions =
      session.feed(frame_of(Peek{acquire().items}, 2) + frame_of(acquire(), 3), {});

  EXPECT_EQ(server.asked_, 0u);
  EXPECT_EQ(all_of<PeekRequested>(actions).size(), 1u);
  EXPECT_EQ(all_of<AcquireRequested>(actions).size(), 1u);
}

TEST(AcquireNow, AnswersOfOneReadAreOnePiece) {
  Decides server;
  ServerSession session = remembering_session();
  session.set_acquires(&server);
  std::string bytes;
  for (std::uint32_t id = 2; id < 12; ++id) bytes += frame_of(acquire(), id);

  const auto actions = session.feed(bytes, {});

  EXPECT_EQ(server.asked_, 10u);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(types_of(sent(actions)), Types(10, MessageType::AcquireAnswer));
}

TEST(AcquireNow, ReceiptsAreRememberedAndSpentOnce) {
  Decides server;
  ServerSession session = remembering_session();
  session.set_acquires(&server);
  (void)session.feed(frame_of(Acquire{0, 0, {{"a", "kk", 1, 0}, {{}, "refused", 1, 0}}}, 2), {});

  const auto first = session.take_for(3, Refund{{{2, 0, {}}}});
  const auto second = session.take_for(4, Refund{{{2, 0, {}}, {2, 1, {}}}});

  EXPECT_EQ(first[0].receipt, "kk");
  EXPECT_EQ(second[0].code, kStale);
  EXPECT_EQ(second[1].receipt, "refused");
}

TEST(AcquireNow, MoreThanIsRememberedForgetsTheOldest) {
  Decides server;
  ServerSession session = remembering_session();
  session.set_acquires(&server);
  std::uint32_t id = 1;
  for (std::size_t i = 0; i < 2 * kRememberedItems; ++i) {
    (void)session.feed(frame_of(acquire(), ++id), {});
  }

  const auto newest = session.take_for(id + 1, Refund{{{id, 0, {}}}});
  const auto oldest_kept = static_cast<std::uint32_t>(id - kRememberedItems + 1);

  EXPECT_EQ(newest[0].receipt, "k");
  EXPECT_EQ(session.take_for(id + 1, Refund{{{oldest_kept, 0, {}}}})[0].receipt, "k");
  EXPECT_EQ(session.take_for(id + 1, Refund{{{oldest_kept - 1, 0, {}}}})[0].code,
            static_cast<std::uint16_t>(ItemError::NotRemembered));
}

}  // namespace
}  // namespace cutwater::wire
