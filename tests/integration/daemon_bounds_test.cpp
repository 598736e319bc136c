// SPDX-License-Identifier: Apache-2.0
// What a peer may not do, and the bounds it meets.
#include "integration/session_fixture.hpp"

namespace cutwater::test {
namespace {

TEST_F(Session, C118FiveBytesThatAskForGigabytesAreBadFrames) {
  const std::uint64_t before = resident_kb(daemon_->pid());
  const std::vector<std::string> payloads = {
      std::string("\xdd\xff\x00\x00\x00", 5), std::string("\xdf\xff\xff\xff\xff", 5),
      std::string("\xc6\xff\xff\xff\xff", 5), std::string("\xdb\xff\xff\xff\xff", 5)};

  for (const bool byte_by_byte : {false, true}) {
    for (const std::string& payload : payloads) {
      refuses(frame_of(payload), ErrorCode::BadFrame, byte_by_byte);
    }
    std::string endless = frame_of("");
    endless.replace(12, 4, "\xff\xff\xff\xff");
    refuses(endless, ErrorCode::BadFrame, byte_by_byte);
  }

  EXPECT_LT(resident_kb(daemon_->pid()), before + 1024);
}

TEST_F(Session, C119DeepNestingIsABadFrameAndTheBoundaryIsNot) {
  refuses(frame_of(std::string(10'000, '\x91')), ErrorCode::BadFrame);
  std::string maps;
  for (int i = 0; i < 5000; ++i) maps += "\x81\xa1" "a";
  refuses(frame_of(maps), ErrorCode::BadFrame);
  refuses(frame_of(std::string(8, '\x91') + '\x90'), ErrorCode::BadFrame);   // depth 9

  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(Want::Ask));
  peer.send(frame_of(std::string(7, '\x91') + '\x90'));   // depth 8: a frame, but no READ
  const auto error = wire::decode<wire::ErrorMessage>(peer.receive()->payload);
  EXPECT_EQ(error->code, ErrorCode::InvalidArgument);
  EXPECT_EQ(peer.ping(3)->value, 3U);
}

TEST_F(Session, OtherBadInputGetsItsAnswer) {
  refuses(std::string(16, 'x'), ErrorCode::BadFrame);
  refuses(frame_of(std::string("\xc1", 1)), ErrorCode::BadFrame);
  std::string version = frame_of("\x90");
  version[2] = 9;
  refuses(version, ErrorCode::Version);

  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(Want::Ask));
  peer.send_frame(static_cast<MessageType>(0x7f), 5, "\x90");
  const auto error = wire::decode<wire::ErrorMessage>(peer.receive()->payload);
  EXPECT_EQ(error->code, ErrorCode::Unsupported);
  EXPECT_EQ(peer.ping(3)->value, 3U);
}

TEST_F(Session, ARequestBeforeHelloEndsTheConnection) {
  RawPeer peer(place_.socket());
  peer.send_frame(MessageType::Ping, 1, std::string("\x91\x07", 2));

  const auto error = wire::decode<wire::ErrorMessage>(peer.receive()->payload);

  EXPECT_EQ(error->code, ErrorCode::NotNow);
  EXPECT_TRUE(peer.at_end());
}

TEST_F(Session, WhoSaysNothingIsLetGo) {
  RawPeer silent(place_.socket()), half(place_.socket());
  half.send("CW");

  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(half.at_end());
}

TEST_F(Session, DescriptorsOfAClientEndItsSession) {
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(Want::Ask));
  char byte = 'C';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(CMSG_DATA(head)) = STDIN_FILENO;
  ASSERT_EQ(::sendmsg(peer.fd(), &message, 0), 1);

  const auto error = wire::decode<wire::ErrorMessage>(peer.receive()->payload);

  EXPECT_EQ(error->code, ErrorCode::BadFrame);
  EXPECT_TRUE(peer.at_end());
}

TEST_F(Session, OneUidHasABoundedNumberOfConnections) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 256; ++i) {
    peers.push_back(std::make_unique<RawPeer>(place_.socket()));
    ASSERT_TRUE(peers.back()->greet(Want::Ask)) << i;
  }

  RawPeer late(place_.socket());
  EXPECT_FALSE(late.greet(Want::Ask));
  EXPECT_EQ(late.refusal().code, ErrorCode::TooMany);
  EXPECT_EQ(peers.front()->ping(1)->value, 1U);

  peers.pop_back();
  EXPECT_TRUE(eventually([&] { return RawPeer(place_.socket()).greet(Want::Ask).has_value(); }));
}

TEST_F(Session, ThirtyFailedHellosCloseTheDoorForThatUid) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as two users";
  daemon_->kill();
  place_.write_config("access: { map: { users: [\"*\"] } }\n"
                      "listen: { unix: { mode: \"0666\" } }\n");
  daemon_.emplace(place_);
  ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  const std::string socket = place_.memory() + "@socket/cutwater.sock";
  const std::string answers = as_user(12345, 12345, {}, [&] {
    std::string out;
    for (int i = 0; i < 31; ++i) {
      RawPeer peer(socket);
      peer.send(std::string(16, 'x'));
      out += peer.receive() ? 'E' : '-';
    }
    return out;
  });

  EXPECT_EQ(answers, std::string(30, 'E') + "-");
  EXPECT_TRUE(daemon_->wait_log("uid 12345: 30 connections failed before their welcome"))
      << daemon_->log();
  for (int i = 0; i < 31; ++i) {
    RawPeer peer(socket);
    peer.send(std::string(16, 'x'));
    EXPECT_TRUE(peer.receive()) << "root, who may have to repair it, " << i;
  }
  EXPECT_TRUE(RawPeer(socket).greet(Want::Ask));
}

TEST_F(Session, ReadAndSteerAreAnswered) {
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(Want::Ask));

  const auto status = peer.read("status");
  ASSERT_TRUE(status) << peer.refusal().text;
  EXPECT_EQ(*status->rows.at(0).find("instance")->as_string(), "main");

  wire::Steer step;
  step.verb = wire::kVerbClockStep;
  step.arguments.set("to_ns", 1);
  EXPECT_EQ(peer.steer(step)->code, wire::kSteerNotPermitted);
}

TEST_F(Session, ClientsShowsThoseWithAndWithoutARow) {
  RawPeer mapped(place_.socket()), looker(place_.socket());
  ASSERT_TRUE(mapped.greet(RawPeer::hello(Want::Map, "worker")));
  wire::Hello other = RawPeer::hello(Want::Map, "old-library");
  other.layout = {9, 0, 0};
  ASSERT_TRUE(looker.greet(other));

  const auto clients = looker.read("clients");

  ASSERT_TRUE(clients);
  ASSERT_EQ(clients->rows.size(), 2U);
  EXPECT_EQ(*clients->rows[0].find("name")->as_string(), "worker");
  EXPECT_EQ(*clients->rows[0].find("watched")->as_string(), "pidfd");
  EXPECT_EQ(*clients->rows[1].find("name")->as_string(), "old-library");
  EXPECT_NE(clients->rows[1].find("why")->as_string()->find("layout 9.0 there"),
            std::string::npos);
}

TEST_F(Session, AcceptPausesWithoutDescriptorsAndGoesOn) {
  daemon_->kill();
  daemon_.emplace(place_, DaemonOptions{.open_files = 40});
  ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  RawPeer first(place_.socket());
  ASSERT_TRUE(first.greet(Want::Ask));
  {
    std::vector<std::unique_ptr<RawPeer>> peers;
    for (int i = 0; i < 60; ++i) peers.push_back(std::make_unique<RawPeer>(place_.socket()));

    EXPECT_TRUE(daemon_->wait_log("no new connections for now"));
    EXPECT_EQ(first.ping(1)->value, 1U);
  }

  EXPECT_TRUE(eventually([&] { return RawPeer(place_.socket()).greet(Want::Ask).has_value(); }));
  const std::string log = daemon_->log();
  EXPECT_EQ(log.find("no new connections"), log.rfind("no new connections"));
}

TEST_F(Session, ASteppedDaemonIsMovedAndSaysItsTime) {
  daemon_->kill();
  ScratchPlace fresh;
  DaemonProcess stepped(fresh, DaemonOptions{.arguments = {"--clock=stepped"}});
  ASSERT_TRUE(stepped.ready()) << stepped.log();
  RawPeer peer(fresh.socket());
  const auto welcome = peer.greet(Want::Ask);
  ASSERT_TRUE(welcome);
  EXPECT_NE(welcome->features & wire::kFeatureSteppedClock, 0U);

  wire::Steer step;
  step.verb = wire::kVerbClockStep;
  step.arguments.set("to_ns", welcome->clock_ns + 1'000'000);
  EXPECT_EQ(peer.steer(step)->code, wire::kSteerDone);

  EXPECT_EQ(peer.ping(1)->clock_ns, welcome->clock_ns + 1'000'000);
}

}  // namespace
}  // namespace cutwater::test
