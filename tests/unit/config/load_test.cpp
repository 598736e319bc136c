// SPDX-License-Identifier: Apache-2.0
#include "loading.hpp"

namespace cutwater::config {
namespace {

/// A host with two users and two groups.
LoadOptions host() {
  LoadOptions options;
  options.user_id = [](const std::string& name) -> std::optional<std::uint32_t> {
    if (name == "alice") return 1001;
    if (name == "bob") return 1002;
    return std::nullopt;
  };
  options.group_id = [](const std::string& name) -> std::optional<std::uint32_t> {
    if (name == "staff") return 50;
    if (name == "cutwater-clients") return 70;
    return std::nullopt;
  };
  options.daemon_uid = 900;
  return options;
}

LoadOptions bare_host() {
  LoadOptions options = host();
  options.group_id = [](const std::string&) { return std::optional<std::uint32_t>(); };
  return options;
}

Peer user(std::uint32_t uid, std::uint32_t gid = 100, std::vector<std::uint32_t> groups = {}) {
  return {.uid = uid, .gid = gid, .groups = std::move(groups)};
}

TEST(Load, AnEmptyTextIsAnInstanceWithoutLimits) {
  const Config config = config_of("");
  EXPECT_TRUE(config.limits.empty());
  EXPECT_EQ(config.instance.name, "main");
  EXPECT_NE(config.hash, 0U);
}

TEST(Load, ACompleteText) {
  const Config config = config_of(R"(
instance: { name: shop, memory-directory: /dev/shm/shop, clock: tsc, lock-memory: false }
listen: { unix: { path: /run/shop.sock, mode: "0600", group: staff } }
access: { map: { users: [alice, 7], groups: [staff] } }
capacity: { keys: 1M, limits: 16, processes: 64, stripes: 4, events: 64Ki }
limits:
  api-per-user: { rate: 10/s, burst: 2000, onFull: deny, thread_lease: 125, note: "for the shop" }
  login: { rate: 100 per minute, initial: empty, max-wait: 1.5s, max-waiting: 0 }
  sms: { rate: { requests: 5, per: 365d } }
log: { level: debug, format: json, target: "file:/var/log/shop.log", queue: 256 }
)", host());

  EXPECT_EQ(config.instance.memory_directory, "/dev/shm/shop");
  EXPECT_EQ(config.instance.lock_memory, LockMemory::No);
  EXPECT_EQ(config.listen.unix_path, "/run/shop.sock");
  EXPECT_EQ(config.listen.unix_mode, 0600U);
  EXPECT_EQ(config.listen.unix_group, 50U);
  EXPECT_EQ(config.access.map.users, (std::vector<std::uint32_t>{1001, 7}));
  EXPECT_EQ(config.access.map.groups, (std::vector<std::uint32_t>{50}));
  EXPECT_EQ(config.capacity, (Capacity{.keys = 1'000'000, .limits = 16, .processes = 64,
                                        .stripes = 4, .events = 65536}));
  ASSERT_EQ(config.limits.size(), 3U);
  EXPECT_EQ(config.limits[0].name, "api-per-user");
  EXPECT_EQ(config.limits[0].windows[0].burst, 2000U);
  EXPECT_EQ(config.limits[0].on_full, rule::OnFull::Deny);
  EXPECT_EQ(config.limits[0].thread_lease, 125U);
  EXPECT_EQ(config.limits[0].note, "for the shop");
  EXPECT_EQ(config.limits[1].initial, rule::Initial::Empty);
  EXPECT_EQ(config.limits[1].max_wait_ns, 1'500'000'000U);
  EXPECT_EQ(config.limits[1].max_waiting, 0U);
  EXPECT_EQ(config.limits[2].windows[0].rate_count, 5U);
  EXPECT_EQ(config.limits[2].windows[0].rate_period_ns, 365 * rule::kNanosPerDay);
  EXPECT_EQ(config.log.queue, 256U);
  for (const auto& limit : config.limits) EXPECT_TRUE(rule::check(limit).ok());
}

// covers: C022
TEST(Load, TheBurstIsTheCountOfTheRateUnlessWritten) {
  const Config config = config_of(R"(
limits:
  a: { rate: 100/m }
  b: { rate: 6 per 60 s }
  c: { rate: 1/s, burst: 3 }
  d: { rate: 1000000000/d }
)");
  EXPECT_EQ(config.limits[0].windows[0].burst, 100U);
  EXPECT_EQ(config.limits[1].windows[0].burst, 6U);
  EXPECT_EQ(config.limits[2].windows[0].burst, 3U);
  EXPECT_EQ(config.limits[3].windows[0].burst, 1'000'000'000U);
  EXPECT_EQ(config.find_value("limits.a.burst")->text, "100");
  EXPECT_EQ(config.find_value("limits.a.burst")->place.source, Source::Default);
}

// covers: C008
TEST(Load, ZeroIsRefusedInRateAndBurst) {
  const std::string zero =
      "0 is neither unlimited nor blocked; write 'unlimited: true' or 'blocked: true'";
  EXPECT_EQ(errors_of("limits: { a: { rate: 0, burst: 1 } }"),
            Lines{"cutwater.yaml:1:22: limits.a.rate: " + zero});
  EXPECT_EQ(errors_of("limits: { a: { rate: 0/s, burst: 0 } }"),
            (Lines{"cutwater.yaml:1:22: limits.a.rate: " + zero,
                   "cutwater.yaml:1:34: limits.a.burst: 0 is below the minimum of 1"}));
  EXPECT_EQ(errors_of("limits: { a: { rate: 5/s, burst: 0 } }"),
            Lines{"cutwater.yaml:1:34: limits.a.burst: 0 is below the minimum of 1"});
}

TEST(Load, FourWaysToWriteARate) {
  const Config config = config_of(R"(
limits:
  a: { rate: 100/m }
  b: { rate: { count: 100, per: 1m } }
  c: { rate: { requests: 100, per: minute } }
  d: { rate: { unit: minute, requests_per_unit: 100 } }
)");
  for (const auto& limit : config.limits) {
    EXPECT_EQ(limit.windows[0].rate_count, 100U) << limit.name;
    EXPECT_EQ(limit.windows[0].rate_period_ns, 60 * rule::kNanosPerSecond) << limit.name;
    EXPECT_EQ(config.find_value("limits." + limit.name + ".rate")->text, "100/m");
  }
}

TEST(Load, RateMapsAreCheckedToo) {
  EXPECT_EQ(
      errors_of(R"(limits:
  a: { rate: { cuont: 100, per: 1m } }
  b: { rate: { count: 100 } }
  c: { rate: { per: 1m } }
  d: { rate: { count: 1, requests: 2, per: 1m } }
  e: { rate: { count: 0, per: 1m } }
  f: { rate: { count: 1, per: 60 } }
  g: { rate: {} }
  h: { rate: { count: [1], per: } }
)"),
      (Lines{"cutwater.yaml:2:16: limits.a.rate.cuont: unknown key; did you mean 'count'?",
             "cutwater.yaml:3:14: limits.b.rate: has no period; write { count: 100, per: 1m }",
             "cutwater.yaml:4:14: limits.c.rate: has no count; write { count: 100, per: 1m }",
             "cutwater.yaml:5:26: limits.d.rate.requests: 'count' already says this; keep one",
             "cutwater.yaml:6:14: limits.e.rate: 0 is neither unlimited nor blocked; write "
             "'unlimited: true' or 'blocked: true'",
             "cutwater.yaml:7:14: limits.f.rate: 60 what? write 60s",
             "cutwater.yaml:8:14: limits.g.rate: has no count; write { count: 100, per: 1m }",
             "cutwater.yaml:9:23: limits.h.rate.count: a count is wanted; write 100",
             "cutwater.yaml:9:28: limits.h.rate.per: a period is wanted; write 1m"}));
}

TEST(Load, ALimitNeedsARate) {
  EXPECT_EQ(
      errors_of("limits:\n  a:\n  b: { burst: 5 }\n  c: 10/s\n"),
      (Lines{"cutwater.yaml:2:3: limits.a: has no rate; write rate: 10/s",
             "cutwater.yaml:3:3: limits.b: has no rate; write rate: 10/s",
             "cutwater.yaml:4:6: limits.c: a block is wanted here; write { rate: 10/s }"}));
}

TEST(Load, NamesOfLimitsAreNamesAndStayApart) {
  EXPECT_EQ(errors_of("limits:\n  a/b: { rate: 1/s }\n").size(), 1U);
  EXPECT_EQ(errors_of("limits:\n  " + std::string(64, 'n') + ": { rate: 1/s }\n").size(), 1U);
  EXPECT_EQ(
      errors_of("limits:\n  api-user: { rate: 1/s }\n  api_user: { rate: 1/s }\n"),
      Lines{"cutwater.yaml:3:3: limits.api_user: too like 'api-user' (2:3): from outside both are "
            "CUTWATER_LIMITS__API_USER; rename one"});
}

TEST(Load, ADoubledSectionIsStillLookedInto) {
  EXPECT_EQ(
      errors_of(
          "limits: { a: { rate: 1/s } }\nlimits: { b: { rate: 2 } }\nlog: {}\nlog: { queue: 1 }\n"),
      (Lines{"cutwater.yaml:2:1: limits: defined twice, first at 1:1",
             "cutwater.yaml:2:22: limits.b.rate: \"2\" has no period; write 2/s, 2/m, 2/h or 2/d",
             "cutwater.yaml:4:1: log: defined twice, first at 3:1",
             "cutwater.yaml:4:15: log.queue: 1 is below the minimum of 256"}));
}

TEST(Load, AThreadLeaseIsAtMostASixteenthOfTheBurst) {
  EXPECT_EQ(config_of("limits: { a: { rate: 1600/s, thread-lease: 100 } }").limits[0].thread_lease,
            100U);
  EXPECT_EQ(
      errors_of("limits: { a: { rate: 1600/s, thread-lease: 101 } }"),
      Lines{"cutwater.yaml:1:44: limits.a.thread-lease: 101 is more than a sixteenth of the burst "
            "of 1600; write at most 100, or set burst to at least 1616"});
  EXPECT_EQ(
      errors_of("limits: { a: { rate: 15/s, thread-lease: 1 } }"),
      Lines{"cutwater.yaml:1:42: limits.a.thread-lease: 1 is more than a sixteenth of the burst of "
            "15; write off, or set burst to at least 16"});
  EXPECT_EQ(config_of("limits: { a: { rate: 15/s, thread-lease: off } }").limits[0].thread_lease,
            0U);
}

TEST(Load, TheLimitsFitTheirCapacity) {
  std::string text = "capacity: { limits: 2 }\nlimits:\n";
  for (const char* name : {"a", "b"}) text += std::string("  ") + name + ": { rate: 1/s }\n";
  EXPECT_EQ(config_of(text).limits.size(), 2U);
  EXPECT_EQ(errors_of(text + "  c: { rate: 1/s }\n"),
            Lines{"cutwater.yaml:2:1: limits: 3 limits do not fit capacity.limits, which is 2; set "
                  "capacity.limits to at least 3"});
}

TEST(Load, MoreLimitsThanThereCanBe) {
  // Aliases keep the text small; the node count allows far fewer limits than 65535 of them.
  std::string text = "capacity: { limits: 65535 }\nlimits:\n  a0: &a { rate: 1/s }\n";
  for (int i = 1; i < 40'000; ++i) text += "  a" + std::to_string(i) + ": *a\n";
  EXPECT_EQ(errors_of(text).size(), 1U);
}

TEST(Load, AnchorsAndAliasesStandForWholeValues) {
  const Config config = config_of(R"(
limits:
  a: &usual { rate: &r 10/s, burst: 20 }
  b: *usual
  c: { rate: *r }
)");
  EXPECT_EQ(config.limits[1].windows[0].burst, 20U);
  EXPECT_EQ(config.limits[2].windows[0].rate_count, 10U);
}

TEST(Load, NotesNeverFail) {
  const LoadOutcome outcome = load(R"(listen: { unix: { path: off } }
limits: { a: { rate: 1/s, on-full: allow } }
)");
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome.notes.size(), 2U);
  EXPECT_EQ(
      outcome.notes[0].line(),
      "cutwater.yaml:1:25: listen.unix.path: off: there is no socket, so no process can attach");
  EXPECT_EQ(
      outcome.notes[1].line(),
      "cutwater.yaml:2:36: limits.a.on-full: while all places are taken, new keys are not limited "
      "at all");
}

TEST(Access, TheDefaultGroupIsLeftOutWhereItDoesNotExist) {
  EXPECT_EQ(config_of("", host()).access.map.groups, (std::vector<std::uint32_t>{70}));
  EXPECT_EQ(config_of("", host()).listen.unix_group, 70U);
  EXPECT_TRUE(config_of("", bare_host()).access.map.groups.empty());
  EXPECT_FALSE(config_of("", bare_host()).listen.unix_group.has_value());
  EXPECT_EQ(config_of("", host()).hash, config_of("", bare_host()).hash);
}

TEST(Access, AWrittenNameMustExist) {
  EXPECT_EQ(
      errors_of("access: { map: { users: [eve, alice], groups: [cutwater-clients] } }",
                bare_host()),
      (Lines{"cutwater.yaml:1:26: access.map.users[0]: there is no user \"eve\" on this host; "
             "create it or take it out",
             "cutwater.yaml:1:48: access.map.groups[0]: there is no group \"cutwater-clients\" on "
             "this host; create it or take it out"}));
  EXPECT_EQ(errors_of("listen: { unix: { group: nobody-here } }", host()).size(), 1U);
  EXPECT_FALSE(load("access: { map: { users: [4294967295] } }").ok());
  EXPECT_FALSE(load("access: { map: { users: [''] } }").ok());
}

TEST(Access, WithoutLookupsNamesAreTakenAsTheyAre) {
  const Config config = config_of("access: { map: { users: [eve, 12], groups: [nogroup] } }");
  EXPECT_EQ(config.access.map.users, (std::vector<std::uint32_t>{12}));
  EXPECT_EQ(config.find_value("access.map.users")->text, "[eve, 12]");
}

TEST(Access, RootAndTheDaemonMayEverything) {
  const Access access = config_of("", bare_host()).access;
  for (const Right right : {Right::Map, Right::Look, Right::Steer}) {
    EXPECT_TRUE(access.allows(right, user(0)));
    EXPECT_TRUE(access.allows(right, user(900)));
    EXPECT_FALSE(access.allows(right, user(1001)));
  }
}

TEST(Access, MembersMayMapAndLookButNotSteer) {
  const Access access =
      config_of("access: { map: { users: [alice], groups: [staff] } }", host()).access;
  for (const Peer& peer : {user(1001), user(5, 50), user(5, 6, {7, 50})}) {
    EXPECT_TRUE(access.allows(Right::Map, peer));
    EXPECT_TRUE(access.allows(Right::Look, peer));
    EXPECT_FALSE(access.allows(Right::Steer, peer));
  }
  EXPECT_FALSE(access.allows(Right::Map, user(1002, 70)));
}

TEST(Access, WritingOneListEmptiesTheOther) {
  const Access access = config_of("access: { map: { users: [alice] } }", host()).access;
  EXPECT_FALSE(access.allows(Right::Map, user(5, 70)));
  EXPECT_TRUE(config_of("access: { map: }", host()).access.allows(Right::Map, user(5, 70)));
}

TEST(Access, AStarIsEverybody) {
  for (const char* list : {"users: ['*']", "groups: ['*']", "users: [alice, \"*\"]"}) {
    const Access access =
        config_of("access: { map: { " + std::string(list) + " } }", host()).access;
    EXPECT_TRUE(access.allows(Right::Map, user(4711)));
    EXPECT_FALSE(access.allows(Right::Steer, user(4711)));
  }
}

TEST(Variables, AreReplacedInScalarsOnce) {
  LoadOptions options;
  options.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "RATE") return "20/s";
    if (name == "NESTED") return "${RATE}";
    if (name == "EMPTY") return "";
    if (name == "LINES") return "a\nb";
    return std::nullopt;
  };
  const Config config = config_of(R"(
limits:
  a: { rate: "${RATE}" }
  b: { rate: "${OTHER:-30}/s", note: "${EMPTY:-x}<${EMPTY}>${RATE} $HOME" }
  c: { rate: 1/s, note: "${NESTED}" }
)", options);
  EXPECT_EQ(config.limits[0].windows[0].rate_count, 20U);
  EXPECT_EQ(config.limits[1].windows[0].rate_count, 30U);
  EXPECT_EQ(config.limits[1].note, "<>20/s $HOME");
  EXPECT_EQ(config.limits[2].note, "${RATE}");

  const auto refused = [&](const std::string& note) {
    const std::string line =
        errors_of("limits: { a: { rate: 1/s, note: \"" + note + "\" } }", options).at(0);
    return line.substr(line.find(".note") + 5);
  };
  EXPECT_EQ(refused("${UNSET}"), ": ${UNSET} is not set; set it or write ${UNSET:-default}");
  EXPECT_EQ(refused("${UNSET"), ": '${' without '}'; close it");
  EXPECT_EQ(refused("${1A}"),
            ": \"${1A}\" names no variable; write ${NAME} or ${NAME:-default}, not nested");
  EXPECT_EQ(refused("${A:-${B}}"),
            ": \"${A:-${B}\" names no variable; write ${NAME} or ${NAME:-default}, not nested");
  EXPECT_EQ(refused("${LINES}"),
            ": holds a control character or a second line; write one line of text");
}

TEST(Variables, AreUnsetOffline) {
  EXPECT_EQ(errors_of("log: { level: \"${HOME}\" }").size(), 1U);
}

TEST(Text, ANoteIsOneLineOf256Bytes) {
  const std::string head = "limits: { a: { rate: 1/s, note: \"";
  EXPECT_TRUE(load(head + std::string(256, 'n') + "\" } }").ok());
  EXPECT_FALSE(load(head + std::string(257, 'n') + "\" } }").ok());
  EXPECT_FALSE(load(head + "a\\nb\" } }").ok());
  EXPECT_FALSE(load(head + "a\\0b\" } }").ok());
}

TEST(Show, PrintsEveryValueWithItsOrigin) {
  const std::string text = show(config_of("limits:\n  a: { rate: 60 per 1 m, max_wait: 90s }\n"));
  EXPECT_NE(text.find("limits.a.rate: 60/m  # cutwater.yaml:2:14\n"), std::string::npos) << text;
  EXPECT_NE(text.find("limits.a.max-wait: 1m30s  # cutwater.yaml:2:36\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("limits.a.burst: 60  # default\n"), std::string::npos) << text;
  EXPECT_NE(text.find("access.map.groups: [cutwater-clients]  # default\n"), std::string::npos)
      << text;
}

TEST(Hash, IsThatOfTheMeaning) {
  const auto hash = [](std::string_view text) { return config_of(text).hash; };
  const std::uint64_t base = hash("limits: { a: { rate: 60/m }, b: { rate: 1/s } }");

  EXPECT_EQ(base,
            hash("# other order and spelling\nlimits:\n  b: { rate: 1 per second, max_wait: 60m }\n"
                 "  a: { rate: { count: 60, per: 60s }, burst: 60 }\n"));
  EXPECT_EQ(base, hash("log: { level: info }\nlimits: { a: { rate: 60/m }, b: { rate: 1/s } }"));
  EXPECT_NE(base, hash("limits: { a: { rate: 60/m }, b: { rate: 2/s } }"));
  EXPECT_NE(base, hash("limits: { a: { rate: 60/m }, c: { rate: 1/s } }"));
  EXPECT_NE(base, hash("log: { level: warn }\nlimits: { a: { rate: 60/m }, b: { rate: 1/s } }"));
  EXPECT_EQ(base, hash_of(config_of("limits: { a: { rate: 60/m }, b: { rate: 1/s } }")));
}

TEST(Result, CarriesTheReport) {
  EXPECT_TRUE(to_result(load("")).ok());
  const auto refused = to_result(load("logg: 1"));
  EXPECT_EQ(refused.error().code(), Errc::InvalidConfig);
  EXPECT_EQ(refused.error().text(), load("logg: 1").report());
}

}  // namespace
}  // namespace cutwater::config
