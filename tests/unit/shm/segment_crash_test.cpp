// SPDX-License-Identifier: Apache-2.0
// Kills the creator at every named stop of the making of a memory (C044, C045). At each: nobody can
// map anything that is not whole, and the next creation succeeds without help.
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "base/sync_point.hpp"
#include "shm/image.hpp"
#include "shm/segment.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::TmpfsDirectory;

constexpr int kStopsMax = 100;
int stops_left = 0;

/// Runs `body` in a child that is killed at its `stop`-th named stop; false when it never came
/// there.
bool kill_at_stop(int stop, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    stops_left = stop;
    sync_point_hook = [](const char* name) {
      const bool ours = std::strncmp(name, "segment.", 8) == 0;
      if (ours && --stops_left == 0) raise(SIGKILL);
    };
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

void expect_whole(const Segment& segment) {
  EXPECT_TRUE(image_is_whole(segment.view(), 0));
  EXPECT_EQ(segment.view().current(), std::uint64_t{1} << kCurrentGenerationShift);
}

/// What a creation left as `*.next` is either refused or whole: the ready word is stored last.
void expect_next_not_half_made(const TmpfsDirectory& directory) {
  UniqueFd fds[3];
  SegmentFiles files;
  const char* const names[] = {"rules", "state", "stats"};
  for (std::size_t i = 0; i < 3; ++i) {
    fds[i].reset(
        openat(directory.fd(), (std::string(names[i]) + ".next").c_str(), O_RDWR | O_CLOEXEC));
    if (!fds[i]) fds[i].reset(openat(directory.fd(), names[i], O_RDWR | O_CLOEXEC));
    if (!fds[i]) return;
    files[i] = fds[i].get();
  }
  const auto segment = Segment::map(files, Access::Client);
  if (segment) expect_whole(*segment);
}

// covers: C045
TEST(SegmentCrash, AKilledCreationLeavesNothingOrAWholeMemory) {
  int stop = 1;
  for (; stop < kStopsMax; ++stop) {
    SCOPED_TRACE("stop " + std::to_string(stop));
    TmpfsDirectory directory;
    const bool killed = kill_at_stop(
        stop, [&] { (void)Segment::create_files(directory.fd(), test::small_options()); });

    expect_next_not_half_made(directory);
    const auto found = Segment::open_files(directory.fd(), Access::Client);
    if (found) {
      expect_whole(*found);
    } else {
      EXPECT_EQ(found.error().code(), Errc::NoDaemon) << found.error().text();
    }

    const auto again = Segment::create_files(directory.fd(), test::small_options());
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_TRUE(Segment::open_files(directory.fd(), Access::Client));
    EXPECT_EQ(directory.entries(), 3U);
    if (!killed) break;
  }
  EXPECT_GT(stop, 15);   // the stops were really passed
}

// covers: C045
TEST(SegmentCrash, AKilledReplacementNeverMixesTwoMemories) {
  for (int stop = 1; stop < kStopsMax; ++stop) {
    SCOPED_TRACE("stop " + std::to_string(stop));
    TmpfsDirectory directory;
    ASSERT_TRUE(Segment::create_files(directory.fd(), test::small_options()));
    const bool killed = kill_at_stop(
        stop, [&] { (void)Segment::create_files(directory.fd(), test::small_options()); });

    const auto found = Segment::open_files(directory.fd(), Access::Client);
    if (found) {
      expect_whole(*found);
    } else {
      EXPECT_EQ(found.error().code(), Errc::NoDaemon) << found.error().text();
    }
    if (!killed) return;
  }
  FAIL() << "a creation has more stops than expected";
}

}  // namespace
}  // namespace cutwater::shm
