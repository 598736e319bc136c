// SPDX-License-Identifier: Apache-2.0
#include "janitor.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/counters.hpp"
#include "shm/image.hpp"
#include "shm/limit/bucket.hpp"
#include "shm/limit/key_hash.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

constexpr std::uint64_t kTick = 100'000'000;

class JanitorTest : public testing::Test {
 protected:
  JanitorTest() {
    config_.log.file = place_.path() + "/log";
    config_.instance.memory_directory = place_.memory();
    config_.capacity = {.keys = 1024, .limits = 4, .processes = 16, .stripes = 4, .events = 1024};
    rule::LimitSettings limit;
    limit.windows.resize(1);
    limit.name = "api";
    limit.windows[0].rate_count = 1;
    limit.windows[0].rate_period_ns = rule::kNanosPerSecond;
    limit.windows[0].burst = 10;
    config_.limits = {limit};
    log_ = Log::open(config_.log, false).value();
    open();
  }
  void open() {
    std::vector<std::string> remarks;
    janitor_.reset();
    memory_.reset();
    memory_ = Memory::open(config_, {.stepped = stepped_, .runtime_directory = {},
                                     .xdg_runtime_dir = {}}, remarks).value();
    janitor_ = std::make_unique<Janitor>(loop_, *memory_, *log_);
  }
  void ticks(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) janitor_->tick(now_ += kTick);
  }
  bool turn_until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      loop_.restart();
      loop_.poll();
      return condition();
    });
  }
  const shm::View& view() const { return memory_->view(); }
  shm::RowState state_of(shm::RowGrant row) const {
    shm::RowInfo info;
    EXPECT_TRUE(shm::read_row(view(), row.index, info));
    return info.word.state;
  }
  /// A row for a process, watched, with a connection.
  shm::RowGrant attach(pid_t pid, std::uint64_t connection) {
    PeerProcess peer;
    peer.pid = static_cast<std::uint32_t>(pid);
    peer.start_time = shm::process_start_time(peer.pid);
    return janitor_->attach({.peer = &peer,
                             .pidfd = open_known_process(peer.pid, peer.start_time).value(),
                             .connection = connection,
                             .name = "worker",
                             .token = std::nullopt}).value();
  }
  /// A process that lives until it is ended, or we are. `maps`: forked from us, it keeps our
  /// mapping (and our lock); else it is another program.
  static pid_t sleeper(bool maps) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (!maps) ::execl("/bin/sleep", "sleep", "1000", nullptr);
      while (true) ::pause();
    }
    const auto is_sleep = [&] {
      return test::read_file("/proc/" + std::to_string(pid) + "/comm") == "sleep\n";
    };
    EXPECT_TRUE(maps || test::eventually(is_sleep));
    return pid;
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  test::ScratchPlace place_;
  config::Config config_;
  bool stepped_ = true;
  std::unique_ptr<Log> log_;
  asio::io_context loop_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Janitor> janitor_;
  std::uint64_t now_ = 1'000'000'000;
};

TEST_F(JanitorTest, AKilledProcessGivesRowAndStripesBack) {
  const pid_t pid = sleeper(false);
  const shm::RowGrant row = attach(pid, 9);
  const std::uint64_t owner = std::uint64_t{row.index} << 32 | row.generation;
  ASSERT_FALSE(shm::claim_stripe(view(), {owner, 1}).shared);

  end(pid);

  EXPECT_TRUE(turn_until([&] { return state_of(row) == shm::RowState::Free; }));
  EXPECT_EQ(shm::stripes_in_use(view()), 0U);
}

TEST_F(JanitorTest, AnOrphanThatDoesNotMapTheMemoryIsGivenBack) {
  const pid_t pid = sleeper(true), stranger = sleeper(false);
  const shm::RowGrant kept = attach(pid, 9), lost = attach(stranger, 10);

  janitor_->connection_ended(9, false, now_);
  janitor_->connection_ended(10, false, now_);
  EXPECT_EQ(state_of(lost), shm::RowState::Orphan);
  ticks(51);

  EXPECT_TRUE(turn_until([&] { return state_of(lost) == shm::RowState::Free; }));
  EXPECT_EQ(state_of(kept), shm::RowState::Orphan);
  end(pid);
  end(stranger);
}

TEST_F(JanitorTest, AdoptsRowsOfTheLivingOnly) {
  const pid_t living = sleeper(false), dead = sleeper(false);
  const shm::RowGrant kept = attach(living, 9), reaped = attach(dead, 10);
  janitor_.reset();   // the daemon is gone
  end(dead);
  open();

  const Janitor::Adopted adopted = janitor_->adopt_rows(now_);

  EXPECT_EQ(adopted.kept, 1U);
  EXPECT_EQ(adopted.reaped, 1U);
  EXPECT_EQ(state_of(kept), shm::RowState::Live);
  EXPECT_EQ(state_of(reaped), shm::RowState::Free);
  end(living);
  EXPECT_TRUE(turn_until([&] { return state_of(kept) == shm::RowState::Free; }));
}

TEST_F(JanitorTest, C143ScribbledRulesArePublishedAgainWithinAMinute) {
  const auto image = view().current() & shm::kCurrentImageBit;
  auto* bytes = const_cast<std::uint8_t*>(view().image[image]);
  for (std::uint64_t i = sizeof(shm::ImageHead); i < view().image_length; i += 7) bytes[i] ^= 0x5a;

  ticks(Janitor::kTicksPerMinute);

  const std::uint64_t current = view().current();
  EXPECT_TRUE(shm::image_is_whole(view(), static_cast<int>(current & shm::kCurrentImageBit)));
  EXPECT_EQ(janitor_->repairs(), 1U);
  EXPECT_NE(shm::find_limit(view(), "api").index, shm::kNoLimit);
  ticks(Janitor::kTicksPerMinute);
  EXPECT_EQ(janitor_->repairs(), 1U);
}

TEST_F(JanitorTest, AScribbledCurrentIsRepairedToo) {
  __atomic_fetch_xor(&view().rules_control->current, std::uint64_t{1}, __ATOMIC_SEQ_CST);

  ticks(Janitor::kTicksPerMinute);

  EXPECT_EQ(janitor_->repairs(), 1U);
  EXPECT_NE(shm::find_limit(view(), "api").index, shm::kNoLimit);
}

TEST_F(JanitorTest, C050LostNamesAreSaidOnce) {
  ticks(Janitor::kTicksPerSecond);
  EXPECT_FALSE(janitor_->names_lost());
  ::unlink((place_.memory() + "/state").c_str());

  ticks(5 * Janitor::kTicksPerSecond);

  EXPECT_TRUE(janitor_->names_lost());
  ASSERT_TRUE(log_->close(std::chrono::seconds{30}));
  const std::string log = test::read_file(config_.log.file);
  EXPECT_NE(log.find("removed or replaced"), std::string::npos);
  EXPECT_EQ(log.find("removed or replaced"), log.rfind("removed or replaced"));
}

TEST_F(JanitorTest, CountsHowFullTheTableIs) {
  const shm::LimitSecret secret = shm::make_limit_secret(view().secret, "api");
  for (int i = 0; i < 100; ++i) {
    shm::BucketAsk ask;
    ask.limit = shm::find_limit(view(), "api");
    ask.key = shm::hash_key(secret, std::to_string(i));
    std::uint64_t hint = shm::kNoSlot;
    DecisionData data;
    ASSERT_EQ(shm::charge(view(), ask, hint, data), shm::Outcome::Answered);
  }

  EXPECT_EQ(janitor_->fill().in_debt, 100U);
  shm::step_clock(view(), view().clock.now() + 2'000'000'000);
  ticks(1);
  EXPECT_EQ(janitor_->fill().in_debt, 0U);
}

TEST_F(JanitorTest, WritesCalendarEdgesAnewWhenTheWallClockWasSet) {
  janitor_.reset();
  memory_.reset();
  config_.limits[0].windows[0] = {.kind = rule::WindowKind::Calendar,
                                  .rate_count = 10,
                                  .rate_period_ns = 0,
                                  .burst = 10,
                                  .unit = rule::CalendarUnit::Minute,
                                  .zone = "UTC"};
  stepped_ = false;
  open();
  const std::int64_t real = memory_->publisher().wall_offset();
  memory_->publisher().set_wall_offset(real - 3'600'000'000'000);  // as if it was an hour earlier
  ASSERT_TRUE(test::eventually([&] { return memory_->publisher().renew().ok(); }));
  const std::uint64_t before = view().current();

  EXPECT_TRUE(test::eventually([&] {  // Busy until the first publication is in force
    ticks(Janitor::kTicksPerSecond);
    return view().current() != before;
  }));

  EXPECT_LT(std::abs(memory_->publisher().wall_offset() - real), Janitor::kClockSetNs);
}

TEST_F(JanitorTest, Beats) {
  shm::step_clock(view(), 7'000'000'000);

  ticks(1);

  EXPECT_EQ(view().rules_control->beat_ns, 7'000'000'000U);
}

}  // namespace
}  // namespace cutwater::server
