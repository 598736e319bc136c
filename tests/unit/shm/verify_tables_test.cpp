// SPDX-License-Identifier: Apache-2.0
// verify finds what is planted among sets, overrides, patterns and calendars.
#include "unit/shm/publish_fixture.hpp"

namespace cutwater::shm {
namespace {

class VerifyTables : public PublishTest {
 protected:
  void SetUp() override {
    auto api = limit("api", {per_minute(10, 10),
                             rule::calendar_window(5, rule::CalendarUnit::Day, "UTC")});
    api.overrides = {over("k", {per_minute(3, 3)}), over("m", {per_minute(4, 4)}),
                     {.key = "a*", .pattern = true, .kind = rule::LimitKind::Blocked}};
    open({api, limit("other", {per_minute(1, 1)})});
    take("api", "k");
    take("api", "z", 3);
    ASSERT_EQ(verified(), "");
  }
  template <class Record>
  static Record& edit(const Record& record) { return const_cast<Record&>(record); }
  SetRecord& set(std::uint32_t i) { return edit(view().set(view().current(), i)); }
  RuleRecord& rule_at(std::uint16_t i) { return edit(view().rule(view().current(), i)); }
  PatternRecord& pattern() { return edit(view().pattern(view().current(), 0)); }
  CalendarRecord& calendar() { return edit(view().calendar(view().current(), 0)); }
  LimitConfig& config() { return edit(view().limit_config(view().current(), 0)); }
  OverrideRecord& used_override() {
    for (std::uint32_t i = 0; i < view().override_count; ++i) {
      OverrideRecord& record = edit(view().override_record(view().current(), i));
      if (record.key_hash != 0) return record;
    }
    std::abort();
  }
  /// Plants, looks for the text, puts the bytes back.
  template <class Record>
  void plant(Record& record, auto change, const std::string& text) {
    const Record honest = record;
    change(record);
    EXPECT_NE(verified().find(text), std::string::npos) << text << "\nfound:\n" << verified();
    record = honest;
    ASSERT_EQ(verified(), "");
  }
};

TEST_F(VerifyTables, FindsSetsThatCannotBe) {
  plant(set(kBannedSet), [](auto& s) { s.kind = 0; }, "set 2: is not the fixed one of its number");
  plant(set(kFirstSet), [](auto& s) { s.windows = 9; }, "has more windows than there are");
  plant(set(kFirstSet), [](auto& s) { s.rule[0] = 60'000; }, "which does not exist");
  plant(set(kFirstSet), [](auto& s) { s.limit = 1; }, "belongs to another limit or window");
  plant(set(kFirstSet), [&](auto& s) { s.rule[0] = config().rule[0]; }, "which is the limit's own");
}

TEST_F(VerifyTables, FindsOverridesNobodyWouldFind) {
  plant(used_override(), [](auto& o) { o.set = 77; }, "names set 77, which does not exist");
  plant(used_override(), [](auto& o) { o.key_hash = ~o.key_hash; }, "override ");
}

TEST_F(VerifyTables, FindsPatternsThatCannotBe) {
  plant(pattern(), [](auto& p) { p.length = 200; }, "pattern 0: has an impossible length");
  plant(pattern(), [](auto& p) { p.star = 0; }, "does not have its one '*' where it says");
  plant(pattern(), [](auto& p) { p.set = 50; }, "names set 50, which does not exist");
  plant(pattern(), [](auto& p) { p.limit = 1; }, "limit 0: counts a pattern of another limit");
  plant(config(), [](auto& c) { c.patterns = 200; }, "limit 0: has patterns beyond those reserved");
}

TEST_F(VerifyTables, FindsCalendarsThatCannotBe) {
  plant(calendar(), [](auto& c) { c.edges = 99; }, "calendar 0: has more edges");
  plant(calendar(), [](auto& c) { c.unit = 9; }, "has a unit that does not exist");
  plant(calendar(), [](auto& c) { c.period_ns = 0; }, "has a last period without length");
  plant(calendar(), [](auto& c) { c.edge[5] = c.edge[4]; }, "its edges do not rise");
  plant(calendar(), [](auto& c) { c.zone[21] = 'x'; }, "its zone has no end");
}

TEST_F(VerifyTables, FindsRulesOfCalendarsThatCannotBe) {
  RuleRecord& rule = rule_at(config().rule[1]);
  const std::string text = "has numbers that no configuration gives";
  plant(rule, [](auto& r) { r.mult = 3; }, text);
  plant(rule, [](auto& r) { r.mult = std::uint64_t{1} << 40; }, text);
  plant(rule, [](auto& r) { r.calendar = 400; }, text);
  plant(rule, [](auto& r) { r.f = 3; }, text);
  plant(rule, [](auto& r) { r.pred = 2; }, "its predecessor has another successor");
  plant(rule, [](auto& r) { r.succ = 50'000; }, "its successor does not exist");
}

}  // namespace
}  // namespace cutwater::shm
