// SPDX-License-Identifier: Apache-2.0
// Processes that fork, containers that share nothing but the socket, and a wall clock that jumps.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cutwater/client.hpp>

#include "shm/process_table.hpp"
#include "shm/segment.hpp"
#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

constexpr const char* kNoNameSpace = "no mount name space";

class Fork : public testing::Test {
 protected:
  void start(const std::string& limits) {
    place_.write_config("limits: { " + limits + " }\n");
    daemon_.emplace(place_);
    ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  }
  /// Rows of processes as `clients` shows them: "row.generation state pid".
  std::vector<std::string> rows() const {
    RawPeer looker(place_.socket());
    std::vector<std::string> out;
    if (!looker.greet(wire::Want::Ask)) return {"refused"};
    const auto answer = looker.read("clients");
    for (const wire::Value& row : answer->rows) {
      if (row.find("row")->as_unsigned() == 0U) continue;
      out.push_back(std::to_string(*row.find("row")->as_unsigned()) + "." +
                    std::to_string(*row.find("generation")->as_unsigned()) + " " +
                    *row.find("state")->as_string() + " " +
                    std::to_string(*row.find("pid")->as_unsigned()));
    }
    return out;
  }

  ScratchPlace place_;
  std::optional<DaemonProcess> daemon_;
};

TEST_F(Fork, C066AParentAndItsEightChildrenShareOneBudget) {
  constexpr int kChildren = 8, kCalls = 100'000;
  constexpr std::uint64_t kBurst = 500'000;
  start("shared: { rate: 1/d, burst: " + std::to_string(kBurst) + " }");
  auto client = Client::open(place_.address()).value();
  auto limit = client.limit("shared").value();
  auto* admitted = static_cast<std::uint64_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_TRUE(limit.try_acquire("all").allowed());
  __atomic_fetch_add(admitted, 1, __ATOMIC_RELAXED);
  const auto call = [&] {
    std::uint64_t mine = 0;
    for (int i = 0; i < kCalls; ++i) mine += limit.try_acquire("all").allowed() ? 1 : 0;
    __atomic_fetch_add(admitted, mine, __ATOMIC_RELAXED);
  };
  const std::vector<std::string> before = rows();

  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      call();
      ::_exit(0);
    }
  }
  call();
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

  EXPECT_GE(*admitted, kBurst);
  EXPECT_LE(*admitted, kBurst + 1);
  EXPECT_EQ(rows(), before);   // limits need no row: children have none
  ::munmap(admitted, 4096);
}

TEST_F(Fork, C067AHundredChildrenThatEndInEveryWayLeaveTheParentItsRow) {
  start("shared: { rate: 1/d, burst: 1000000 }");
  auto client = std::make_unique<Client>(Client::open(place_.address()).value());
  auto limit = client->limit("shared").value();
  const std::vector<std::string> before = rows();
  ASSERT_EQ(before.size(), 1U);
  std::fflush(nullptr);

  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      switch (i % 4) {
        case 0: ::_exit(0);
        case 1: ::execl("/bin/true", "true", nullptr); ::_exit(1);
        case 2: client.reset(); ::_exit(0);
        default: limit.try_acquire("k"); ::kill(::getpid(), SIGKILL);
      }
    }
    ASSERT_TRUE(limit.try_acquire("k").allowed());
    ::waitpid(child, nullptr, 0);
  }

  EXPECT_EQ(rows(), before);
  EXPECT_TRUE(limit.try_acquire("k").allowed());
  EXPECT_EQ(daemon_->log().find("bad_frame"), std::string::npos) << daemon_->log();
}

/// What Client::open gives in a mount name space made by `prepare`.
std::string open_in_container(const std::function<bool()>& prepare, const std::string& address) {
  return in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return std::string(kNoNameSpace);   // a right this system withholds: not run
    }
    if (!prepare()) return std::string("the mounts of this test failed");   // ours: a failure
    ::unsetenv("CUTWATER_ADDRESS");
    auto client = Client::open(address);
    if (!client) return std::string(name_of(client.error().code())) + ": " + client.error().text();
    auto limit = client->limit("shared");
    return "left " + std::to_string(limit->try_acquire("k").remaining());
  });
}

TEST_F(Fork, C062AContainerWithoutTheSocketIsToldWhatToMount) {
  if (!is_root()) GTEST_SKIP() << "needs root for a mount name space";
  start("shared: { rate: 1/d, burst: 10 }");
  const auto hide = [] {
    return ::mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0 &&
           ::mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0;
  };

  const std::string nowhere = open_in_container(hide, "");
  const std::string elsewhere = open_in_container(hide, place_.address());

  if (nowhere == kNoNameSpace) GTEST_SKIP() << "this system gives root no mount name space";
  EXPECT_NE(nowhere.find("/run/cutwater/main/cutwater.sock"), std::string::npos) << nowhere;
  EXPECT_NE(nowhere.find("mount"), std::string::npos) << nowhere;
  EXPECT_NE(elsewhere.find(place_.socket()), std::string::npos) << elsewhere;
}

TEST_F(Fork, C062OnlyTheSocketMustBeMountedTheMemoryComesThroughIt) {
  if (!is_root()) GTEST_SKIP() << "needs root for a mount name space";
  start("shared: { rate: 1/d, burst: 10 }");
  auto outside = Client::open(place_.address()).value();
  ASSERT_TRUE(outside.limit("shared")->try_acquire("k").allowed());

  const std::string inside = open_in_container(
      [&] {
        // A container's own empty /dev/shm; the host's socket is all that is mounted into it.
        const int fd = ::open(place_.socket().c_str(), O_PATH | O_CLOEXEC);
        const std::string source = "/proc/self/fd/" + std::to_string(fd);
        return ::mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0 &&
               ::close(::open("/run/door.sock", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0 &&
               ::mount(source.c_str(), "/run/door.sock", nullptr, MS_BIND, nullptr) == 0 &&
               ::mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0;
      },
      "unix:/run/door.sock");

  if (inside == kNoNameSpace) GTEST_SKIP() << "this system gives root no mount name space";
  EXPECT_EQ(inside, "left 8");
}

// The clock that people set says nothing about who lives (law 6).
TEST_F(Fork, C031AWallClockThatJumpsHarmsNobody) {
  const std::string offset = place_.path() + "/offset";
  const auto set_offset = [&](std::int64_t seconds) {
    const std::int64_t ns = seconds * 1'000'000'000;
    const int fd = ::open(offset.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(::pwrite(fd, &ns, sizeof ns, 0), static_cast<ssize_t>(sizeof ns));
    ::close(fd);
  };
  set_offset(0);
  place_.write_config("limits: { shared: { rate: 1/d, burst: 1000 } }\n");
  DaemonOptions options;
  options.environment = {{"LD_PRELOAD", WALL_CLOCK_SHIM},
                         {"TEST_WALL_CLOCK_OFFSET", offset},
                         {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  daemon_.emplace(place_, options);
  ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  std::vector<Client> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(Client::open(place_.address()).value());
  const std::vector<std::string> before = rows();
  ASSERT_EQ(before.size(), 50U);
  const auto ticks = [&] {
    RawPeer looker(place_.socket());
    looker.greet(wire::Want::Ask);
    return looker.read("status")->rows.at(0).find("clock_ns")->as_unsigned().value_or(0);
  };

  for (const std::int64_t seconds : {120, -120, 86'400, 0}) {
    set_offset(seconds);
    // Half a second of the memory's own clock: five ticks with the clock that jumped.
    const std::uint64_t since = ticks();
    ASSERT_TRUE(eventually([&] { return ticks() > since + 500'000'000; }));

    if (seconds == 86'400) {   // the jump is real: the log's own times show it
      daemon_->signal(SIGUSR1);
      ASSERT_TRUE(daemon_->wait_log("log opened anew"));
      const std::string log = daemon_->log();
      const auto line = log.rfind('\n', log.find("log opened anew")) + 1;
      EXPECT_NE(log.substr(line, 10), log.substr(0, 10));
    }
    EXPECT_EQ(rows(), before) << seconds;
    for (Client& client : clients) {
      EXPECT_TRUE(client.limit("shared")->try_acquire("k").allowed()) << seconds;
    }
  }
}

}  // namespace
}  // namespace cutwater::test
