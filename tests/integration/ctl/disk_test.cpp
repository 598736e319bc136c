// SPDX-License-Identifier: Apache-2.0
// Acts by hand while the journal's disk is slow or fails: they are in force, the answer comes and
// says what is so, and nothing else waits for the disk.
#include <gtest/gtest.h>

#include <string>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

using test::eventually;
using test::write_file;

const std::string kYaml =
    "capacity: { keys: 1024 }\n"
    "limits: { api: { rate: 1/s, burst: 5 } }\n"
    "breakers: { fraud: {} }\n";

/// A daemon whose disk does what it is told.
class Disk : public testing::Test {
 protected:
  Disk()
      : instance_(kYaml, {.arguments = {"--clock=stepped"},
                          .environment = {{"LD_PRELOAD", DISK_SHIM},
                                          {"TEST_DISK", order_.config()}}}) {}
  void tell(const std::string& word) const { write_file(order_.config(), word); }
  std::string saved(std::size_t act) const {
    return instance_.json({"journal", "list"})["journal"][act - 1]["saved"];
  }

  ScratchPlace order_;
  Instance instance_;
};

TEST_F(Disk, ASlowOneHoldsUpNoActAndTheAnswerSaysSo) {
  ASSERT_TRUE(instance_.ready()) << instance_.daemon().log();
  tell("hold");

  const auto act = parse(instance_.tool({"breaker", "force-open", "fraud", "-o", "json"}).out);
  const ProgramRun ban = instance_.tool({"limit", "ban", "api", "mallory", "--for", "1h"});

  EXPECT_EQ(act["done"], true);
  EXPECT_EQ(act["saved"], "pending");
  EXPECT_EQ(act["act"], 1);
  EXPECT_EQ(ban.code, 0) << ban.err;
  EXPECT_TRUE(has(ban.out, "in force, but the disk of the journal has not answered")) << ban.out;
  EXPECT_TRUE(has(ban.out, "act 2: `cutwaterctl journal undo 2` ends it")) << ban.out;
  EXPECT_EQ(parse(instance_.tool({"breaker", "get", "fraud", "-o", "json"}).out)["state"],
            "FORCED_OPEN");
  EXPECT_EQ(instance_.tool({"limit", "peek", "api", "mallory"}).code, 1);
  EXPECT_TRUE(has(instance_.tool({"journal", "list"}).out, "stands, being saved"));
  EXPECT_EQ(saved(1), "pending");

  tell("obey");
  EXPECT_TRUE(eventually([&] { return saved(1) == "saved" && saved(2) == "saved"; }));
  EXPECT_FALSE(has(instance_.tool({"journal", "list"}).out, "being saved"));
}

TEST_F(Disk, AFailingOneIsToldUntilItIsMendedAndThenAllIsSaved) {
  ASSERT_TRUE(instance_.ready()) << instance_.daemon().log();
  tell("fail");

  const ProgramRun act = instance_.tool({"breaker", "disable", "fraud", "--note", "at night"});

  EXPECT_EQ(act.code, 0) << act.err;
  EXPECT_TRUE(has(act.out, "NOT saved (cannot be synced: ")) << act.out;
  EXPECT_EQ(saved(1), "failed");
  EXPECT_TRUE(has(instance_.tool({"journal", "list"}).out, "stands, NOT saved"));
  EXPECT_TRUE(has(instance_.tool({"status"}).out, "1 acts in force and NOT saved: cannot be"));
  const ProgramRun doctor = instance_.tool({"doctor"});
  EXPECT_EQ(doctor.code, 4);
  EXPECT_TRUE(has(doctor.out, "1 manual acts are in force and not on the disk")) << doctor.out;

  tell("obey");
  EXPECT_TRUE(eventually([&] { return saved(1) == "saved"; }));
  EXPECT_TRUE(instance_.daemon().wait_log("written anew, what could not be saved is"));
  instance_.daemon().kill(SIGKILL);
  instance_.start_again();
  EXPECT_EQ(instance_.json({"breaker", "get", "fraud"})["state"], "DISABLED");
  EXPECT_EQ(instance_.json({"journal", "list"})["journal"][0]["note"], "at night");
}

TEST_F(Disk, AnActThatWasReplacedSaysByWhichAndIsNotCountedAsUnsaved) {
  ASSERT_TRUE(instance_.ready()) << instance_.daemon().log();
  ASSERT_EQ(instance_.tool({"breaker", "disable", "fraud"}).code, 0);
  tell("fail");

  ASSERT_EQ(instance_.tool({"breaker", "force-open", "fraud"}).code, 0);

  const std::string journal = instance_.tool({"journal", "list"}).out;
  EXPECT_TRUE(has(journal, "1  replaced by 2      DISABLED")) << journal;
  EXPECT_TRUE(has(journal, "2  stands, NOT saved  FORCED_OPEN")) << journal;
  EXPECT_TRUE(has(instance_.tool({"status"}).out, "1 acts in force and NOT saved"));
  const auto rows = instance_.json({"journal", "list"})["journal"];
  EXPECT_EQ(rows[0]["replaced_by"], 2);
  EXPECT_EQ(rows[0]["saved"], "failed");
  tell("obey");
  EXPECT_TRUE(eventually([&] { return saved(1) == "saved" && saved(2) == "saved"; }));
}

TEST_F(Disk, WithADaemonThatAnswersLaterThanAskedForTheToolSaysWhereToLook) {
  ASSERT_TRUE(instance_.ready()) << instance_.daemon().log();
  tell("hold");

  const ProgramRun run =
      instance_.tool({"--timeout", "50ms", "breaker", "force-open", "fraud"});
  tell("obey");

  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(has(run.err, "it may be in force all the same: `cutwaterctl journal list`"))
      << run.err;
}

}  // namespace
}  // namespace cutwater::ctl
