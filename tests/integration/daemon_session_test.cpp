// SPDX-License-Identifier: Apache-2.0
// What a daemon answers to peers over its socket, the honest and the others, and what becomes of
// the rows of those who leave.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/process_table.hpp"
#include "shm/segment.hpp"
#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

using wire::ErrorCode;
using wire::MessageType;
using wire::Want;

std::uint64_t resident_kb(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::uint64_t sum = 0, kb = 0;
  std::string word;
  while (file >> word) {
    if (word == "RssAnon:" || word == "RssFile:") {
      file >> kb;
      sum += kb;
    }
  }
  return sum;
}

class Session : public testing::Test {
 protected:
  Session() {
    place_.write_config("capacity: { processes: 32, keys: 1024 }\n"
                        "limits: { api: { rate: 10/s, burst: 10 } }\n");
    daemon_.emplace(place_);
    EXPECT_TRUE(daemon_->ready()) << daemon_->log();
  }

  shm::Segment map_memory() const {
    shm::DirectoryQuery query;
    query.setting = place_.memory();
    query.create = false;
    directory_ = shm::open_directory(query).value();
    return shm::Segment::open_files(directory_.fd.get(), shm::Access::ReadOnly).value();
  }
  /// A child that attaches, tells its row, and lives until it is killed.
  struct Attached { pid_t pid = -1; wire::Welcome welcome; };
  Attached attached_child() const {
    int pipe_fds[2];
    EXPECT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      RawPeer peer(place_.socket());
      const auto welcome = peer.greet(Want::Map);
      const std::uint32_t row[2] = {welcome ? welcome->row_index : 0,
                                    welcome ? welcome->row_generation : 0};
      const ssize_t n = ::write(pipe_fds[1], row, sizeof row);
      while (n > 0) ::pause();
      ::_exit(1);
    }
    ::close(pipe_fds[1]);
    Attached out{pid, {}};
    std::uint32_t row[2] = {};
    EXPECT_EQ(::read(pipe_fds[0], row, sizeof row), static_cast<ssize_t>(sizeof row));
    ::close(pipe_fds[0]);
    out.welcome.row_index = row[0];
    out.welcome.row_generation = row[1];
    return out;
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  static std::string state_of(const shm::Segment& segment, std::uint32_t row) {
    shm::RowInfo info;
    if (!shm::read_row(segment.view(), row, info)) return "none";
    constexpr const char* kWords[] = {"free", "live", "orphan", "dead"};
    return kWords[static_cast<std::size_t>(info.word.state)];
  }

  /// Bytes that must be answered by ERROR `code` and the end; others are served as before.
  void refuses(std::string_view bytes, ErrorCode code, bool byte_by_byte = false) {
    RawPeer healthy(place_.socket());
    ASSERT_TRUE(healthy.greet(Want::Ask));
    RawPeer bad(place_.socket());
    ASSERT_TRUE(bad.greet(Want::Ask));
    if (byte_by_byte) {
      for (const char& byte : bytes) {
        if (!bad.send({&byte, 1})) break;
      }
    } else {
      bad.send(bytes);
    }
    const auto frame = bad.receive();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->header.type, MessageType::Error);
    const auto error = wire::decode<wire::ErrorMessage>(frame->payload);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, code) << error->text;
    EXPECT_TRUE(error->closing);
    EXPECT_TRUE(bad.at_end());
    EXPECT_EQ(healthy.ping(7)->value, 7U);
  }
  static std::string frame_of(std::string_view payload) {
    return wire::encode_frame({.type = MessageType::Read, .request = 1}, payload);
  }

  ScratchPlace place_;
  std::optional<DaemonProcess> daemon_;
  mutable shm::MemoryDirectory directory_;
};

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
