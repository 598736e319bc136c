// SPDX-License-Identifier: Apache-2.0
// Peers of other users and of other name spaces, and what the operating system does to the files.
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/process_table.hpp"
#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

using wire::Want;

constexpr uid_t kStranger = 23456, kMember = 23457;
constexpr gid_t kGroup = 34567;

class Peers : public testing::Test {
 protected:
  void start(const std::string& access, std::vector<std::string> arguments = {}) {
    place_.write_config(access + "\nlimits: { api: { rate: 10/s } }\n");
    daemon_.emplace(place_, DaemonOptions{.arguments = std::move(arguments)});
    ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  }
  std::string shared_socket() const { return place_.memory() + "@socket/cutwater.sock"; }

  /// What a HELLO from the calling process gets, in a word.
  static std::string greeting(const std::string& socket, wire::Hello hello) {
    RawPeer peer(socket);
    if (!peer.connected()) return "no connection: " + std::string(std::strerror(peer.error()));
    const auto welcome = peer.greet(hello);
    if (!welcome) return "refused: " + peer.refusal().text;
    if (welcome->mode == Want::Map) return "mapped row " + std::to_string(welcome->row_index);
    return "not mapped: " + welcome->why;
  }
  static std::string greeting(const std::string& socket) {
    return greeting(socket, RawPeer::hello(Want::Map));
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  ScratchPlace place_;
  std::optional<DaemonProcess> daemon_;
};

TEST_F(Peers, C065AStrangerIsRefusedWithReasonAndRemedyAndLoggedOnce) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as another user";
  start("access: { map: { groups: [" + std::to_string(kGroup) + "] } }\n"
        "listen: { unix: { mode: \"0666\" } }");

  for (int i = 0; i < 3; ++i) {
    const std::string answer =
        as_user(kStranger, kStranger, {}, [&] { return greeting(shared_socket()); });
    EXPECT_EQ(answer.rfind("refused: uid 23456", 0), 0U) << answer;
    EXPECT_NE(answer.find("access.ask"), std::string::npos);
  }

  EXPECT_TRUE(daemon_->wait_log("uid 23456"));
  EXPECT_EQ(count(daemon_->log(), "uid 23456:"), 1U) << daemon_->log();
}

TEST_F(Peers, C140AMemberOfTheGroupMapsAlsoByASupplementaryGroup) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as another user";
  const std::string group = std::to_string(kGroup);
  start("access: { map: { groups: [" + group + "] } }\n"
        "listen: { unix: { mode: \"0660\", group: " + group + " } }");

  EXPECT_EQ(as_user(kMember, kMember, {kGroup}, [&] { return greeting(shared_socket()); })
                .rfind("mapped row ", 0), 0U);
  EXPECT_EQ(as_user(kMember, kGroup, {}, [&] { return greeting(shared_socket()); })
                .rfind("mapped row ", 0), 0U);
  EXPECT_EQ(as_user(kStranger, kStranger, {}, [&] { return greeting(shared_socket()); }),
            "no connection: Permission denied");
}

TEST_F(Peers, C140TheFilesAreClosedToOtherUsers) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as another user";
  start("access: { map: { users: [\"*\"] } }\nlisten: { unix: { mode: \"0666\" } }");

  const std::string opened = as_user(kStranger, kStranger, {}, [&] {
    std::string out;
    for (const char* name : {"rules", "state", "stats", "lock"}) {
      for (const int flags : {O_RDONLY, O_RDWR}) {
        out += ::open((place_.memory() + "/" + name).c_str(), flags) < 0 ? '-' : 'o';
      }
    }
    return out + (::access(place_.memory().c_str(), X_OK) == 0 ? "x" : "-");
  });

  EXPECT_EQ(opened, "---------");
}

TEST_F(Peers, C140AMemberMayLookButNotSteer) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as another user";
  start("access: { map: { users: [23457] } }\nlisten: { unix: { mode: \"0666\" } }");

  const std::string answer = as_user(kMember, kMember, {}, [&] {
    RawPeer peer(shared_socket());
    if (!peer.greet(Want::Ask)) return std::string("refused");
    if (!peer.read("status")) return std::string("may not look");
    wire::Steer reload;
    reload.verb = wire::kVerbConfigReload;
    return peer.steer(reload) ? std::string("steered") : peer.refusal().text;
  });

  EXPECT_NE(answer.find("right steer"), std::string::npos) << answer;
}

TEST_F(Peers, C064AndC049ClientsThatEndInEveryWayLeaveFilesAndInodesAsTheyWere) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as other users";
  start("access: { map: { users: [\"*\"] } }\nlisten: { unix: { mode: \"0666\" } }");
  const auto listing = [&] {
    std::string out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.path())) {
      struct stat status {};
      ::lstat(entry.path().c_str(), &status);
      out += entry.path().string() + " " + std::to_string(status.st_ino) + "\n";
    }
    return out;
  };
  const std::string before = listing();

  for (int i = 0; i < 100; ++i) {
    const uid_t uid = i % 2 == 0 ? kStranger : kMember;
    as_user(uid, uid, {}, [&] {
      RawPeer peer(shared_socket());
      peer.greet(Want::Map);
      switch (i % 4) {
        case 0: ::kill(::getpid(), SIGKILL); break;
        case 1: ::kill(::getpid(), SIGTERM); break;
        case 2: ::_exit(0);
        default: break;
      }
      return std::string("left");
    });
  }

  EXPECT_EQ(listing(), before);
  EXPECT_EQ(greeting(shared_socket()).rfind("mapped row ", 0), 0U);
}

TEST_F(Peers, C051AnotherLayoutIsRefusedWithBothNumbers) {
  start("");
  wire::Hello hello = RawPeer::hello(Want::Map, "old-library");
  hello.layout = {7, 3, 0};

  const std::string answer = greeting(place_.socket(), hello);

  const std::string here = std::to_string(shm::kAbiMajor) + "." + std::to_string(shm::kAbiMinor);
  EXPECT_NE(answer.find("not mapped: layout 7.3 there, " + here + " here"), std::string::npos)
      << answer;
  EXPECT_TRUE(daemon_->wait_log("'old-library'"));
}

/// Runs `body` in a grandchild inside new name spaces of `flags`; `prepare` before it is forked.
std::string in_name_space(int flags, const std::function<void()>& prepare,
                          const std::function<std::string()>& body) {
  return in_child([&] {
    if (::unshare(flags) != 0) return std::string("unshare failed");
    prepare();
    return in_child(body);
  });
}

TEST_F(Peers, C032AnotherTimeNameSpaceIsNotMappedAndSaid) {
  if (!is_root()) GTEST_SKIP() << "needs root for a time name space";
  start("");
  for (const char* offset : {"boottime 86400 0\nmonotonic 86400 0\n",
                             "boottime 3600 0\nmonotonic -3600 0\n"}) {
    const std::string answer = in_name_space(
        CLONE_NEWTIME, [&] { write_file("/proc/self/timens_offsets", offset); },
        [&] { return greeting(place_.socket()); });

    EXPECT_NE(answer.find("not mapped: another time name space: clocks differ by"),
              std::string::npos) << answer;
  }
  EXPECT_TRUE(daemon_->wait_log("another time name space"));
}

TEST_F(Peers, C058ClientsWithTheSamePidInTwoNameSpacesHaveRowsOfTheirOwn) {
  if (!is_root()) GTEST_SKIP() << "needs root for a pid name space";
  start("");
  const auto attach = [&] {
    return in_name_space(CLONE_NEWPID, [] {}, [&] {
      return std::to_string(::getpid()) + " " + greeting(place_.socket());
    });
  };

  const std::string first = attach(), second = attach();

  EXPECT_EQ(first.rfind("1 mapped row ", 0), 0U) << first;
  EXPECT_EQ(second.rfind("1 mapped row ", 0), 0U) << second;
  RawPeer looker(place_.socket());
  ASSERT_TRUE(looker.greet(Want::Ask));
  EXPECT_TRUE(eventually([&] { return looker.read("clients")->rows.size() == 1; }));   // the looker
}

TEST_F(Peers, C058AnOwnerWhosePidIsNotVisibleLivesAsLongAsItsConnection) {
  if (!is_root()) GTEST_SKIP() << "needs root for a pid name space";
  const std::string answer = in_child([&] {
    if (::unshare(CLONE_NEWPID) != 0) return std::string("unshare failed");
    place_.write_config("limits: { api: { rate: 10/s } }\n");
    DaemonProcess inside(place_);   // pid 1 of its own name space; we are outside of it
    if (!inside.ready()) return "daemon: " + inside.log();
    RawPeer looker(place_.socket());
    if (!looker.greet(Want::Ask)) return std::string("looker refused");
    std::string watched;
    {
      RawPeer peer(place_.socket());
      if (!peer.greet(Want::Map)) return std::string("refused");
      watched = *looker.read("clients")->rows.at(0).find("watched")->as_string();
    }
    const bool gone = eventually([&] { return looker.read("clients")->rows.size() == 1; });
    return watched + (gone ? ", then gone" : ", then still there");
  });

  EXPECT_EQ(answer, "connection, then gone");
}

TEST_F(Peers, C050RemovedNamesAreSaidOnceAndTheMemoryMovesToNamedFiles) {
  start("");
  RawPeer attached(place_.socket());
  ASSERT_TRUE(attached.greet(Want::Map));
  const auto inode_of = [](int fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    return status.st_ino;
  };
  const auto before = inode_of(attached.files().at(1).get());

  for (const char* name : {"rules", "state", "stats"}) {
    ::unlink((place_.memory() + "/" + name).c_str());
  }

  EXPECT_TRUE(daemon_->wait_log("removed or replaced memory files"));
  EXPECT_TRUE(daemon_->wait_log("moved to newly named files"));
  struct stat named {};
  ASSERT_EQ(::stat((place_.memory() + "/state").c_str(), &named), 0);
  EXPECT_NE(named.st_ino, before);
  for (int i = 0; i < 20; ++i) {
    RawPeer peer(place_.socket());
    ASSERT_TRUE(peer.greet(Want::Map)) << peer.refusal().text;
    EXPECT_EQ(inode_of(peer.files().at(1).get()), named.st_ino);
  }
  const auto frame = attached.receive();
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->header.type, wire::MessageType::Goaway);
  EXPECT_EQ(wire::decode<wire::Goaway>(frame->payload)->reason,
            wire::GoawayReason::SupersededMemory);
  RawPeer looker(place_.socket());
  ASSERT_TRUE(looker.greet(Want::Ask));
  EXPECT_EQ(looker.read("status")->rows.at(0).find("names_lost")->as_bool(), false);
  EXPECT_EQ(count(daemon_->log(), "removed or replaced memory files"), 1U);
}

TEST_F(Peers, C050ARemovedSocketIsMadeAnew) {
  start("");
  RawPeer before(place_.socket());
  ASSERT_TRUE(before.greet(Want::Ask));

  ::unlink(place_.socket().c_str());

  EXPECT_TRUE(eventually([&] { return RawPeer(place_.socket()).greet(Want::Ask).has_value(); }));
  EXPECT_EQ(before.ping(1)->value, 1U);
  EXPECT_TRUE(daemon_->wait_log("the socket was removed; made anew"));
  EXPECT_EQ(daemon_->stop(), 0);
  EXPECT_NE(::access(place_.socket().c_str(), F_OK), 0);
}

TEST_F(Peers, ADaemonOfAnOrdinaryUserServesItsOwnUser) {
  if (!others_may_run(DaemonProcess::program())) GTEST_SKIP() << kBuildIsClosed;
  if (!is_root()) GTEST_SKIP() << "needs root to start it as another user";
  place_.write_config("limits: { api: { rate: 10/s } }\n");
  ASSERT_EQ(::chown(place_.path().c_str(), kMember, kMember), 0);
  DaemonOptions options;
  options.uid = kMember;
  daemon_.emplace(place_, options);
  ASSERT_TRUE(daemon_->ready()) << daemon_->log();

  EXPECT_EQ(as_user(kMember, kMember, {}, [&] { return greeting(place_.socket()); })
                .rfind("mapped row ", 0), 0U);
  EXPECT_EQ(greeting(place_.socket()).rfind("mapped row ", 0), 0U) << "root has all rights";
  EXPECT_EQ(as_user(kStranger, kStranger, {}, [&] { return greeting(place_.socket()); }),
            "no connection: Permission denied");
}

TEST_F(Peers, AStoppedDaemonServesWhoWaitedForIt) {
  start("");
  daemon_->signal(SIGSTOP);
  RawPeer waiting(place_.socket());
  const wire::Hello hello = RawPeer::hello(Want::Map);
  waiting.send_frame(wire::MessageType::Hello, 1, *wire::encode(hello));

  daemon_->signal(SIGCONT);

  const auto frame = waiting.receive();
  ASSERT_TRUE(frame);
  EXPECT_EQ(wire::decode<wire::Welcome>(frame->payload)->mode, Want::Map);
}

}  // namespace
}  // namespace cutwater::test
