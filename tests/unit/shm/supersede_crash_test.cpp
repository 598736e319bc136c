// SPDX-License-Identifier: Apache-2.0
// A memory takes another's place and is killed at every named stop of it: no debt is forgotten, and
// whatever is offered in the end, nothing decides in the memory before.
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>
#include <memory>

#include "base/sync_point.hpp"
#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "shm/memory_files.hpp"
#include "shm/publisher.hpp"
#include "shm/supersede.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::TmpfsDirectory;

constexpr int kStopsMax = 100;
constexpr std::uint64_t kBurst = 10, kKeys = 8;

int stops_left = 0;
const View* watched = nullptr;
std::vector<std::string> decided_at;

Outcome take(const View& view, const std::string& key, DecisionData& out) {
  const LimitHandle handle = resolve(view, "api");
  return admit(view, {handle.ref, key_of(handle, key), 1, 0}, out);
}

class Supersede : public testing::Test {
 protected:
  Supersede() {
    auto made = Segment::create_files(directory_.fd(), test::stepped_options());
    EXPECT_TRUE(made) << made.error().text();
    Publisher publisher(made->view());
    rule::LimitSettings api;
    api.name = "api";
    api.windows = {rule::rate_window(1, 86400 * rule::kNanosPerSecond, kBurst)};
    EXPECT_TRUE(publisher.publish({api}, 1));
    old_ = std::make_unique<Segment>(std::move(*made));
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      for (std::uint64_t n = 0; n < key; ++n) {
        DecisionData out;
        EXPECT_EQ(take(old_->view(), name(key), out), Outcome::Answered);
      }
    }
  }
  ~Supersede() override { sync_point_hook = nullptr; }

  static std::string name(std::uint64_t key) { return "k" + std::to_string(key); }
  static SegmentOptions larger() {
    SegmentOptions options = test::stepped_options();
    options.capacity.keys = 200;
    options.capacity.limits = 9;
    return options;
  }
  static bool same(const View& a, const View& b) { return std::memcmp(a.uuid, b.uuid, 16) == 0; }

  /// What the owner does at its start.
  Result<Segment> recover() {
    if (auto ended = finish_renames(directory_.fd()); !ended) return ended.error();
    remove_next_files(directory_.fd());
    auto found = Segment::open_files(directory_.fd(), Access::Owner);
    if (!found || !is_superseded(found->view())) return found;
    auto done = supersede(directory_.fd(), *found, larger());
    if (!done) return done.error();
    return std::move(done->segment);
  }
  void expect_all_owed(const View& view) {
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const LimitHandle handle = resolve(view, "api");
      DecisionData out;
      ASSERT_EQ(look(view, {handle.ref, key_of(handle, name(key)), 0, 0}, out), Outcome::Answered);
      EXPECT_EQ(rule::report_of(out).remaining, kBurst - key) << name(key);
    }
  }
  /// Runs supersede() in a child that is killed at its `stop`-th stop; false: it came to its end.
  bool kill_at_stop(int stop) {
    const pid_t child = fork();
    if (child == 0) {
      stops_left = stop;
      sync_point_hook = [](const char*) {
        if (--stops_left == 0) raise(SIGKILL);
      };
      static_cast<void>(supersede(directory_.fd(), *old_, larger()));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  TmpfsDirectory directory_;
  std::unique_ptr<Segment> old_;
};

TEST_F(Supersede, C048NobodyDecidesInTheOldMemoryWhileItIsCopied) {
  watched = &old_->view();
  decided_at.clear();
  sync_point_hook = [](const char* stop) {
    if (std::strncmp(stop, "supersede.", 10) != 0) return;
    const std::string at = stop;
    if (at == "supersede.built" || at == "supersede.named") return;
    DecisionData out;
    if (take(*watched, "k0", out) != Outcome::Superseded) decided_at.push_back(at);
  };

  auto done = supersede(directory_.fd(), *old_, larger());

  sync_point_hook = nullptr;
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(decided_at, std::vector<std::string>{});
  EXPECT_EQ(done->copied.entries, kKeys - 1);
  expect_all_owed(done->segment.view());
  EXPECT_EQ(std::memcmp(old_->view().rules_control->successor, done->segment.view().uuid, 16), 0);
  EXPECT_EQ(directory_.entries(), 3U);
}

class SupersedeCrash : public Supersede, public testing::WithParamInterface<int> {};

TEST_P(SupersedeCrash, C048NoDebtIsForgottenAndOneMemoryDecides) {
  const bool killed = kill_at_stop(GetParam());
  if (killed) {
    // Whoever holds the old memory and whoever may be given one at this moment.
    auto offered = Segment::open_files(directory_.fd(), Access::Client);
    if (offered && !same(offered->view(), old_->view())) {
      EXPECT_TRUE(is_superseded(old_->view()));
      expect_all_owed(offered->view());
    }
  }

  auto found = recover();

  ASSERT_TRUE(found) << found.error().text();
  EXPECT_FALSE(is_superseded(found->view()));
  EXPECT_NE(is_superseded(old_->view()), same(found->view(), old_->view()));
  expect_all_owed(found->view());
  DecisionData out;
  EXPECT_EQ(take(found->view(), "k0", out), Outcome::Answered);
  EXPECT_EQ(directory_.entries(), 3U);
  if (!killed) { EXPECT_EQ(found->capacity().limits, 9U); }
}

// A second kill, while the first one's move is done again.
TEST_P(SupersedeCrash, C048AlsoKilledTwice) {
  kill_at_stop(GetParam());
  ASSERT_TRUE(finish_renames(directory_.fd()));
  remove_next_files(directory_.fd());
  auto between = Segment::open_files(directory_.fd(), Access::Owner);
  ASSERT_TRUE(between) << between.error().text();
  if (same(between->view(), old_->view())) kill_at_stop(GetParam() / 2 + 1);

  auto found = recover();

  ASSERT_TRUE(found) << found.error().text();
  expect_all_owed(found->view());
  EXPECT_NE(is_superseded(old_->view()), same(found->view(), old_->view()));
}

// More than there are: the last ones run to the end (TheStopsAreReallyPassed).
INSTANTIATE_TEST_SUITE_P(EveryStop, SupersedeCrash, testing::Range(1, 21));

TEST_F(Supersede, TheStopsAreReallyPassed) {
  int stops = 0;
  while (stops < kStopsMax && kill_at_stop(stops + 1)) {
    ++stops;
    auto found = recover();
    ASSERT_TRUE(found) << found.error().text();
    if (is_superseded(old_->view())) old_ = std::make_unique<Segment>(std::move(*found));
  }
  EXPECT_GE(stops, 12);
  EXPECT_LT(stops, 20) << "EveryStop needs a larger range";
}

TEST_F(Supersede, SizesFollowTheFirstGroups) {
  const View& view = old_->view();
  Capacity wanted = test::small_options().capacity;
  EXPECT_EQ(successor_capacity(view, wanted), old_->capacity());
  wanted.keys = 65;
  EXPECT_EQ(successor_capacity(view, wanted).keys, 128U);
  wanted.keys = 8;
  EXPECT_EQ(successor_capacity(view, wanted).keys, 64U);
}

TEST_F(Supersede, NoRoomChangesNothing) {
  SegmentOptions huge = larger();
  huge.capacity.keys = std::uint64_t{1} << 30;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_NE(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  const rlimit low{1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);

  const auto refused = supersede(directory_.fd(), *old_, huge);

  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_FALSE(is_superseded(old_->view()));
  EXPECT_EQ(directory_.entries(), 3U);
  DecisionData out;
  EXPECT_EQ(take(old_->view(), "k0", out), Outcome::Answered);
}

}  // namespace
}  // namespace cutwater::shm
