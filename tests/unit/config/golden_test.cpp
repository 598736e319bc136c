// SPDX-License-Identifier: Apache-2.0
// Whole texts with their whole answers, to the byte: what operators and their tools read.
#include "loading.hpp"

namespace cutwater::config {
namespace {

// covers: C008, C131
TEST(GoldenErrors, AllOfThemInOnePassSortedByPlace) {
  const std::string text = R"(# Limits of the shop
instance:
  name: main
limits:
  api-per-user:
    rate: 10/s
    brust: 20
  login:
    rate: 10

  sms:
    rate: 0

  big:
    rate:  20000000/s


  login:
    rate: 10/s
)";

  EXPECT_EQ(load(text).report("nothing was reloaded, the running configuration stays"),
            R"(cutwater.yaml:7:5: limits.api-per-user.brust: unknown key; did you mean 'burst'?
cutwater.yaml:9:11: limits.login.rate: "10" has no period; write 10/s, 10/m, 10/h or 10/d
cutwater.yaml:12:11: limits.sms.rate: 0 is neither unlimited nor blocked; )"
            R"(write 'unlimited: true' or 'blocked: true'
cutwater.yaml:15:12: limits.big.rate: 20000000/s is above the maximum of 10000000/s
cutwater.yaml:18:3: limits.login: defined twice, first at 8:3
5 errors; nothing was reloaded, the running configuration stays)");
}

TEST(GoldenErrors, ATextNestedTooDeepIsOneErrorAtItsPlace) {
  std::string text;
  for (int line = 1; line < 18; ++line) text += "#\n";
  for (int depth = 0; depth < 40; ++depth) text += "[\n";

  EXPECT_EQ(errors_of(text), Lines{"cutwater.yaml:50:1: nested deeper than 32"});
}

TEST(GoldenErrors, OneErrorIsCountedAsOne) {
  EXPECT_EQ(
      load("logg: {}").report(),
      "cutwater.yaml:1:1: logg: unknown key; did you mean 'log'?\n1 error; nothing was started");
  EXPECT_EQ(load("").report(), "");
}

TEST(GoldenErrors, EveryKindOfValue) {
  const std::string text = R"(instance:
  name: a/b
  memory-directory: var/cutwater
  clock: stepped
  lock-memory: yes
  huge-pages: somtimes
  initial-after-damage: half
listen:
  unix: { path: ./s, mode: rw, group: [x] }
access: { map: { users: bob, groups: [{}] } }
capacity:
  keys: 1023
  limits: 65536
  processes: 1.5
  stripes: -1
  events:
log: { level: loud, format: xml, target: "file:log", queue: 100 }
limits:
  one: { rate: 10/s, burst: 0, max-wait: 2h, max-waiting: 65537, thread-lease: 0, on-full: open }
  two: { rate: 1/s, initial: none, on-change: forget, max-wait: 15 }
)";

  EXPECT_EQ(
      errors_of(text),
      (Lines{
          "cutwater.yaml:2:9: instance.name: \"a/b\" is not a name; begin with a letter or digit, "
          "go on "
          "with letters, digits and . _ : -, 63 characters at most",
          "cutwater.yaml:3:21: instance.memory-directory: \"var/cutwater\" is not an absolute "
          "path; "
          "write auto or a path that begins with /",
          "cutwater.yaml:4:10: instance.clock: a stepped clock is for tests; start the daemon with "
          "--clock=stepped instead",
          "cutwater.yaml:5:16: instance.lock-memory: \"yes\" is not known here; write auto, true "
          "or false",
          "cutwater.yaml:6:15: instance.huge-pages: \"somtimes\" is not known here; write auto, "
          "always or "
          "never",
          "cutwater.yaml:7:25: instance.initial-after-damage: \"half\" is not known here; write "
          "full or "
          "empty",
          "cutwater.yaml:9:17: listen.unix.path: \"./s\" is not an absolute path; write auto or "
          "off or a "
          "path that begins with /",
          "cutwater.yaml:9:28: listen.unix.mode: \"rw\" is no permission mode; write octal digits, "
          "0000..0777",
          "cutwater.yaml:9:39: listen.unix.group: a list is not accepted here; write a group, "
      "name or number",
          "cutwater.yaml:10:25: access.map.users: a list is wanted; write [\"bob\"]",
          "cutwater.yaml:10:39: access.map.groups[0]: a name, a number or \"*\" is wanted here",
          "cutwater.yaml:12:9: capacity.keys: 1023 is below the minimum of 1024",
          "cutwater.yaml:13:11: capacity.limits: 65536 is above the maximum of 65535",
          "cutwater.yaml:14:14: capacity.processes: \"1.5\" is not a whole number; write a whole "
          "number "
          "such as 4096, 64Ki or 1M",
          "cutwater.yaml:15:12: capacity.stripes: \"-1\" is negative; write a whole number such as "
          "4096, "
          "64Ki or 1M",
          "cutwater.yaml:16:3: capacity.events: has no value; write 1024..1048576, or leave the "
          "key out",
          "cutwater.yaml:17:15: log.level: \"loud\" is not known here; write trace, debug, info, "
          "warn or "
          "error",
          "cutwater.yaml:17:29: log.format: \"xml\" is not known here; write text or json",
          "cutwater.yaml:17:42: log.target: \"file:log\" is not a target; write stderr or "
          "file:/an/absolute/path",
          "cutwater.yaml:17:61: log.queue: 100 is below the minimum of 256",
          "cutwater.yaml:19:29: limits.one.burst: 0 is below the minimum of 1",
          "cutwater.yaml:19:42: limits.one.max-wait: 2h is above the maximum of 1h",
          "cutwater.yaml:19:59: limits.one.max-waiting: 65537 is above the maximum of 65536",
          "cutwater.yaml:19:80: limits.one.thread-lease: 0 is below the minimum of 1",
          "cutwater.yaml:19:92: limits.one.on-full: \"open\": for a breaker 'open' means refuse; "
          "write "
          "allow or deny",
          "cutwater.yaml:20:30: limits.two.initial: \"none\" is not known here; write full or "
          "empty",
          "cutwater.yaml:20:47: limits.two.on-change: \"forget\" is not known here; write "
          "keep-used, additive, as-is, proportional or reset",
          "cutwater.yaml:20:65: limits.two.max-wait: 15 what? write 15s",
      }));
}

TEST(GoldenErrors, AtMostAThousandLinesAndOneThatCountsTheRest) {
  std::string text;
  for (int i = 0; i < 1500; ++i) text += "unknown" + std::to_string(i) + ": 1\n";

  const LoadOutcome outcome = load(text);

  ASSERT_EQ(outcome.errors.size(), kMaxFindings + 1);
  EXPECT_EQ(outcome.errors.back().line(), "cutwater.yaml: and 500 more");
}

}  // namespace
}  // namespace cutwater::config
