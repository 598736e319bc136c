// SPDX-License-Identifier: Apache-2.0
// What a limit is: windows, spacing, calendar, unlimited, blocked, and what contradicts what.
#include "loading.hpp"

namespace cutwater::config {
namespace {

using rule::LimitKind;

constexpr std::uint64_t kSecond = rule::kNanosPerSecond;

Lines limit_errors(const std::string& limit) {
  return errors_of("limits:\n  a: " + limit + "\n");
}

TEST(LimitKinds, EachOfThem) {
  const Config config = config_of(R"(
limits:
  tenant:   { windows: [ 100/s, { rate: 10000/h, burst: 2000 }, { count: 5, per: 1d } ] }
  sms:      { spacing: 2s }
  invoices: { calendar: { count: 500, per: month, zone: Europe/Berlin } }
  daily:    { calendar: { count: 7, per: day } }
  internal: { unlimited: true }
  retired:  { blocked: true }
  mixed:    { windows: [ { spacing: 100ms }, { calendar: { count: 9, per: week } } ] }
)");
  const auto limit = [&](std::string_view name) { return *config.find_limit(name); };

  EXPECT_EQ(limit("tenant").windows,
            (std::vector{rule::rate_window(100, kSecond, 100),
                         rule::rate_window(10000, 3600 * kSecond, 2000),
                         rule::rate_window(5, rule::kNanosPerDay, 5)}));
  EXPECT_EQ(limit("sms").windows, std::vector{rule::rate_window(1, 2 * kSecond, 1)});
  EXPECT_EQ(limit("invoices").windows,
            std::vector{rule::calendar_window(500, rule::CalendarUnit::Month, "Europe/Berlin")});
  EXPECT_EQ(limit("daily").windows,
            std::vector{rule::calendar_window(7, rule::CalendarUnit::Day, "UTC")});
  EXPECT_EQ(limit("internal").kind, LimitKind::Unlimited);
  EXPECT_TRUE(limit("internal").windows.empty());
  EXPECT_EQ(limit("retired").kind, LimitKind::Blocked);
  EXPECT_EQ(limit("mixed").windows,
            (std::vector{rule::rate_window(1, kSecond / 10, 1),
                         rule::calendar_window(9, rule::CalendarUnit::Week, "UTC")}));
  for (const auto& one : config.limits) EXPECT_TRUE(rule::check(one)) << one.name;
  EXPECT_EQ(config.find_value("limits.tenant.windows[1].burst")->text, "2000");
  EXPECT_EQ(config.find_value("limits.tenant.windows[1].burst")->place.column, 57U);
  EXPECT_EQ(config.find_value("limits.tenant.windows[0].burst")->place.source, Source::Default);
  EXPECT_EQ(config.find_value("limits.invoices.calendar.zone")->text, "Europe/Berlin");
  EXPECT_EQ(config.find_value("limits.internal.unlimited")->text, "true");
}

TEST(LimitKinds, AContradictionNamesBothPlaces) {
  std::string text(20, '\n');
  text += "limits:\n  tenant:\n    rate: 100/s\n    windows: [100/s, 10000/h]\n";
  EXPECT_EQ(errors_of(text.substr(2)),
            Lines{"cutwater.yaml:21:5: limits.tenant.rate: 'windows' (22:5) also says what this "
                  "limit is; keep one"});
  EXPECT_EQ(limit_errors("{ blocked: true, unlimited: true, spacing: 1s }"),
            (Lines{"cutwater.yaml:2:8: limits.a.blocked: 'unlimited' (2:23) also says what this "
                   "limit is; keep one",
                   "cutwater.yaml:2:23: limits.a.unlimited: 'spacing' (2:40) also says what this "
                   "limit is; keep one"}));
}

TEST(LimitKinds, EveryOneOfTwoIsStillLookedInto) {
  EXPECT_EQ(limit_errors("{ rate: 10, spacing: 5 }"),
            (Lines{"cutwater.yaml:2:8: limits.a.rate: 'spacing' (2:18) also says what this limit "
                   "is; keep one",
                   "cutwater.yaml:2:14: limits.a.rate: \"10\" has no period; write 10/s, 10/m, "
                   "10/h or 10/d",
                   "cutwater.yaml:2:27: limits.a.spacing: 5 what? write 5s"}));
}

TEST(LimitKinds, ABurstBelongsToARate) {
  const auto text = [](const std::string& limit) {
    const std::string line = limit_errors(limit).at(0);
    return line.substr(line.find(".burst: ") + 8);
  };
  EXPECT_EQ(text("{ windows: [1/s], burst: 2 }"),
            "'windows' have a burst each; write it inside, { rate: 10/s, burst: 20 }");
  EXPECT_EQ(text("{ calendar: { count: 5, per: day }, burst: 2 }"),
            "a calendar window holds its count and no other burst; take it out");
  EXPECT_EQ(text("{ unlimited: true, burst: 2 }"),
            "there is nothing to burst beside 'unlimited'; take it out");
  EXPECT_EQ(text("{ spacing: 1s, burst: 2 }"),
            "a spacing has a burst of 1; take it out, or write a rate");
  EXPECT_EQ(text("{ windows: [{ spacing: 1s, burst: 2 }] }"),
            "a spacing has a burst of 1; take it out, or write a rate");
}

TEST(LimitKinds, WindowsAreAListOfOneToSix) {
  EXPECT_EQ(
      limit_errors("{ windows: 100/s }"),
      Lines{"cutwater.yaml:2:17: limits.a.windows: a list of windows is wanted; write [100/s, "
            "{ rate: 10000/h, burst: 2000 }]"});
  EXPECT_EQ(limit_errors("{ windows: [] }"),
            Lines{"cutwater.yaml:2:17: limits.a.windows: an empty list; write [100/s, { rate: "
                  "10000/h, burst: 2000 }]"});
  EXPECT_EQ(config_of("limits: { a: { windows: [1/s, 1/m, 1/h, 1/d, 2/d, 3/d] } }")
                .limits[0].windows.size(),
            rule::kMaxWindows);
  EXPECT_EQ(limit_errors("{ windows: [1/s, 1/m, 1/h, 1/d, 2/d, 3/d, 4/d] }"),
            Lines{"cutwater.yaml:2:17: limits.a.windows: 7 windows are above the maximum of 6"});
}

TEST(LimitKinds, EachWindowIsChecked) {
  EXPECT_EQ(
      limit_errors("{ windows: [10, [1/s], { rat: 1/s }, { rate: 1/s, spacing: 1s }, "
                   "{ burst: 0 }, { requests: 5 }, { rate: 20000000/s }, ~] }"),
      Lines{"cutwater.yaml:2:17: limits.a.windows: 8 windows are above the maximum of 6"});
  EXPECT_EQ(
      limit_errors("{ windows: [10, [1/s], { rat: 1/s }, { rate: 1/s, spacing: 1s }, "
                   "{ burst: 0 }, { requests: 5 }] }"),
      (Lines{"cutwater.yaml:2:18: limits.a.windows[0]: \"10\" has no period; write 10/s, 10/m, "
             "10/h or 10/d",
             "cutwater.yaml:2:22: limits.a.windows[1]: a window is wanted here; write 100/s, { "
             "rate: 10000/h, burst: 2000 }, { spacing: 2s } or { calendar: { count: 500, per: day "
             "} }",
             "cutwater.yaml:2:29: limits.a.windows[2]: has no rate; write { rate: 10/s }",
             "cutwater.yaml:2:31: limits.a.windows[2].rat: unknown key; did you mean 'rate'?",
             "cutwater.yaml:2:45: limits.a.windows[3].rate: 'spacing' (2:56) also says what this "
             "window is; keep one",
             "cutwater.yaml:2:71: limits.a.windows[4]: has no rate; write { rate: 10/s }",
             "cutwater.yaml:2:80: limits.a.windows[4].burst: 0 is below the minimum of 1",
             "cutwater.yaml:2:85: limits.a.windows[5]: has no period; write { count: 100, per: 1m "
             "}"}));
}

// covers: C017
TEST(LimitKinds, CaseC017CalendarEdgesAreOnlyThereByNameAndTheHelpSaysWhatTheyCost) {
  EXPECT_EQ(config_of("limits: { a: { rate: 10/m } }").limits[0].windows[0].kind,
            rule::WindowKind::Rate);
  std::string help = describe_keys();
  help = help.substr(help.find("\nlimits.NAME:"));
  help = help.substr(help.find("  calendar:"));
  for (std::size_t at = 0; (at = help.find("\n      ", at)) != std::string::npos;) {
    help.replace(at, 7, " ");
  }
  EXPECT_NE(help.find("Up to twice as many can pass around an edge"), std::string::npos) << help;
}

TEST(LimitKinds, ACalendarIsChecked) {
  EXPECT_EQ(limit_errors("{ calendar: 500/month }"),
            Lines{"cutwater.yaml:2:18: limits.a.calendar: a block is wanted here; write { count: "
                  "500, per: month, zone: Europe/Berlin }"});
  EXPECT_EQ(limit_errors("{ calendar: { per: month } }"),
            Lines{"cutwater.yaml:2:18: limits.a.calendar: has no count; write { count: 500, per: "
                  "month, zone: Europe/Berlin }"});
  EXPECT_EQ(
      limit_errors("{ calendar: { count: 0, per: fortnight, zone: Europe/Berln } }"),
      (Lines{"cutwater.yaml:2:27: limits.a.calendar.count: 0 is below the minimum of 1",
             "cutwater.yaml:2:35: limits.a.calendar.per: \"fortnight\" is not known here; write "
             "minute, hour, day, week, month or year",
             "cutwater.yaml:2:52: limits.a.calendar.zone: there is no time zone 'Europe/Berln' on "
             "this host; did you mean 'Europe/Berlin'?"}));
}

// covers: C008
TEST(LimitKinds, CaseC008UnlimitedAndBlockedAreWordsOfTheirOwn) {
  EXPECT_EQ(
      limit_errors("{ unlimited: false }"),
      Lines{"cutwater.yaml:2:19: limits.a.unlimited: \"false\" says nothing here; write true, "
            "or leave the key out"});
  EXPECT_EQ(limit_errors("{ blocked: yes }"),
            Lines{"cutwater.yaml:2:17: limits.a.blocked: \"yes\" says nothing here; write true, or "
                  "leave the key out"});
  EXPECT_EQ(limit_errors("{ rate: 1/s, mode: METRICS_ONLY }"),
            Lines{"cutwater.yaml:2:25: limits.a.mode: that is a breaker's word; write shadow"});
}

TEST(LimitKinds, AThreadLeaseFitsTheSmallestBurst) {
  EXPECT_EQ(limit_errors("{ windows: [1600/s, { rate: 1000/h, burst: 320 }], thread-lease: 21 }"),
            Lines{"cutwater.yaml:2:71: limits.a.thread-lease: 21 is more than a sixteenth of the "
                  "burst of 320; write at most 20, or set burst to at least 336"});
}

TEST(LimitKinds, TheOtherKeys) {
  const Config config = config_of(R"(
limits:
  a: { rate: 10/s, mode: shadow, max-debt: 50, ip-prefix: { v4: 24, v6: 48 }, show-keys: hidden,
       on-change: proportional }
)");
  const rule::LimitSettings& limit = config.limits[0];
  EXPECT_EQ(limit.mode, rule::Mode::Shadow);
  EXPECT_EQ(limit.max_debt, 50U);
  EXPECT_EQ(limit.ip_prefix_v4, 24);
  EXPECT_EQ(limit.ip_prefix_v6, 48);
  EXPECT_EQ(limit.show_keys, rule::ShowKeys::Hidden);
  EXPECT_EQ(limit.on_change, rule::OnChange::Proportional);
  EXPECT_EQ(limit_errors("{ rate: 1/s, ip-prefix: { v4: 33, v6: 129 }, max-debt: 1000000001 }"),
            (Lines{"cutwater.yaml:2:36: limits.a.ip-prefix.v4: 33 is above the maximum of 32",
                   "cutwater.yaml:2:44: limits.a.ip-prefix.v6: 129 is above the maximum of 128",
                   "cutwater.yaml:2:61: limits.a.max-debt: 1000000001 is above the maximum of "
                   "1000000000"}));
}

TEST(LimitKinds, TheCreditOfAConnectionHoldsOneMessage) {
  EXPECT_TRUE(load("listen: { max-frame: 256KiB }").ok());
  EXPECT_EQ(errors_of("listen: { max-frame: 512KiB }"),
            Lines{"cutwater.yaml:1:22: listen.max-frame: a connection has a credit of 256KiB, less "
                  "than one message of 512KiB; set listen.credit-bytes to at least 512KiB"});
  EXPECT_EQ(errors_of("listen: { max-frame: 5KiB, credit-bytes: 4KiB, max-unsent: 1g }"),
            (Lines{"cutwater.yaml:1:42: listen.credit-bytes: a connection has a credit of 4KiB, "
                   "less than one message of 5KiB; set listen.credit-bytes to at least 5KiB",
                   "cutwater.yaml:1:60: listen.max-unsent: 1GiB is above the maximum of 256MiB"}));
}

}  // namespace
}  // namespace cutwater::config
