// SPDX-License-Identifier: Apache-2.0
// A client without a daemon: what it answers, how it says so, and how it comes back by itself.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>

#include <cutwater/client.hpp>

#include "shm/directory.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "src/core.hpp"
#include "unit/client/ask_daemon.hpp"

namespace cutwater::test {
namespace {

using namespace std::chrono_literals;

/// A variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

/// A memory with limit "api", 5 tokens that do not come back in a test, and its three files.
class Memory {
 public:
  Memory() {
    char name[] = "/dev/shm/cutwater-absent-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    folder_fd_ = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    shm::SegmentOptions options;
    options.capacity.keys = 1024;
    options.capacity.limits = 16;
    options.capacity.processes = 16;
    options.capacity.stripes = 4;
    options.capacity.events = 1024;
    segment_.emplace(std::move(shm::Segment::create_files(folder_fd_, options).value()));
    rows_.emplace(segment_->view(), true);
    row_ = rows_->grant({.pid = static_cast<std::uint32_t>(getpid()), .name = "tests"}).value();
    publish("api");
  }
  ~Memory() {
    close(folder_fd_);
    std::filesystem::remove_all(folder_);
  }

  void publish(const std::string& name) {
    shm::Publisher publisher(segment_->view());
    rule::LimitSettings limit;
    limit.name = name;
    limit.windows.push_back({.rate_count = 1, .rate_period_ns = rule::kNanosPerDay, .burst = 5});
    ASSERT_TRUE(publisher.publish({limit}, 1));
  }

  /// The daemon gives this memory to whoever comes from now on. The files live as long as `this`.
  void given_by(AskDaemon& daemon) {
    const shm::SegmentFiles fds = shm::open_descriptors(folder_fd_, false).value();
    for (const int fd : fds) fds_.emplace_back(fd);
    daemon.files.clear();
    for (const shm::UniqueFd& fd : fds_) daemon.files.push_back(fd.get());
    daemon.welcome.mode = wire::Want::Map;
    daemon.welcome.descriptors = {"rules", "state", "stats"};
    daemon.welcome.row_index = row_.index;
    daemon.welcome.row_generation = row_.generation;
    daemon.welcome.clock_ns = static_cast<std::uint64_t>(view().clock.now());
  }

  void supersede() {
    __atomic_fetch_or(&view().rules_control->current, shm::kCurrentSupersededBit,
                      __ATOMIC_SEQ_CST);
  }
  const shm::View& view() const { return segment_->view(); }

 private:
  std::string folder_;
  int folder_fd_ = -1;
  std::optional<shm::Segment> segment_;
  std::optional<shm::RowTable> rows_;
  shm::RowGrant row_;
  std::vector<shm::UniqueFd> fds_;
};

class AbsentTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines;

  ClientOptions options(std::optional<IfAbsent> if_absent) {
    ClientOptions out;
    out.name = "asker";
    out.timeout = out.ask_timeout = 60s;
    out.if_absent = if_absent;
    out.log = [this](std::string_view line) { lines.emplace_back(line); };
    return out;
  }
  static constexpr const char* kNowhere = "unix:/nowhere/at/all.sock";
};

TEST_F(AbsentTest, FailIsAnErrorOfOpen) {
  EXPECT_EQ(Client::open(kNowhere, options({})).error().code(), Errc::NoDaemon);
  EXPECT_EQ(Client::open(kNowhere, options(IfAbsent::Fail)).error().code(), Errc::NoDaemon);
  EXPECT_TRUE(lines.empty());
}

TEST_F(AbsentTest, DenyRefusesAndSaysSo) {   // C062
  auto client = Client::open(kNowhere, options(IfAbsent::Deny));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  Key alice = api.key("alice");
  Decision batch[2];
  const std::string_view keys[] = {"a", "b"};
  api.acquire_batch(keys, batch);

  for (const Decision& d : {api.try_acquire("k"), api.acquire("k", {.max_wait = 1h}),
                            api.reserve("k", {}), api.peek("k"), alice.try_acquire(),
                            alice.peek(), std::move(batch[0]), std::move(batch[1])}) {
    EXPECT_EQ(d.reason(), Reason::Degraded);
    EXPECT_TRUE(d.degraded());
    EXPECT_TRUE(d.is_hint());
    EXPECT_GE(d.retry_after(), 100ms);
    EXPECT_EQ(d.limit_name(), "api");
    EXPECT_EQ(d.decided_by(), DecidedBy::Private);
  }
  EXPECT_EQ(client->status().way, ClientWay::Absent);
  EXPECT_EQ(client->status().degraded, 8U);
  EXPECT_NE(client->status().why.find("/nowhere/at/all.sock"), std::string::npos);
  ASSERT_EQ(lines.size(), 1U) << "never one per call";
  EXPECT_NE(lines[0].find("if_absent: deny"), std::string::npos);
  EXPECT_NE(lines[0].find("mount that directory"), std::string::npos);
  EXPECT_EQ(client->limit("not a name").error().code(), Errc::UnknownName);
}

TEST_F(AbsentTest, AllowAllowsAndSaysSo) {
  auto client = Client::open(kNowhere, options(IfAbsent::Allow));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();

  Decision d = api.try_acquire("k");

  EXPECT_TRUE(d.allowed());
  EXPECT_TRUE(d.degraded());
  EXPECT_EQ(d.retry_after(), 0ns);
  EXPECT_EQ(api.refund(d).error().code(), Errc::InvalidArgument) << "nothing was charged";
  EXPECT_EQ(api.try_acquire(std::string(kMaxKeyBytes + 1, 'x')).reason(), Reason::KeyTooLong);
}

TEST_F(AbsentTest, InProcessDecidesByLimitsOfItsOwn) {
  ClientOptions wanted = options(IfAbsent::InProcess);
  wanted.in_process = "limits: {api: {rate: 1/d, burst: 2}}\n";
  auto client = Client::open(kNowhere, wanted);
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();

  Decision first = api.try_acquire("k");
  const Decision second = api.acquire("k", {});
  const Decision third = api.try_acquire("k");

  EXPECT_EQ(first.remaining(), 1U);
  EXPECT_TRUE(first.degraded());
  EXPECT_TRUE(second.allowed());
  EXPECT_EQ(third.reason(), Reason::Limit);
  EXPECT_TRUE(third.degraded());
  EXPECT_EQ(third.decided_by(), DecidedBy::Private);
  EXPECT_EQ(api.refund(first).error().code(), Errc::TooLate) << "by the limiter that charged";
  EXPECT_EQ(client->limit("other")->try_acquire("k").reason(), Reason::Degraded);
  EXPECT_EQ(client->status().degraded, 4U);
}

TEST_F(AbsentTest, WhatIsWrongIsAnErrorWhateverTheChoice) {
  ClientOptions wanted = options(IfAbsent::InProcess);
  EXPECT_EQ(Client::open(kNowhere, wanted).error().code(), Errc::InvalidArgument);
  wanted.in_process = "limits: {api: {rat: 1/d}}\n";
  EXPECT_EQ(Client::open(kNowhere, wanted).error().code(), Errc::InvalidConfig);
  EXPECT_EQ(Client::open("nonsense", options(IfAbsent::Allow)).error().code(),
            Errc::InvalidArgument);
  for (const Nanos timeout : {Nanos{999'999}, Nanos{60'000'000'001}}) {
    wanted = options(IfAbsent::Allow);
    wanted.ask_timeout = timeout;
    EXPECT_EQ(Client::open(kNowhere, wanted).error().code(), Errc::InvalidArgument);
  }
}

TEST_F(AbsentTest, TheEnvironmentChoosesForAProgramThatDidNot) {
  const Variable choice("CUTWATER_IF_ABSENT", "allow");

  auto client = Client::open(kNowhere, options({}));
  ASSERT_TRUE(client) << client.error().text();
  EXPECT_TRUE(client->limit("api")->try_acquire("k").allowed());
  EXPECT_EQ(Client::open(kNowhere, options(IfAbsent::Fail)).error().code(), Errc::NoDaemon);

  setenv("CUTWATER_IF_ABSENT", "alow", 1);
  const auto wrong = Client::open(kNowhere, options({}));
  EXPECT_EQ(wrong.error().code(), Errc::InvalidArgument);
  EXPECT_EQ(wrong.error().text(),
            "CUTWATER_IF_ABSENT is fail, deny, allow or in-process, not \"alow\"");
}

TEST_F(AbsentTest, EnabledFalseSwitchesLimitsOff) {
  AskDaemon daemon;
  const Variable off("CUTWATER_ENABLED", "false");

  auto client = Client::open(daemon.address(), options({}));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("anything").value();

  EXPECT_TRUE(api.try_acquire("k", 1000).allowed());
  EXPECT_TRUE(api.try_acquire("k").degraded()) << "not decided by the rule";
  EXPECT_EQ(client->status().way, ClientWay::Off);
  EXPECT_EQ(client->status().degraded, 0U);
  EXPECT_EQ(daemon.hellos, 0U);
  EXPECT_EQ(lines.size(), 1U);
  setenv("CUTWATER_ENABLED", "perhaps", 1);
  EXPECT_EQ(Client::open(daemon.address(), options({})).error().code(), Errc::InvalidArgument);
  for (const char* const on : {"true", "fallback"}) {
    setenv("CUTWATER_ENABLED", on, 1);
    EXPECT_EQ(Client::open(daemon.address(), options({}))->status().way, ClientWay::Socket);
  }
}

TEST_F(AbsentTest, ADaemonThatComesLaterIsFoundAndMapped) {
  AskDaemon daemon;
  Memory memory;
  daemon.stop();
  auto client = Client::open(daemon.address(), options(IfAbsent::Deny));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  Key early = api.key("early");
  EXPECT_TRUE(api.try_acquire("k").degraded());

  memory.given_by(daemon);
  daemon.start();
  Decision d = api.try_acquire("k");
  while (d.degraded()) d = api.try_acquire("k");

  EXPECT_EQ(d.decided_by(), DecidedBy::Memory);
  EXPECT_EQ(d.remaining(), 4U);
  EXPECT_EQ(api.refund(d).value(), 1U) << "the limit of before gives back what another decided";
  EXPECT_EQ(early.try_acquire().remaining(), 4U);
  EXPECT_EQ(client->limit("api")->try_acquire("early").remaining(), 3U);
  EXPECT_EQ(client->status().way, ClientWay::Memory);
  EXPECT_EQ(lines.size(), 2U);
  daemon.stop();
  EXPECT_TRUE(api.try_acquire("k").allowed()) << "a mapped client needs no daemon";
  EXPECT_EQ(client->limit("other").error().code(), Errc::UnknownName);
}

TEST_F(AbsentTest, ASupersededMemoryIsLeftForItsSuccessor) {   // C048
  AskDaemon daemon;
  Memory old;
  old.given_by(daemon);
  auto client = Client::open(daemon.address(), options(IfAbsent::Deny));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  Key handle = api.key("k");
  Decision before = api.try_acquire("k");
  EXPECT_EQ(before.remaining(), 4U);

  Memory next;
  next.given_by(daemon);
  old.supersede();
  const Decision first = api.try_acquire("k");
  const Decision second = api.reserve("k", {});

  EXPECT_EQ(first.decided_by(), DecidedBy::Memory);
  EXPECT_EQ(first.remaining(), 4U) << "decided in the new memory, by no answer lost";
  EXPECT_EQ(second.remaining(), 3U);
  EXPECT_EQ(api.refund(before).error().code(), Errc::TooLate);
  EXPECT_EQ(client->limit("api")->try_acquire("k").remaining(), 2U);
  EXPECT_EQ(client->status().attached, 2U);
  EXPECT_EQ(handle.try_acquire().remaining(), 1U) << "it has its bytes, and is hashed anew";
  EXPECT_EQ(handle.peek().remaining(), 0U);
}

TEST_F(AbsentTest, ASupersededMemoryWithoutASuccessorIsAskedAbout) {
  AskDaemon daemon;
  Memory old;
  old.given_by(daemon);
  auto client = Client::open(daemon.address(), options(IfAbsent::Deny));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  daemon.welcome.mode = wire::Want::Ask;
  daemon.welcome.why = "the memory is being copied";

  old.supersede();

  EXPECT_EQ(api.try_acquire("k").decided_by(), DecidedBy::Socket);
  EXPECT_EQ(client->status().why, "the memory is being copied");
  daemon.stop();
  EXPECT_TRUE(api.try_acquire("k").degraded());
}

TEST_F(AbsentTest, ThreadsOverASupersededMemoryAllMoveOn) {
  AskDaemon daemon;
  Memory old, next;
  old.given_by(daemon);
  auto client = Client::open(daemon.address(), options(IfAbsent::Deny));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  std::atomic<bool> superseded{false};
  std::atomic<int> lost{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!superseded) (void)api.peek("k");
      for (int i = 0; i < 100; ++i) {
        if (api.peek("k").degraded()) ++lost;
      }
    });
  }
  next.given_by(daemon);
  old.supersede();
  superseded = true;
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(lost, 0) << "the first attempt is waited for";
  EXPECT_EQ(client->status().attached, 2U);
}

TEST_F(AbsentTest, OutOfDescriptorsIsAbsentAndPasses) {   // C123
  AskDaemon daemon;
  auto client = Client::open(daemon.address_to_ask(), options(IfAbsent::Deny));
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  const pid_t pid = fork();                      // which has to open a session of its own
  if (pid == 0) {
    rlimit usual{};
    getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit none{0, usual.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    const bool absent = api.try_acquire("k").degraded();
    const bool why = client->status().why.find("Too many open files") != std::string::npos;
    setrlimit(RLIMIT_NOFILE, &usual);
    while (api.try_acquire("k").degraded()) {}
    _exit(absent && why ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(api.try_acquire("k").allowed());
}

TEST_F(AbsentTest, ALogThatAsksALimitDoesNotStandStill) {
  ClientOptions wanted = options(IfAbsent::Deny);
  Limit* asked = nullptr;
  int said = 0;
  wanted.log = [&](std::string_view) {
    ++said;
    if (asked != nullptr) (void)asked->try_acquire("k");
  };
  AskDaemon daemon;
  auto client = Client::open(daemon.address_to_ask(), wanted);
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  asked = &api;
  daemon.stop();

  EXPECT_TRUE(api.try_acquire("k").degraded());
  EXPECT_EQ(said, 2);
}

}  // namespace
}  // namespace cutwater::test
