// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "ctl/doctor.hpp"

namespace cutwater::ctl {
namespace {

using wire::Value;

/// A host on which nothing is wrong.
Facts healthy() {
  Facts facts;
  facts.daemon = "running";
  facts.rights = std::uint8_t{7};
  facts.status = Value::map({{"slots", 2048U},
                             {"in_debt", 10U},
                             {"clients", 1U},
                             {"rows", 16U},
                             {"stripes", 32U},
                             {"stripes_used", 1U},
                             {"clock", "boottime"},
                             {"pid", 7U}});
  facts.memory = "/run/cutwater/main";
  facts.tmpfs_bytes = 1000;
  facts.tmpfs_free = 900;
  facts.clock_source = "tsc";
  facts.shmem_huge_pages = "never";
  facts.own_time_namespace = facts.daemon_time_namespace = 5;
  facts.locked_bytes = 4096;
  facts.limits = {Value::map({{"limit", "api"}, {"mode", "enforce"}})};
  facts.counters = {Value::map({{"limit", "api"}, {"allowed", 3U}})};
  return facts;
}

/// The one finding about `about` whose text has `part`.
const DoctorFinding* find(const std::vector<DoctorFinding>& findings, const std::string& part) {
  const auto at = std::find_if(findings.begin(), findings.end(), [&](const auto& finding) {
    return finding.text.find(part) != std::string::npos;
  });
  return at == findings.end() ? nullptr : &*at;
}

void expect_finding(const Facts& facts, const std::string& part, bool bad,
                    const std::string& remedy) {
  const auto findings = diagnose(facts);
  const DoctorFinding* found = find(findings, part);
  ASSERT_NE(found, nullptr) << part;
  EXPECT_EQ(found->bad, bad) << part;
  EXPECT_NE(found->remedy.find(remedy), std::string::npos) << found->remedy;
}

TEST(Doctor, FindsNothingWhereAllIsWell) { EXPECT_TRUE(diagnose(healthy()).empty()); }

TEST(Doctor, NamesADeadDaemonAndWhyItWasNotAsked) {
  Facts facts = healthy();
  facts.daemon = "not running";
  facts.connection = "connect: no such file";
  expect_finding(facts, "the daemon is not running", true, "start cutwaterd");
  expect_finding(facts, "connect: no such file", true, "--address");
}

TEST(Doctor, NamesWhatTheKernelTakesAway) {
  Facts facts = healthy();
  facts.clock_source = "hpet";
  expect_finding(facts, "clock source is hpet", true, "clocksource=tsc");
  facts = healthy();
  facts.own_time_namespace = 6;
  expect_finding(facts, "different time name spaces", true, "name space");
  facts = healthy();
  facts.locked_bytes = 0;
  expect_finding(facts, "may be swapped out", false, "LimitMEMLOCK");
  facts = healthy();
  facts.status.set("slots", std::uint64_t{16} << 20);
  expect_finding(facts, "huge pages", false, "shmem_enabled");
}

TEST(Doctor, NamesAMemoryThatIsNoneOrTight) {
  Facts facts = healthy();
  facts.tmpfs = false;
  expect_finding(facts, "is not on a tmpfs", true, "mount a tmpfs");
  facts = healthy();
  facts.tmpfs_free = 10;
  expect_finding(facts, "left", true, "remount");
}

TEST(Doctor, NamesRowsNobodyUses) {
  Facts facts = healthy();
  facts.clients = {Value::map({{"row", 2U}, {"state", "orphan"}})};
  expect_finding(facts, "1 rows belong to processes that are gone", true, "clients");
  facts = healthy();
  facts.status.set("clients", std::uint64_t{16});
  expect_finding(facts, "all 16 rows are taken", true, "capacity.processes");
}

TEST(Doctor, NamesLimitsThatDoNothing) {
  Facts facts = healthy();
  facts.limits = {Value::map({{"limit", "api"}, {"mode", "shadow"}})};
  facts.counters = {Value::map({{"limit", "api"}}), Value::map({{"limit", "b"}, {"allowed", 1U},
                                                                 {"degraded", 1U}})};
  expect_finding(facts, "refuse nobody: api", false, "mode: enforce");
  expect_finding(facts, "never asked: api", false, "names");
  expect_finding(facts, "without their rule: b", true, "limit get");
}

TEST(Doctor, PutsWhatIsBadFirst) {
  Facts facts = healthy();
  facts.rights = std::uint8_t{3};
  facts.tmpfs_free = 10;

  const auto findings = diagnose(facts);

  ASSERT_EQ(findings.size(), 2U);
  EXPECT_TRUE(findings[0].bad);
  EXPECT_FALSE(findings[1].bad);
}

}  // namespace
}  // namespace cutwater::ctl
