// SPDX-License-Identifier: Apache-2.0
// The book of sessions whose clients ended unheard: its bound, what is not kept, a forked child.
#include "src/ask/left_behind.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cutwater::client {
namespace {

const std::string kNowhere = "/nonexistent/cutwater.sock";

TEST(LeftBehind, KeepsSoManyAndAChildHasNone) {
  EXPECT_TRUE(LeftBehind::add(kNowhere, ""));
  EXPECT_EQ(LeftBehind::size(), 0U) << "no token, nothing to say";
  EXPECT_TRUE(LeftBehind::end_all(kNowhere, "test", Deadline::in(Nanos{0})));
  for (std::size_t i = 0; i < LeftBehind::kMost; ++i) {
    ASSERT_TRUE(LeftBehind::add(kNowhere, "token"));
  }

  EXPECT_FALSE(LeftBehind::add(kNowhere, "token"));
  EXPECT_EQ(LeftBehind::size(), LeftBehind::kMost);
  EXPECT_TRUE(LeftBehind::end_all("/another.sock", "test", Deadline::in(Nanos{0})));
  const std::uint64_t added = LeftBehind::added();
  EXPECT_FALSE(LeftBehind::end_all(kNowhere, "test", Deadline::in(std::chrono::seconds{1})));
  EXPECT_EQ(LeftBehind::size(), LeftBehind::kMost) << "nobody answers: kept";
  EXPECT_GT(LeftBehind::added(), added) << "and looked at again";

  const pid_t child = fork();
  if (child == 0) _exit(LeftBehind::size() == 0 ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cutwater::client
