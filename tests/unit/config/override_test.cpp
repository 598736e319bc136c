// SPDX-License-Identifier: Apache-2.0
#include "config/override.hpp"

#include "config/reader.hpp"
#include "config/schema.hpp"
#include "config/words.hpp"
#include "loading.hpp"

namespace cutwater::config {
namespace {

LoadOptions environment(Pairs pairs) {
  LoadOptions options;
  options.environment = std::move(pairs);
  return options;
}

LoadOptions settings(Pairs pairs) {
  LoadOptions options;
  options.settings = std::move(pairs);
  return options;
}

constexpr std::string_view kText =
    "limits:\n  api-per-user: { rate: 10/s }\n  v1.login: { rate: 5/m }\n";

TEST(Override, SectionsExistWithoutBeingWritten) {
  EXPECT_EQ(config_of("", environment({{"CUTWATER_LOG__LEVEL", "debug"}})).log.level,
            LogLevel::Debug);
  EXPECT_EQ(config_of("", settings({{"log.level", "debug"}})).log.level, LogLevel::Debug);
  EXPECT_EQ(config_of("log:\n", settings({{"log.level", "debug"}})).log.level, LogLevel::Debug);
  const Config config = config_of("", environment({{"CUTWATER_LISTEN__UNIX__PATH", "off"},
                                                   {"CUTWATER_INSTANCE__LOCK_MEMORY", "true"}}));
  EXPECT_EQ(config.listen.unix_path, "off");
  EXPECT_EQ(config.instance.lock_memory, LockMemory::Yes);
}

TEST(Override, ChangesOrAddsAKeyOfALimitOfTheText) {
  const Config config =
      config_of(kText, environment({{"CUTWATER_LIMITS__API_PER_USER__RATE", "20/s"},
                                    {"CUTWATER_LIMITS__V1_LOGIN__MAX_WAIT", "1s"}}));
  EXPECT_EQ(config.limits[0].windows[0].rate_count, 20U);
  EXPECT_EQ(config.limits[0].windows[0].burst, 20U);
  EXPECT_EQ(config.limits[1].max_wait_ns, rule::kNanosPerSecond);
  const Config other = config_of(kText, settings({{"limits.v1.login.rate", "9/s"}}));
  EXPECT_EQ(other.limits[1].windows[0].rate_count, 9U);
  EXPECT_EQ(config_of(kText, settings({{"limits.v1.login.maxWait", "9s"}})).limits[1].max_wait_ns,
            9 * rule::kNanosPerSecond);
}

TEST(Override, TheLastWins) {
  LoadOptions options = environment({{"CUTWATER_LOG__LEVEL", "debug"}});
  EXPECT_EQ(config_of("log: { level: warn }", options).log.level, LogLevel::Debug);
  options.settings = {{"log.level", "error"}, {"log.level", "trace"}};
  const Config config = config_of("log: { level: warn }", options);
  EXPECT_EQ(config.log.level, LogLevel::Trace);
  EXPECT_EQ(config.find_value("log.level")->place.source, Source::CommandLine);
}

TEST(Override, ReplacesWhatIsWrongInTheText) {
  EXPECT_TRUE(load("log: { level: loud }", settings({{"log.level", "info"}})).ok());
  EXPECT_TRUE(
      load("limits: { a: { rate: { count: 0 } } }", settings({{"limits.a.rate", "1/s"}})).ok());
}

TEST(Override, DoesNotReachOtherUsesOfAnAlias) {
  const Config config = config_of("limits:\n  a: &x { rate: 1/s }\n  b: *x\n",
                                  settings({{"limits.a.rate", "7/s"}, {"limits.a.burst", "9"}}));
  EXPECT_EQ(config.limits[0].windows[0].rate_count, 7U);
  EXPECT_EQ(config.limits[0].windows[0].burst, 9U);
  EXPECT_EQ(config.limits[1].windows[0].rate_count, 1U);
  EXPECT_EQ(config.limits[1].windows[0].burst, 1U);
}

TEST(Override, GoesThroughTheSameChecksWithItsOwnPlaceAfterTheText) {
  LoadOptions options = environment({{"CUTWATER_LIMITS__API_PER_USER__RATE", "20"}});
  options.settings = {{"log.queue", "1"}};
  EXPECT_EQ(
      errors_of(std::string(kText) + "log: { level: loud }\n", options),
      (Lines{
          "cutwater.yaml:4:15: log.level: \"loud\" is not known here; write trace, debug, info, "
          "warn or error",
          "environment CUTWATER_LIMITS__API_PER_USER__RATE: limits.api-per-user.rate: \"20\" has "
          "no period; write 20/s, 20/m, 20/h or 20/d",
          "command line --set log.queue: log.queue: 1 is below the minimum of 256"}));
}

TEST(Override, IsNeverParsedAsYamlNorForVariables) {
  EXPECT_EQ(config_of("limits: { a: { rate: 1/s } }",
                      settings({{"limits.a.note", "[x, ${HOME}]: {"}})).limits[0].note,
            "[x, ${HOME}]: {");
  EXPECT_FALSE(load("limits: { a: { rate: 1/s } }", settings({{"limits.a.note", "a\nb"}})).ok());
}

TEST(Override, UnknownOnesNameTheNearest) {
  const auto one = [](const LoadOptions& options) { return errors_of(kText, options).at(0); };
  EXPECT_EQ(one(environment({{"CUTWATER_LOG__LEVLE", "x"}})),
            "environment CUTWATER_LOG__LEVLE: no such setting; did you mean CUTWATER_LOG__LEVEL?");
  EXPECT_EQ(one(environment({{"CUTWATER_CONFGI", "x"}})),
            "environment CUTWATER_CONFGI: no such setting; did you mean CUTWATER_CONFIG?");
  EXPECT_EQ(one(environment({{"CUTWATER_LIMITS__API_PER_USER__RTAE", "x"}})),
            "environment CUTWATER_LIMITS__API_PER_USER__RTAE: no such setting; did you mean "
            "CUTWATER_LIMITS__API_PER_USER__RATE?");
  EXPECT_EQ(
      one(environment({{"CUTWATER_LIMITS__API_PER_USR__RATE", "1/s"}})),
      "environment CUTWATER_LIMITS__API_PER_USR__RATE: there is no limit \"API_PER_USR\" in the "
      "file to change; did you mean 'API_PER_USER'?");
  EXPECT_EQ(one(environment({{"CUTWATER_SOMETHING_ELSE", "1"}})),
            "environment CUTWATER_SOMETHING_ELSE: no such setting; take it out of the environment");
  EXPECT_EQ(one(settings({{"log.levle", "x"}})),
            "command line --set log.levle: no such setting; did you mean log.level?");
  EXPECT_EQ(one(settings({{"limits.api-per-user.brust", "1"}})),
            "command line --set limits.api-per-user.brust: no such setting; did you mean "
            "limits.api-per-user.burst?");
  EXPECT_EQ(
      one(settings({{"limits.new.rate", "1/s"}})),
      "command line --set limits.new.rate: there is no limit \"new\" in the file to change; add it "
      "there");
  EXPECT_EQ(one(settings({{"", "x"}})),
            "command line --set : no such setting; --help-config lists all keys");
}

TEST(Override, ReachesTheBlocksInsideALimit) {
  const std::string_view text = "limits:\n  a: { calendar: { count: 5, per: day } }\n";
  const Config config =
      config_of(text, environment({{"CUTWATER_LIMITS__A__CALENDAR__ZONE", "Europe/Berlin"},
                                   {"CUTWATER_LIMITS__A__IP_PREFIX__V6", "48"}}));
  EXPECT_EQ(config.limits[0].windows[0].zone, "Europe/Berlin");
  EXPECT_EQ(config.limits[0].ip_prefix_v6, 48);
  EXPECT_EQ(config.limits[0].ip_prefix_v4, 32);
  EXPECT_EQ(
      config_of(text, settings({{"limits.a.calendar.count", "7"}})).limits[0].windows[0].burst, 7U);
}

TEST(Override, ASecondWordForWhatALimitIsIsAContradiction) {
  EXPECT_EQ(errors_of("limits: { a: { rate: 1/s } }", settings({{"limits.a.spacing", "2s"}})),
            Lines{"cutwater.yaml:1:16: limits.a.rate: 'spacing' (limits.a.spacing) also says what "
                  "this limit is; keep one"});
}

TEST(Override, ListsStayInTheFile) {
  for (const char* path : {"limits.api-per-user.windows", "limits.api-per-user.keys"}) {
    EXPECT_EQ(errors_of(kText, settings({{path, "x"}})),
              Lines{"command line --set " + std::string(path) +
                    ": a list cannot be set from outside; write it in the file"});
  }
  EXPECT_EQ(
      errors_of("", settings({{"access.map.users", "bob"}})),
      Lines{"command line --set access.map.users: a list cannot be set from outside; write it in "
            "the file"});
}

/// Rows of single keys and of the items of a list are written in the file.
bool can_be_set(const Key& key) {
  return is_scalar(key.kind) && key.block != kKeyBlock && key.block != kWindowBlock;
}

TEST(Override, EveryScalarOfTheSchemaCanBeSet) {
  std::size_t tried = 0;
  for (const Key& key : schema()) {
    if (!can_be_set(key)) continue;
    // A limit that says already what it is takes no second word for it.
    const bool says = key.block == kLimitBlock && key.shape && key.name != "burst";
    std::string text = "limits:\n  api-per-user: { rate: 10/s }\n";
    if (says) text = "limits:\n  api-per-user:\n";
    if (key.block == kCalendarBlock) {
      text = "limits:\n  api-per-user: { calendar: { count: 1, per: day } }\n";
    }
    if (key.block == kBreakerBlock || key.block == kBulkheadBlock) {
      // Shown as what it sets, or only of a pattern: tried with the breakers.
      if (key.load == nullptr || key.name == "max-instances" || key.name == "idle") continue;
      text = std::string(section_of(key.block)) + ":\n  api-per-user: {}\n";
    }
    std::string block(key.block);
    if (const std::size_t star = block.find('*'); star != std::string::npos) {
      block.replace(star, 1, "api-per-user");
    }
    std::string variable = "CUTWATER";
    for (std::string_view rest = block; !rest.empty();) {
      const std::size_t end = std::min(rest.find('.'), rest.size());
      variable += (variable == "CUTWATER" ? "_" : "__") + folded(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    variable += "__" + folded(key.name);
    std::string value(key.fallback);
    if (value.empty()) value = key.kind == Kind::Rate ? "3/s" : "3";
    if (key.kind == Kind::Duration && key.fallback.empty()) value = "3s";
    if (key.kind == Kind::True || key.kind == Kind::Bool) value = "true";
    if (key.kind == Kind::OffDuration || key.kind == Kind::Wait) value = "3s";
    if (key.kind == Kind::Decimal) value = "1";
    if (key.kind == Kind::Choice && key.fallback.empty()) value = split_words(key.words)[1];
    if (key.kind == Kind::State) value = "OPEN";
    if (key.name == "count-hanging-calls") value = "false";   // needs a slow-call-rate-threshold
    if (key.name == "sliding-window-min-span") value = "off";   // needs a COUNT_BASED window
    if (key.name == "per") value = "month";
    const std::string path = block + "." + std::string(key.name);
    const Config from_environment = config_of(text, environment({{variable, value}}));
    ASSERT_NE(from_environment.find_value(path), nullptr) << variable;
    EXPECT_EQ(from_environment.find_value(path)->place.source, Source::Environment) << variable;
    const Config from_line = config_of(text, settings({{path, value}}));
    EXPECT_EQ(from_line.find_value(path)->place.source, Source::CommandLine) << path;
    EXPECT_NE(show(from_line).find("  # command line --set " + path + "\n"), std::string::npos);
    ++tried;
  }
  EXPECT_GE(tried, 50U);
}

TEST(Override, ATextThatIsNoMapStaysAnError) {
  EXPECT_FALSE(load("[1]", settings({{"log.level", "info"}})).ok());
  EXPECT_FALSE(load("log: 5", settings({{"log.level", "info"}})).ok());
  EXPECT_FALSE(load("limits: { a: 5 }", settings({{"limits.a.rate", "1/s"}})).ok());
}

TEST(Environment, OverridesAreThoseOfOurPrefixWithoutTheOthers) {
  const char* environ[] = {"CUTWATER_LOG__LEVEL=debug",
                           "PATH=/bin",
                           "CUTWATER_CONFIG=/etc/c.yaml",
                           "CUTWATER_ADDRESS=unix:/s",
                           "CUTWATER_IF_ABSENT=deny",
                           "CUTWATER_ENABLED=true",
                           "CUTWATER_CAPACITY__KEYS=a=b",
                           "XCUTWATER_A=1",
                           nullptr};
  EXPECT_EQ(overrides_from(environ),
            (Pairs{{"CUTWATER_CAPACITY__KEYS", "a=b"}, {"CUTWATER_LOG__LEVEL", "debug"}}));
  EXPECT_TRUE(overrides_from(nullptr).empty());
}

TEST(Environment, SystemOptionsKnowVariablesAndNames) {
  const char* environ[] = {"WHO=x", "CUTWATER_LOG__LEVEL=debug", nullptr};
  const LoadOptions options = system_options(environ);
  EXPECT_EQ(options.variable("WHO"), "x");
  EXPECT_FALSE(options.variable("WHO_ELSE").has_value());
  EXPECT_EQ(options.environment.size(), 1U);
  EXPECT_EQ(options.user_id("root"), 0U);
  EXPECT_EQ(options.group_id("root"), 0U);
  EXPECT_FALSE(options.user_id("no-such-user-anywhere").has_value());
  EXPECT_FALSE(options.group_id("no-such-group-anywhere").has_value());
}

}  // namespace
}  // namespace cutwater::config
