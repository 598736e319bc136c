// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

#include <fstream>
#include <iterator>
#include <set>

#include "config/value.hpp"
#include "config/words.hpp"
#include "loading.hpp"

namespace cutwater::config {
namespace {

TEST(Schema, RowsAreWellFormed) {
  std::set<std::string> seen;
  for (const Key& key : schema()) {
    const std::string path = std::string(key.block) + "." + std::string(key.name);
    EXPECT_TRUE(seen.insert(path).second) << path;
    EXPECT_EQ(kebab(key.name), key.name) << path;
    EXPECT_EQ(key.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-46"), std::string_view::npos)
        << path;
    const bool inner = key.kind == Kind::Block || key.kind == Kind::Calendar ||
                       key.kind == Kind::Windows || key.kind == Kind::Keys;
    EXPECT_EQ(key.store == nullptr, inner) << path;
    EXPECT_EQ(key.same_as.empty() || find_key(key.block, key.same_as) != nullptr, true) << path;
    EXPECT_FALSE(key.help.empty()) << path;
    EXPECT_TRUE(key.help.ends_with('.')) << path;
    EXPECT_LE(key.min, key.max) << path;
    EXPECT_FALSE(range_text(key).empty()) << path;
    EXPECT_EQ(find_key(key.block, key.name), &key) << path;
  }
}

TEST(Schema, BlocksAreContiguous) {
  std::size_t count = 0;
  for (const std::string_view block : blocks()) count += keys_of(block).size();
  EXPECT_EQ(count, schema().size());
  EXPECT_EQ(children_of(""), (std::vector<std::string_view>{"instance", "listen", "access",
                                                            "capacity", "limits", "breakers",
                                                            "bulkheads", "log"}));
  EXPECT_EQ(children_of("listen"), (std::vector<std::string_view>{
                                       "max-connections", "max-connections-per-peer", "max-frame",
                                       "credit-items", "credit-bytes", "max-unsent",
                                       "hello-timeout", "idle-timeout", "unix"}));
  EXPECT_EQ(children_of("access"),
            (std::vector<std::string_view>{"map", "ask", "look", "steer"}));
  EXPECT_EQ(children_of(kKeyBlock),
            (std::vector<std::string_view>{"rate", "windows", "spacing", "calendar", "unlimited",
                                           "banned", "burst", "until", "note"}));
}

TEST(Schema, EveryDefaultIsAValueOfItsKeyInItsCanonicalSpelling) {
  const LoadOptions offline;
  for (const Key& key : schema()) {
    if (key.fallback.empty()) continue;
    if (key.kind != Kind::Users && key.kind != Kind::Groups) {
      const auto value = parse_value(key, key.fallback, offline);
      ASSERT_TRUE(value.ok()) << key.name << ": " << value.error().text();
      EXPECT_EQ(value->text, key.fallback) << key.name;
    }
    EXPECT_EQ(default_value(key, offline).text, key.fallback) << key.name;
  }
}

TEST(Schema, TheDefaultsOfTheTableAreThoseOfTheStructs) {
  const Config loaded = config_of("limits: { a: { rate: 7/s } }");
  const Config plain;
  EXPECT_EQ(loaded.instance.name, plain.instance.name);
  EXPECT_EQ(loaded.instance.memory_directory, plain.instance.memory_directory);
  EXPECT_EQ(loaded.instance.clock, plain.instance.clock);
  EXPECT_EQ(loaded.instance.lock_memory, plain.instance.lock_memory);
  EXPECT_EQ(loaded.instance.huge_pages, plain.instance.huge_pages);
  EXPECT_EQ(loaded.instance.initial_after_damage, plain.instance.initial_after_damage);
  EXPECT_EQ(loaded.listen.unix_path, plain.listen.unix_path);
  EXPECT_EQ(loaded.listen.unix_mode, plain.listen.unix_mode);
  EXPECT_EQ(loaded.instance.state_directory, plain.instance.state_directory);
  EXPECT_EQ(loaded.instance.remember_keys, plain.instance.remember_keys);
  EXPECT_EQ(loaded.instance.watch_file, plain.instance.watch_file);
  EXPECT_EQ(loaded.instance.drain_ns, plain.instance.drain_ns);
  EXPECT_EQ(loaded.listen.max_connections, plain.listen.max_connections);
  EXPECT_EQ(loaded.listen.max_connections_per_peer, plain.listen.max_connections_per_peer);
  EXPECT_EQ(loaded.listen.max_frame, plain.listen.max_frame);
  EXPECT_EQ(loaded.listen.credit_items, plain.listen.credit_items);
  EXPECT_EQ(loaded.listen.credit_bytes, plain.listen.credit_bytes);
  EXPECT_EQ(loaded.listen.max_unsent, plain.listen.max_unsent);
  EXPECT_EQ(loaded.listen.hello_timeout_ns, plain.listen.hello_timeout_ns);
  EXPECT_EQ(loaded.listen.idle_timeout_ns, plain.listen.idle_timeout_ns);
  EXPECT_EQ(loaded.capacity, plain.capacity);
  EXPECT_EQ(loaded.log.level, plain.log.level);
  EXPECT_EQ(loaded.log.format, plain.log.format);
  EXPECT_EQ(loaded.log.file, plain.log.file);
  EXPECT_EQ(loaded.log.queue, plain.log.queue);
  rule::LimitSettings limit;
  limit.windows.resize(1);
  limit.name = "a";
  limit.windows[0].rate_count = 7;
  limit.windows[0].rate_period_ns = rule::kNanosPerSecond;
  limit.windows[0].burst = 7;
  EXPECT_EQ(loaded.limits.at(0), limit);
}

TEST(Schema, HelpNamesEveryKeyWithItsDefault) {
  const std::string help = describe_keys();
  for (const Key& key : schema()) {
    std::string line = "  " + std::string(key.name) + ": " + range_text(key);
    if (!key.fallback.empty()) line += "; default " + std::string(key.fallback);
    EXPECT_NE(help.find(line + "; changed by "), std::string::npos) << line;
  }
  EXPECT_NE(help.find("\n  sliding-window-size: 1..65535 calls or 100ms..24h; changed by reload\n"),
            std::string::npos);
  EXPECT_NE(help.find(" Default:\n      10s; under resilience4j 100.\n"), std::string::npos)
      << help;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = help.find('\n', at);
    EXPECT_LE(end - at, 120U) << help.substr(at, end - at);
    at = end + 1;
  }
}

TEST(Schema, TheShippedFileLoadsAndShowsEveryKey) {
  std::ifstream file(CUTWATER_EXAMPLE);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

  const Config config = config_of(text);

  EXPECT_FALSE(config.limits.empty());
  for (const Key& key : schema()) {
    EXPECT_NE(text.find(std::string(key.name) + ":"), std::string::npos) << key.name;
    if (!section_of(key.block).empty() || key.fallback.empty()) continue;
    const std::string path = std::string(key.block) + "." + std::string(key.name);
    EXPECT_EQ(config.find_value(path)->text, key.fallback) << path;
  }
}

TEST(Schema, EveryStepOfAnEnumIsStoredAsItself) {
  EXPECT_EQ(config_of("instance: { clock: tsc }").instance.clock, Clock::Tsc);
  EXPECT_EQ(config_of("instance: { lock-memory: true }").instance.lock_memory, LockMemory::Yes);
  EXPECT_EQ(config_of("instance: { lock-memory: false }").instance.lock_memory, LockMemory::No);
  EXPECT_EQ(config_of("instance: { huge-pages: always }").instance.huge_pages, HugePages::Always);
  EXPECT_EQ(config_of("instance: { huge-pages: never }").instance.huge_pages, HugePages::Never);
  EXPECT_EQ(config_of("instance: { initial-after-damage: full }").instance.initial_after_damage,
            rule::Initial::Full);
  for (const LogLevel level : {LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn,
                               LogLevel::Error}) {
    EXPECT_EQ(config_of("log: { level: " + std::string(name_of(level)) + " }").log.level, level);
  }
  EXPECT_EQ(config_of("log: { format: json }").log.format, LogFormat::Json);
  EXPECT_EQ(config_of("log: { target: \"file:/var/log/c.log\" }").log.file, "/var/log/c.log");
  EXPECT_EQ(config_of("limits: { a: { rate: 1/s, on-full: deny } }").limits[0].on_full,
            rule::OnFull::Deny);
  EXPECT_EQ(config_of("limits: { a: { rate: 1/s, initial: empty } }").limits[0].initial,
            rule::Initial::Empty);
  EXPECT_EQ(config_of("limits: { a: { rate: 1/s, on-change: additive } }").limits[0].on_change,
            rule::OnChange::KeepUsed);
  const auto limit = [](const std::string& key) {
    return config_of("limits: { a: { rate: 1/s, " + key + " } }").limits[0];
  };
  EXPECT_EQ(limit("on-change: as-is").on_change, rule::OnChange::AsIs);
  EXPECT_EQ(limit("on-change: proportional").on_change, rule::OnChange::Proportional);
  EXPECT_EQ(limit("on-change: reset").on_change, rule::OnChange::Reset);
  EXPECT_EQ(limit("mode: shadow").mode, rule::Mode::Shadow);
  EXPECT_EQ(limit("show-keys: shown").show_keys, rule::ShowKeys::Shown);
  EXPECT_EQ(limit("show-keys: hidden").show_keys, rule::ShowKeys::Hidden);
  constexpr const char* kUnits[] = {"minute", "hour", "day", "week", "month", "year"};
  for (std::size_t i = 0; i < rule::kCalendarUnits; ++i) {
    const Config config = config_of("limits: { a: { calendar: { count: 1, per: " +
                                    std::string(kUnits[i]) + " } } }");
    EXPECT_EQ(config.limits[0].windows[0].unit, static_cast<rule::CalendarUnit>(i));
  }
}

}  // namespace
}  // namespace cutwater::config
