// SPDX-License-Identifier: Apache-2.0
// Sessions and rows of peers over the socket: attaching, coming back, dying.
#include "integration/session_fixture.hpp"

namespace cutwater::test {
namespace {

TEST_F(Session, WelcomeBringsThreeDescriptorsThatMap) {
  RawPeer peer(place_.socket());

  const auto welcome = peer.greet(Want::Map);

  ASSERT_TRUE(welcome) << peer.refusal().text;
  EXPECT_EQ(welcome->mode, Want::Map);
  EXPECT_EQ(welcome->why, "");
  EXPECT_EQ(welcome->descriptors, (std::vector<std::string>{"rules", "state", "stats"}));
  ASSERT_EQ(peer.files().size(), 3U);
  EXPECT_EQ(::fcntl(peer.files()[0].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  const auto segment = shm::Segment::map(
      {peer.files()[0].get(), peer.files()[1].get(), peer.files()[2].get()}, shm::Access::Client);
  ASSERT_TRUE(segment) << segment.error().text();
  EXPECT_TRUE(shm::row_alive(segment->view(), welcome->row_index, welcome->row_generation));
}

TEST_F(Session, MapReadBringsReadOnlyDescriptorsAndNoRow) {
  RawPeer peer(place_.socket());

  const auto welcome = peer.greet(Want::MapRead);

  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->row_index, 0U);
  ASSERT_EQ(peer.files().size(), 3U);
  for (const auto& file : peer.files()) {
    EXPECT_EQ(::fcntl(file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  }
}

TEST_F(Session, ByeGivesTheRowBackAtOnce) {
  const shm::Segment segment = map_memory();
  RawPeer peer(place_.socket());
  const auto welcome = peer.greet(Want::Map);
  ASSERT_TRUE(welcome);

  const auto bye = wire::encode(wire::Bye{});
  peer.send_frame(MessageType::Bye, 0, *bye);

  EXPECT_EQ(peer.receive()->header.type, MessageType::ByeOk);
  EXPECT_TRUE(eventually([&] { return state_of(segment, welcome->row_index) == "free"; }));
}

TEST_F(Session, C058AKilledProcessGivesItsRowBackAndASuccessorGetsAnother) {
  const shm::Segment segment = map_memory();
  const Attached child = attached_child();
  ASSERT_EQ(state_of(segment, child.welcome.row_index), "live");

  end(child.pid);

  EXPECT_TRUE(eventually([&] { return state_of(segment, child.welcome.row_index) == "free"; }));
  const Attached next = attached_child();
  EXPECT_TRUE(next.welcome.row_index != child.welcome.row_index ||
              next.welcome.row_generation != child.welcome.row_generation);
  EXPECT_FALSE(shm::row_alive(segment.view(), child.welcome.row_index,
                              child.welcome.row_generation));
  end(next.pid);
}

TEST_F(Session, AClosedSocketLeavesALivingProcessItsRow) {
  const shm::Segment segment = map_memory();
  RawPeer peer(place_.socket());
  const auto welcome = peer.greet(Want::Map);
  ASSERT_TRUE(welcome);
  const shm::SegmentFiles files = {peer.files()[0].get(), peer.files()[1].get(),
                                   peer.files()[2].get()};
  auto mapped = shm::Segment::map(files, shm::Access::Client);
  ASSERT_TRUE(mapped);

  peer.close();   // no BYE

  ASSERT_TRUE(eventually([&] { return state_of(segment, welcome->row_index) == "orphan"; }));
  EXPECT_TRUE(shm::row_alive(segment.view(), welcome->row_index, welcome->row_generation));
}

TEST_F(Session, AProcessThatComesAgainGetsItsRowBack) {
  const shm::Segment segment = map_memory();
  RawPeer peer(place_.socket());
  const auto first = peer.greet(Want::Map);
  ASSERT_TRUE(first);
  peer.close();
  ASSERT_TRUE(eventually([&] { return state_of(segment, first->row_index) == "orphan"; }));

  RawPeer again(place_.socket());
  wire::Hello hello = RawPeer::hello(Want::Row);
  hello.segment.assign(reinterpret_cast<const char*>(segment.view().uuid), 16);
  hello.session = first->session;
  const auto second = again.greet(hello);

  ASSERT_TRUE(second) << again.refusal().text;
  EXPECT_TRUE(second->resumed);
  EXPECT_EQ(second->mode, Want::Row);
  EXPECT_EQ(second->row_index, first->row_index);
  EXPECT_EQ(second->row_generation, first->row_generation);
  EXPECT_TRUE(again.files().empty());
  EXPECT_EQ(state_of(segment, first->row_index), "live");
}

TEST_F(Session, ARowOfAnotherMemoryIsNotGiven) {
  RawPeer peer(place_.socket());
  wire::Hello hello = RawPeer::hello(Want::Row);
  hello.segment = std::string(16, 'x');

  const auto welcome = peer.greet(hello);

  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->mode, Want::Ask);
  EXPECT_NE(welcome->why, "");
}

TEST_F(Session, C057PlacesOfTheDeadNeverRunOut) {
  constexpr int kClients = 2000;   // 32 rows: each is granted more than sixty times
  std::vector<std::unique_ptr<RawPeer>> living;
  for (int i = 0; i < 24; ++i) {
    living.push_back(std::make_unique<RawPeer>(place_.socket()));
    ASSERT_TRUE(living.back()->greet(Want::Map));
  }

  int without_row = 0;
  for (int i = 0; i < kClients; ++i) {
    const Attached child = attached_child();
    if (child.welcome.row_index == 0) ++without_row;
    end(child.pid);
  }

  EXPECT_EQ(without_row, 0);
  for (const auto& peer : living) EXPECT_EQ(peer->ping(1)->value, 1U);
}

TEST_F(Session, C057AFullTableAttachesWithoutARowAndSaysSo) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 32; ++i) {
    peers.push_back(std::make_unique<RawPeer>(place_.socket()));
    ASSERT_NE(peers.back()->greet(Want::Map)->row_index, 0U);
  }

  RawPeer late(place_.socket());
  const auto welcome = late.greet(Want::Map);

  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->mode, Want::Map);
  EXPECT_EQ(welcome->row_index, 0U);
  EXPECT_NE(welcome->why.find("capacity.processes"), std::string::npos) << welcome->why;
  EXPECT_EQ(late.files().size(), 3U);
}

}  // namespace
}  // namespace cutwater::test
