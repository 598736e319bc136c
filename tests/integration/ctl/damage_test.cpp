// SPDX-License-Identifier: Apache-2.0
// Memory that is not as it should be: `verify` finds it, and every look says why it cannot read it.
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "shm/layout.hpp"
#include "shm/segment.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml = "capacity: { keys: 1024 }\nlimits: { api: { rate: 1/h, burst: 10 } }\n";

void overwrite(const std::string& path, std::size_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
}

TEST(Verify, FindsNothingInAHealthyMemory) {
  Instance instance(kYaml);
  Client client = instance.client();
  auto api = client.limit("api").value();
  for (int i = 0; i < 500; ++i) api.try_acquire("key" + std::to_string(i));

  const ProgramRun online = instance.tool({"verify"});
  instance.daemon().kill(SIGKILL);
  const ProgramRun offline = instance.tool({"verify"});

  EXPECT_EQ(online.code, 0) << online.out << online.err;
  EXPECT_NE(online.out.find("no findings"), std::string::npos) << online.out;
  EXPECT_EQ(offline.code, 0) << offline.out << offline.err;
  EXPECT_NE(offline.out.find("daemon not running"), std::string::npos) << offline.out;
  EXPECT_EQ(instance.json({"verify"})["in_debt"], 500);
}

TEST(Verify, FindsAScribbledImageAndAScribbledBucket) {
  Instance instance(kYaml);
  Client client = instance.client();
  client.limit("api").value().try_acquire("alice");
  instance.daemon().kill(SIGKILL);
  const std::string rules = instance.place().memory() + "/rules";
  std::string bytes = test::read_file(rules);
  const std::size_t name = bytes.find("api");
  ASSERT_NE(name, std::string::npos);
  while (bytes.find("api") != std::string::npos) {  // in both images
    overwrite(rules, bytes.find("api"), "APX");
    bytes = test::read_file(rules);
  }

  const ProgramRun run = instance.tool({"verify"});
  const ProgramRun json = instance.tool({"verify", "-o", "json"});

  EXPECT_EQ(run.code, 4) << run.out;
  EXPECT_EQ(json.code, 4);
  EXPECT_EQ(parse(json.out)["ok"], false);
  EXPECT_GE(parse(json.out)["findings_total"], 1);
}

// covers: C137 (command line)
TEST(Look, SaysThatAMemoryIsOfAnotherLayout) {
  Instance instance(kYaml);
  instance.daemon().kill(SIGKILL);
  for (const char* file : {"rules", "state", "stats"}) {
    overwrite(instance.place().memory() + "/" + file, offsetof(shm::FileHeader, abi_major),
              std::string("\x09\x00", 2));
  }

  for (const char* look : {"status", "clients", "events", "verify"}) {
    const ProgramRun run = instance.tool({look});
    EXPECT_EQ(run.code, 4) << look;
    EXPECT_EQ(run.out, "") << look;
    EXPECT_FALSE(run.err.empty()) << look;
  }
}

TEST(Look, SurvivesTruncatedAndForeignFiles) {
  Instance instance(kYaml);
  instance.daemon().kill(SIGKILL);
  const std::string state = instance.place().memory() + "/state";

  for (const std::uintmax_t size : {8192U, 4096U, 100U, 0U}) {
    std::filesystem::resize_file(state, size);
    const ProgramRun run = instance.tool({"status"});
    EXPECT_EQ(run.code, 4) << size << run.err;
    EXPECT_EQ(run.out, "");
  }
  test::write_file(state, std::string(1 << 20, 'x'));
  EXPECT_EQ(instance.tool({"status"}).code, 4);
  std::filesystem::remove(state);
  const ProgramRun run = instance.tool({"limit", "list"});
  EXPECT_TRUE(run.code == 3 || run.code == 4) << run.err;
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace cutwater::ctl
