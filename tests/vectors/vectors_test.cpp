// SPDX-License-Identifier: Apache-2.0
// Every row of the table over every way. A group runs once per way, on the first question about one
// of its rows; each row is then a test of its own.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "shm/limit/admit.hpp"
#include "src/core.hpp"
#include "support/exact_limiter.hpp"
#include "support/wall_clock.hpp"
#include "support/way.hpp"
#include "vectors/vector_table.hpp"

namespace cutwater::test {
namespace {

using std::chrono::milliseconds;

struct Answer {
  bool allowed = false;
  Reason reason = Reason::Degraded;
  std::uint64_t remaining = 0;
  Nanos retry{0}, reset{0}, starts{0};
  bool degraded = false;

  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer answer_of(const Decision& d) {
  return {d.allowed(),     d.reason(),    d.remaining(), d.retry_after(),
          d.reset_after(), d.starts_in(), d.degraded()};
}

/// One row asked, and what the oracle says in the same place.
struct Asked {
  std::vector<Answer> answers;            ///< Row::times of them
  std::optional<ExactAnswer> exact;       ///< nothing behind a reload
};

std::string config_of(const char* rate, std::uint64_t burst, const char* more) {
  return "limits: {api: {rate: " + std::string(rate) + ", burst: " + std::to_string(burst) + more +
         "}}\n";
}

/// An operator's act, in the memory itself; answered by the look after it.
Answer credit(Way& way, std::uint64_t tokens) {
  const shm::View& view = way.view();
  const shm::LimitHandle api = shm::resolve(view, "api");
  DecisionData out;
  EXPECT_EQ(shm::credit(view, {api.ref, shm::key_of(api, "k"), 0, 0}, tokens, out),
            shm::Outcome::Answered);
  return answer_of(Decision{out});
}

Asked ask(Way& way, const Row& row, const char* more, ExactBucket* oracle) {
  Asked asked;
  if (row.act == Act::StepWallClock) {
    step_wall_clock(std::chrono::seconds{row.amount});
    return asked;
  }
  way.at(milliseconds{row.at_ms});
  if (row.act == Act::Reload) {
    const auto burst = static_cast<std::uint64_t>(row.amount);
    const auto done = way.reload(config_of(row.rate, burst, more));
    EXPECT_TRUE(done) << done.error().text();
    Answer seen = answer_of(way.limit("api").peek("k", 0));
    seen.allowed = done.ok();               // the answer of the row is the change's, not the look's
    seen.reason = done.ok() ? Reason::Allowed : Reason::Degraded;
    seen.retry = Nanos{0};
    asked.answers.push_back(seen);
    return asked;
  }
  const auto cost = static_cast<std::uint64_t>(row.amount);
  if (row.act == Act::Credit) {
    asked.answers.push_back(credit(way, cost));
    return asked;
  }
  if (row.act == Act::ChargeAfter) {
    const Decision d = way.limit("api").charge("k", cost);
    EXPECT_EQ(d.charged(), cost);
    asked.answers.push_back(answer_of(d));
    return asked;
  }
  for (int i = 0; i < row.times; ++i) {
    asked.answers.push_back(answer_of(way.limit("api").try_acquire("k", cost)));
    const auto now = static_cast<std::uint64_t>(Nanos{milliseconds{row.at_ms}}.count());
    if (oracle != nullptr) asked.exact = oracle->take(now, cost);
  }
  return asked;
}

/// All rows of a group, in order. Empty when the way did not open.
std::vector<Asked> run(const WayMaker& maker, const Group& group) {
  const auto way = maker.make();
  const auto opened = way->open(config_of(group.rate, group.burst, group.more));
  EXPECT_TRUE(opened) << opened.error().text();
  if (!opened) return {};
  bool oracle_holds = true;
  ExactBucket oracle(group.rate_count, group.rate_period_ns, group.burst);
  std::vector<Asked> all;
  for (const Row& row : group.rows) {
    if (row.act != Act::Take && row.act != Act::StepWallClock) oracle_holds = false;
    all.push_back(ask(*way, row, group.more, oracle_holds ? &oracle : nullptr));
  }
  return all;
}

const std::vector<Asked>& asked_once(const WayMaker& maker, const Group& group) {
  static std::map<std::string, std::vector<Asked>> all;
  const std::string name = std::string(maker.name) + group.name;
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  return all.emplace(name, run(maker, group)).first->second;
}

std::int64_t ms_up(Nanos t) {
  return t == kNever ? kNeverMs : std::chrono::ceil<milliseconds>(t).count();
}

/// A change of rate cuts the tokens accrued so far to whole units of the limit's clock, against the
/// caller: at most 1 ns in this table.
void expect_behind_reload(Nanos seen, Nanos exact) {
  EXPECT_GE(seen, exact);
  EXPECT_LE(seen, exact == Nanos{0} ? exact : exact + Nanos{1});
}

void check(const Row& row, const Asked& asked) {
  ASSERT_EQ(asked.answers.size(), static_cast<std::size_t>(row.times));
  const Answer& first = asked.answers.front();
  for (const Answer& answer : asked.answers) EXPECT_EQ(answer, first);

  EXPECT_EQ(first.allowed, row.allowed);
  EXPECT_EQ(first.remaining, row.remaining);
  EXPECT_EQ(ms_up(first.retry), row.retry_ms);
  EXPECT_EQ(ms_up(first.reset), row.reset_ms);
  const Reason refusal = row.retry_ms == kNeverMs ? Reason::Never : Reason::Limit;
  EXPECT_EQ(first.reason, row.allowed ? Reason::Allowed : refusal);
  EXPECT_EQ(first.starts, Nanos{0});
  EXPECT_FALSE(first.degraded);
  if (asked.exact) {
    EXPECT_EQ(first.allowed, asked.exact->allowed);
    EXPECT_EQ(first.remaining, asked.exact->remaining);
    const auto retry = asked.exact->retry_after_ns;
    EXPECT_EQ(first.retry, retry ? Nanos{static_cast<std::int64_t>(*retry)} : kNever);
    EXPECT_EQ(first.reset, Nanos{static_cast<std::int64_t>(asked.exact->reset_after_ns)});
  }
  if (row.retry_ns) { expect_behind_reload(first.retry, Nanos{*row.retry_ns}); }
  if (row.reset_ns) { expect_behind_reload(first.reset, Nanos{*row.reset_ns}); }
  EXPECT_TRUE(asked.exact || row.reset_ns) << "a row without an exact answer shows nothing";
}

struct Vector {
  const WayMaker* maker;
  const Group* group;
  std::size_t row;
};

std::string name_of(const Vector& v) {
  return std::string(v.group->rows[v.row].id) + v.maker->name;
}

std::string name_of_vector(const ::testing::TestParamInfo<Vector>& parameter) {
  return name_of(parameter.param);
}

void PrintTo(const Vector& v, std::ostream* out) { *out << name_of(v); }

std::vector<Vector> all_vectors() {
  std::vector<Vector> all;
  for (const WayMaker& maker : every_way()) {
    for (const Group& group : vector_table()) {
      for (std::size_t i = 0; i < group.rows.size(); ++i) {
        if (*group.rows[i].id != '\0') all.push_back({&maker, &group, i});
      }
    }
  }
  return all;
}

class Vectors : public ::testing::TestWithParam<Vector> {};

// covers: V01-V35, V41-V55, V58-V64, V73, V74 (in memory, mapped, socket)
TEST_P(Vectors, Row) {
  const auto& [maker, group, row] = GetParam();

  const std::vector<Asked>& asked = asked_once(*maker, *group);

  ASSERT_EQ(asked.size(), group->rows.size());
  check(group->rows[row], asked[row]);
}

INSTANTIATE_TEST_SUITE_P(All, Vectors, ::testing::ValuesIn(all_vectors()), name_of_vector);

TEST(VectorTable, HasEachNumberOnce) {
  std::map<std::string, int> seen;
  for (const Group& group : vector_table()) {
    for (const Row& row : group.rows) ++seen[row.id];
  }
  seen.erase("");
  EXPECT_EQ(seen.size(), 35U + 7 + 8 + 7 + 2);
  for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id;
}

}  // namespace
}  // namespace cutwater::test
