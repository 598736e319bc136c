// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
  expect_finding(facts, "1 row belongs to processes that are gone", true, "clients");
  facts.daemon = "not running";
  expect_finding(facts, "1 row without a connection: their processes go on deciding", false,
                 "start the daemon: the living attach again");
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

/// A breaker on which nothing is wrong.
Value breaker() {
  return Value::map({{"breaker", "fraud"},
                     {"state", "CLOSED"},
                     {"reason", "probes_succeeded"},
                     {"allowed", true},
                     {"calls", 20U},
                     {"users", 8U},
                     {"users_open", 0U},
                     {"window_span_ns", 30'000'000'000U},
                     {"counters", Value::map({{"success", 100U}})},
                     {"durations", Value::map({{"p99_ns", 20'000'000U}})},
                     {"settings", Value::map({{"sliding-window-type", "COUNT_BASED"},
                                              {"sliding-window-size", 20U},
                                              {"sliding-window-min-span", "off"},
                                              {"probe-timeout", "30s"}})}});
}
Facts with(Value row) {
  Facts facts = healthy();
  facts.breakers = {std::move(row)};
  return facts;
}

TEST(Doctor, FindsNothingWrongWithAHealthyBreaker) {
  EXPECT_TRUE(diagnose(with(breaker())).empty());
}

TEST(Doctor, NamesACountWindowThatIsOverInAMoment) {
  Value row = breaker();
  row.set("window_span_ns", 20'000'000U);
  expect_finding(with(row), "fraud: its window of 20 calls spans about 20ms", true,
                 "sliding-window-min-span: 1s");
  Value filling = row;
  filling.set("calls", 19U);
  EXPECT_TRUE(diagnose(with(filling)).empty());
  Value settings = *row.find("settings");
  settings.set("sliding-window-min-span", "1s");
  row.set("settings", std::move(settings));
  EXPECT_TRUE(diagnose(with(row)).empty()) << "it holds all of the last second";
}

TEST(Doctor, NamesProbesThatEndBeforeTheCallsDo) {
  Value row = breaker();
  row.set("durations", Value::map({{"p99_ns", 15'000'000'001U}}));
  expect_finding(with(row), "a probe counts as failed after 30s", true, "raise probe-timeout");
  Value unmeasured = row;
  unmeasured.set("measured", false);
  EXPECT_TRUE(diagnose(with(unmeasured)).empty()) << "a few that callers gave say nothing of all";
  row.set("durations_minute", Value::map({{"p99_ns", 20'000'000U}}));
  EXPECT_TRUE(diagnose(with(row)).empty()) << "the last minute is what counts";
}

TEST(Doctor, NamesClassesThatOnlyAProgramCanMean) {
  Value row = breaker();
  Value::Array record;
  for (const char* word : {"timeout", "http-503", "grpc:UNAVAILABLE", "errno:EPIPE", "tiemout"}) {
    record.emplace_back(word);
  }
  row.set("record", std::move(record));
  row.set("ignore", Value(Value::Array{Value("invalid-upi")}));
  expect_finding(with(row), "fraud: no built-in class: tiemout (record), invalid-upi (ignore); no",
                 false, "outcomes().add");
  row.set("record", Value(Value::Array{Value("http-5xx"), Value("local"), Value("exception")}));
  row.set("ignore", Value(Value::Array{}));
  EXPECT_TRUE(diagnose(with(row)).empty());
}

TEST(Doctor, EachFindingHasARemedy) {
  Facts facts = healthy();
  facts.connection = "no such file";
  facts.rights = std::uint8_t{0};
  facts.tmpfs = false;
  facts.tmpfs_free = 1;
  facts.clock_source = "hpet";
  facts.own_time_namespace = 6;
  facts.locked_bytes = 0;
  facts.breakers_left_out = 3;
  for (const auto& [word, number] : std::map<std::string, std::uint64_t>{{"log_dropped", 1},
                                                                         {"acts_unsaved", 1},
                                                                         {"no_place", 1},
                                                                         {"damage", 1},
                                                                         {"rules_repaired", 1},
                                                                         {"stripes_used", 32},
                                                                         {"clients", 16},
                                                                         {"slots", 16U << 20}}) {
    facts.status.set(word, number);
  }
  facts.status.set("superseded", true);
  facts.status.set("clock", "stepped");
  facts.status.set("journal_fault", "the disk is full");
  facts.status.set("journal_why_not", "no state directory");
  facts.clients = {Value::map({{"state", "dead"}})};
  facts.limits = {Value::map({{"limit", "api"}, {"mode", "shadow"}})};
  facts.counters = {Value::map({{"limit", "api"}, {"degraded", 1U}})};
  Value sick = breaker();
  sick.set("window_span_ns", 1U);
  sick.set("durations", Value::map({{"p99_ns", ~std::uint64_t{0}}}));
  sick.set("users_open", 1U);
  sick.set("flapping", true);
  sick.set("state", "FORCED_OPEN");
  sick.set("ignore", Value(Value::Array{Value("mine")}));
  sick.set("counters", Value::map({{"success", 0U}}));
  facts.breakers = {sick};
  facts.bulkheads = {Value::map({{"bulkhead", "fraud"},
                                 {"enabled", true},
                                 {"allowed", false},
                                 {"limit", 1U},
                                 {"oldest_ns", ~std::uint64_t{0}},
                                 {"counters", Value::map({{"granted", 0U}})}})};

  for (const char* daemon : {"running", "not running", "does not answer"}) {
    facts.daemon = daemon;
    const auto findings = diagnose(facts);
    EXPECT_GE(findings.size(), 27U);
    for (const DoctorFinding& finding : findings) {
      EXPECT_FALSE(finding.about.empty()) << finding.text;
      EXPECT_FALSE(finding.remedy.empty()) << finding.text;
    }
  }
}

TEST(Doctor, NamesBulkheadsNobodyEnters) {
  Facts facts = healthy();
  facts.bulkheads = {Value::map({{"bulkhead", "fraud"},
                                 {"allowed", true},
                                 {"counters", Value::map({{"granted", 0U}})}})};
  expect_finding(facts, "were never entered: fraud", false, "names");
}

TEST(Doctor, APatternIsUsedWhenANameOfItIs) {
  const auto row = [](const char* kind, const char* name, std::uint64_t used) {
    return Value::map({{kind, name},
                       {"allowed", true},
                       {"counters", Value::map({{"granted", used}})}});
  };
  for (const std::string kind : {"bulkhead", "breaker"}) {
    const auto some = [&](std::uint64_t used) {
      Facts facts = healthy();
      Rows& rows = kind == "breaker" ? facts.breakers : facts.bulkheads;
      rows = {row(kind.c_str(), "bank-*", 0), row(kind.c_str(), "bank-a", used),
              row(kind.c_str(), "bank-b", 0)};
      return diagnose(facts);
    };
    EXPECT_TRUE(some(1).empty()) << some(1).front().text;
    const auto unused = some(0);
    ASSERT_EQ(unused.size(), 1U);
    EXPECT_TRUE(unused[0].text.ends_with(": bank-*")) << unused[0].text;
  }
}

TEST(Doctor, NamesAFileThatTheDaemonWillRefuseOrHasNotTakenOver) {
  Facts facts = healthy();
  facts.file.file = "/etc/cutwater/cutwater.yaml";
  EXPECT_TRUE(diagnose(facts).empty());
  facts.file.changed = true;
  expect_finding(facts, "/etc/cutwater/cutwater.yaml was changed and is not in force", false,
                 "config diff /etc/cutwater/cutwater.yaml");
  facts.file.refused = {"capacity.keys: above the 1024 reserved"};
  expect_finding(facts, "a reload of it will be refused: capacity.keys: above", true,
                 "restart the daemon");
  facts.file.errors = {"3:1: limits.api.rat: unknown key", "4:1: limits.sms: no rate"};
  expect_finding(facts, "the next reload or restart will be refused: 2 errors, the first: 3:1: "
                        "limits.api.rat",
                 true, "config check /etc/cutwater/cutwater.yaml");
  facts.status.set("config_refused", "3:1: limits.api.rat: unknown key");
  EXPECT_EQ(diagnose(facts).size(), 1U) << "said once";
}

TEST(Doctor, TellsARefusalThatARestartHealsFromOneThatIsAnError) {
  const auto remedy = [](const std::string& refused) {
    Facts facts = healthy();
    facts.status.set("config_file", "/etc/c.yaml");
    facts.status.set("config_refused", refused);
    const auto findings = diagnose(facts);
    return findings.size() == 1 ? findings.front().remedy : "";
  };
  const std::string restart = "restart the daemon to take it over (nothing is forgotten)";
  EXPECT_EQ(remedy("c.yaml: capacity.bulkheads: the blocks take 65 now, and 64 were reserved at "
                   "start; restart the daemon (nothing is forgotten), or let them take less: a "
                   "pattern takes its max-instances and one")
                .find(restart),
            0U);
  EXPECT_EQ(remedy("c.yaml:1:1: instance.name: changed from 'a' to 'b', which needs a restart")
                .find(restart),
            0U);
  EXPECT_EQ(remedy("65 bulkheads, but memory was reserved for 64; set capacity.bulkheads to at "
                   "least 65 and restart; nothing was reloaded"),
            "raise that setting in /etc/c.yaml and restart the daemon: a reload makes no room");
  EXPECT_NE(remedy("c.yaml:3:1: limits.api.rat: unknown key").find("config check /etc/c.yaml"),
            std::string::npos);
}

TEST(Doctor, NamesActsThatAreNotSaved) {
  Facts facts = healthy();
  facts.status.set("journal", "/var/lib/cutwater/main/journal");
  facts.status.set("journal_fault", "cannot be synced");
  facts.status.set("acts_unsaved", std::uint64_t{2});
  expect_finding(facts, "2 manual acts are in force and not on the disk: /var/lib/cutwater", true,
                 "journal list");
}

TEST(Doctor, NamesBreakersNobodyAsks) {
  Value row = breaker();
  row.set("counters", Value::map({{"success", 0U}, {"refused_open", 0U}}));
  expect_finding(with(row), "no call was ever reported to: fraud", false, "names");
}

TEST(Doctor, NamesStatesByHandThatNothingEnds) {
  Value row = breaker();
  row.set("state", "FORCED_OPEN");
  row.set("reason", "by_hand");
  row.set("act", Value::map({{"note", "their maintenance"}}));
  expect_finding(with(row), "fraud is FORCED_OPEN by hand and nothing ends it (their maintenance)",
                 false, "breaker auto fraud");
  row.set("expires_ns", 1U);
  EXPECT_TRUE(diagnose(with(row)).empty());
  row.set("reason", "none");
  expect_finding(with(row), "FORCED_OPEN by its configuration", false, "initial-state");
}

TEST(Doctor, NamesLocalFaults) {
  Value row = breaker();
  row.set("users_open", 1U);
  expect_finding(with(row), "1 of 8 processes refuse for themselves", true, "breaker_local_fault");
  row = breaker();
  row.set("counters", Value::map({{"local_faults", 2U}}));
  expect_finding(with(row), "2 times one process alone", false, "breaker_local_fault");
}

TEST(Doctor, NamesBulkheadsThatAreFullAndPlacesHeldForEver) {
  Value row = Value::map({{"bulkhead", "fraud"},
                          {"enabled", true},
                          {"allowed", true},
                          {"limit", 10U},
                          {"in_use", 3U}});
  Facts facts = healthy();
  facts.bulkheads = {row};
  EXPECT_TRUE(diagnose(facts).empty());
  row.set("allowed", false);
  row.set("in_use", 10U);
  row.set("waiting", 4U);
  facts.bulkheads = {row};
  expect_finding(facts, "fraud is full: 10 of 10 places are held, 4 callers wait", true,
                 "max-concurrent-calls");
  row.set("allowed", true);
  row.set("oldest_ns", 3'600'000'000'000U);
  row.set("oldest_pid", 4711U);
  facts.bulkheads = {row};
  expect_finding(facts, "has been held for 1h by pid 4711", true, "max-hold");
  row.set("limit", 0U);
  facts.bulkheads = {row};
  expect_finding(facts, "has no place", false, "max-concurrent-calls");
}

TEST(Doctor, SaysHowManyBreakersItDidNotLookAt) {
  Facts facts = healthy();
  facts.breakers_left_out = 3;
  expect_finding(facts, "3 further breakers and bulkheads", false, "breaker list");
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
