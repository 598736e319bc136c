// SPDX-License-Identifier: Apache-2.0
// Asking over the socket: what bad input gets, and the bounds that askers meet.
#include <poll.h>

#include "integration/ask_fixture.hpp"

namespace cutwater::test {
namespace {

using wire::Value;

/// A payload, and the field its ERROR must name.
struct Bad { MessageType type; Value payload; std::string field; };

Value item(Value limit, Value key, Value cost) {
  return Value::array({std::move(limit), std::move(key), std::move(cost)});
}
Value acquire_of(Value items) { return Value::array({0, 0, std::move(items)}); }

TEST_F(Asked, C121RightShapeWrongTypesNameTheFieldAndTheSessionStays) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  const Value key = Value::binary("k");
  const auto costly = [&](Value cost) {
    return acquire_of(Value::array({item("slow", key, std::move(cost))}));
  };
  const std::vector<Bad> bad = {
      {MessageType::Acquire, costly(-1), "items[0].cost"},
      {MessageType::Acquire, costly(std::uint64_t{1} << 63), "items[0].cost"},
      {MessageType::Acquire, costly(~std::uint64_t{0}), "items[0].cost"},
      {MessageType::Acquire, costly("3"), "items[0].cost"},
      {MessageType::Acquire, costly(Value()), "items[0].cost"},
      {MessageType::Acquire, acquire_of(Value::array({item("slow", 7, 1)})), "items[0].key"},
      {MessageType::Acquire, acquire_of(Value::array({item(7, key, 1)})), "items[0].limit"},
      {MessageType::Acquire, acquire_of(Value::array({item(Value(), key, 1)})), "items[0].limit"},
      {MessageType::Acquire, acquire_of(Value::array({})), "items"},
      {MessageType::Acquire, Value::array({0}), "max_wait_ns"},
      {MessageType::Acquire, Value::array({-1, 0, Value::array({})}), "ttl_ns"},
      {MessageType::Acquire,
       acquire_of(Value::array({Value::array({"slow", key, 1, 2})})), "items[0].flags"},
      {MessageType::Refund, Value::array({Value::array({Value::array({1, -1})})}),
       "items[0].item"},
      {MessageType::Cancel, Value::array({"1"}), "request"},
      {MessageType::Watch, Value::array({1, "*", 0, 5000}), "max_pending"},
  };

  for (const Bad& one : bad) {
    const auto payload = wire::encode_value(one.payload);
    ASSERT_TRUE(payload);
    EXPECT_FALSE(peer.ask_raw<wire::AcquireAnswer>(one.type, *payload)) << one.field;
    EXPECT_EQ(peer.refusal().code, ErrorCode::InvalidArgument) << one.field;
    EXPECT_EQ(peer.refusal().field, one.field) << peer.refusal().text;
    EXPECT_FALSE(peer.refusal().closing);
  }
  // 1.5 and NaN as msgpack floats; a type with bit 7; no array at all.
  for (const char* cost : {"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00",
                           "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"}) {
    std::string payload("\x93\x00\x00\x91\x93\xa4slow\xc4\x01k", 13);
    payload.append(cost, 9);
    EXPECT_FALSE(peer.ask_raw<wire::AcquireAnswer>(MessageType::Acquire, payload));
    EXPECT_EQ(peer.refusal().field, "items[0].cost") << peer.refusal().text;
  }
  EXPECT_FALSE(peer.ask_raw<wire::AcquireAnswer>(MessageType::AcquireAnswer, "\x90"));
  EXPECT_EQ(peer.refusal().code, ErrorCode::Unsupported);
  EXPECT_FALSE(peer.ask_raw<wire::AcquireAnswer>(MessageType::Acquire, "\x80"));
  EXPECT_EQ(peer.refusal().code, ErrorCode::InvalidArgument);

  EXPECT_EQ(remaining(peer, "slow", "k"), 5U) << "nothing was charged, nothing was given";
  // A newer client's unknown tail is ignored.
  const auto tail = wire::encode_value(Value::array(
      {0, 0, Value::array({Value::array({"slow", key, 1, 0, "new"})}), "newer"}));
  EXPECT_TRUE(peer.ask_raw<wire::AcquireAnswer>(MessageType::Acquire, *tail))
      << peer.refusal().text;
}

TEST_F(Asked, ALongKeyCostsItsItemAloneAndTooManyItemsTheRequest) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  const auto payload = wire::encode_value(acquire_of(
      Value::array({item("slow", Value::binary(std::string(4097, 'x')), 1),
                    item("slow", Value::binary("k"), 1)})));

  const auto answer = peer.ask_raw<wire::AcquireAnswer>(MessageType::Acquire, *payload);

  ASSERT_TRUE(answer) << peer.refusal().text;
  EXPECT_EQ(answer->decisions[0].reason, static_cast<std::uint16_t>(wire::ItemError::KeyTooLong));
  EXPECT_TRUE(answer->decisions[1].allowed());

  Value::Array many(257, item("slow", Value::binary("k"), 1));
  const auto too_many = wire::encode_value(acquire_of(std::move(many)));
  EXPECT_FALSE(peer.ask_raw<wire::AcquireAnswer>(MessageType::Acquire, *too_many));
  EXPECT_EQ(peer.refusal().field, "items");
  EXPECT_EQ(remaining(peer, "slow", "k"), 4U);
}

TEST_F(Asked, C122PipelinedRequestsAndEventsNeverMixTheirBytes) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello(wire::kFeatureEvents)));
  ASSERT_TRUE(peer.ask<wire::WatchAnswer>(wire::Watch{wire::kKnownEventKinds, "", 0, 256}));
  const int small = 4096;
  ::setsockopt(peer.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  constexpr std::uint32_t kRequests = 10'000;
  const std::uint32_t first = peer.next_request();
  std::string bytes;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const auto payload = wire::encode(acquire("api", "k" + std::to_string(i % 50)));
    bytes += wire::encode_frame({.type = MessageType::Acquire, .request = first + i}, *payload);
  }

  std::uint32_t answered = 0, events = 0;
  wire::FrameReader reader(wire::kMaxFrameLargest);
  std::size_t sent = 0;
  while (answered < kRequests || events == 0) {
    pollfd entry{peer.fd(), static_cast<short>(POLLIN | (sent < bytes.size() ? POLLOUT : 0)), 0};
    ASSERT_GT(::poll(&entry, 1, 60'000), 0);
    if ((entry.revents & POLLOUT) != 0) {
      const ssize_t n = ::send(peer.fd(), bytes.data() + sent,
                               std::min<std::size_t>(3000, bytes.size() - sent),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if (answered % 97 == 0) RawPeer(place_.socket()).greet(RawPeer::hello(Want::Map));
    }
    if ((entry.revents & POLLIN) == 0) continue;
    char piece[2048];
    const ssize_t n = ::recv(peer.fd(), piece, sizeof piece, 0);
    ASSERT_GT(n, 0);
    std::string_view rest(piece, static_cast<std::size_t>(n));
    while (true) {
      auto frame = reader.next(rest);
      ASSERT_TRUE(frame);
      if (!*frame) break;
      const wire::FrameHeader& header = (*frame)->header;
      if (header.type == MessageType::Event) {
        ++events;
        ASSERT_TRUE(wire::decode<wire::Event>((*frame)->payload));
        continue;
      }
      ASSERT_EQ(header.type, MessageType::AcquireAnswer);
      EXPECT_EQ(header.request, first + answered);
      ASSERT_TRUE(wire::decode<wire::AcquireAnswer>((*frame)->payload));
      ++answered;
    }
  }
  EXPECT_EQ(answered, kRequests);
}

TEST_F(Asked, C123OutOfDescriptorsAcceptPausesAndAskersGoOn) {
  start({.open_files = 64});
  RawPeer asker(place_.socket());
  ASSERT_TRUE(asker.greet(hello()));
  {
    std::vector<std::unique_ptr<RawPeer>> crowd;
    for (int i = 0; i < 100; ++i) crowd.push_back(std::make_unique<RawPeer>(place_.socket()));
    EXPECT_TRUE(daemon_->wait_log("no new connections for now"));

    EXPECT_TRUE(asker.ask<wire::AcquireAnswer>(acquire("slow", "a"))->decisions[0].allowed());
    EXPECT_EQ(remaining(asker, "slow", "a"), 4U);
  }

  EXPECT_TRUE(eventually([&] { return RawPeer(place_.socket()).greet(hello()).has_value(); }));
}

TEST_F(Asked, C124WhoNeverReadsCostsNobodyAnythingAndIsLetGo) {
  start();
  RawPeer healthy(place_.socket());
  ASSERT_TRUE(healthy.greet(hello()));
  const std::uint64_t before = resident_kb(daemon_->pid());
  RawPeer deaf(place_.socket());
  ASSERT_TRUE(deaf.greet(hello()));
  wire::Acquire batch;
  for (int i = 0; i < 256; ++i) batch.items.push_back({"api", "k" + std::to_string(i), 1, 0});
  const std::string payload = *wire::encode(batch);
  // Sends until the daemon stops reading, and reads nothing.
  std::uint32_t request = 1;
  EXPECT_TRUE(eventually([&] {
    const std::string frame =
        wire::encode_frame({.type = MessageType::Acquire, .request = request}, payload);
    pollfd entry{deaf.fd(), POLLOUT, 0};
    if (::poll(&entry, 1, 20) <= 0) return true;
    if (!deaf.send(frame)) return true;
    ++request;
    return false;
  }));

  EXPECT_TRUE(healthy.ask<wire::AcquireAnswer>(acquire("slow", "a"))->decisions[0].allowed());
  EXPECT_LT(resident_kb(daemon_->pid()), before + 10 * 1024);
  EXPECT_TRUE(daemon_->wait_log("ready"));
  EXPECT_TRUE(eventually([&] {
    return healthy.read("status")->rows.at(0).find("connections")->as_unsigned() == 1U;
  })) << "it is closed after 2 s without progress";
}

TEST_F(Asked, FourWatchesOfASessionAndNoMore) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello(wire::kFeatureEvents)));
  const wire::Watch all{wire::kKnownEventKinds, "", 0, 16};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(peer.ask<wire::WatchAnswer>(all)) << i;

  EXPECT_FALSE(peer.ask<wire::WatchAnswer>(all));
  EXPECT_EQ(peer.refusal().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(peer.ask<wire::WatchAnswer>(wire::Watch{0, "", 0, 16})->watch, 0U);
  EXPECT_TRUE(peer.ask<wire::WatchAnswer>(all));
}

TEST_F(Asked, AWatchIsToldOfWhatHappensAndOfWhatHappened) {
  start();
  RawPeer peer(place_.socket()), operator_peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello(wire::kFeatureEvents)));
  ASSERT_TRUE(operator_peer.greet(hello()));
  const auto watch = peer.ask<wire::WatchAnswer>(wire::Watch{wire::kEventManual, "api", 0, 16});
  ASSERT_TRUE(watch);
  wire::Steer reset;
  reset.verb = wire::kVerbLimitReset;
  reset.name = "slow";
  reset.key = "k";
  ASSERT_EQ(operator_peer.steer(reset)->code, wire::kSteerDone);
  reset.name = "api";
  ASSERT_EQ(operator_peer.steer(reset)->code, wire::kSteerDone);

  const auto event = peer.event();

  ASSERT_TRUE(event);
  EXPECT_EQ(event->watch, watch->watch);
  ASSERT_EQ(event->events.size(), 1U);
  EXPECT_EQ(event->events[0].name, "api");
  EXPECT_EQ(event->events[0].kind, wire::kEventManual);
  EXPECT_EQ(*event->events[0].data.find("event")->as_string(), "limit_reset");

  RawPeer late(place_.socket());
  ASSERT_TRUE(late.greet(hello(wire::kFeatureEvents)));
  ASSERT_TRUE(late.ask<wire::WatchAnswer>(wire::Watch{wire::kEventManual, "", 1, 16}));
  std::vector<std::string> names;
  while (names.size() < 2) {
    const auto old = late.event();
    ASSERT_TRUE(old);
    for (const wire::EventRow& row : old->events) names.push_back(row.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"slow", "api"}));
}

}  // namespace
}  // namespace cutwater::test
