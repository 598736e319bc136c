// SPDX-License-Identifier: Apache-2.0
// Random scripts of names that come, are used, rest and make room, with reloads, a pattern that is
// taken out and put back, and deaths: after each step who is in where is what plain lists say.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "stress/pattern_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadRef;
using shm::Left;

constexpr std::uint32_t kInstances = 4, kMostPlaces = 4, kNames = 7;

class Script {
 public:
  explicit Script(std::uint64_t seed)
      : chance_(seed), w_({settings()}, {.bulkheads = kInstances + 1, .bulkhead_cells = 512}) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      said_.str("");
      said_ << "step " << i << ": ";
      step();
      SCOPED_TRACE(said_.str());
      agree();
    }
  }
  std::uint64_t granted = 0, shared = 0, left = 0, came_back = 0, deaths = 0;

 private:
  struct Holder {
    std::string at;                                  ///< the name, or "" of the pattern's own
    BulkheadRef ref;
    shm::BulkheadEntry entry;
    std::uint32_t process;
  };

  rule::BulkheadSettings settings() const {
    rule::BulkheadSettings out = gates(kInstances, limit_);
    out.idle_ns = 1'000'000'000;
    return out;
  }
  std::uint32_t in(const std::string& name) const {
    return static_cast<std::uint32_t>(
        std::count_if(held_.begin(), held_.end(), [&](const Holder& h) { return h.at == name; }));
  }

  void step() {
    const std::uint64_t dice = chance_.below(1'000);
    if (dice < 450) enter();
    else if (dice < 880) leave();
    else if (dice < 940) make_room();
    else if (dice < 965) reload();
    else if (dice < 985) take_out_or_back();
    else die();
  }
  void enter() {
    const std::string name = "bank-" + std::to_string(chance_.below(kNames));
    const auto process = static_cast<std::uint32_t>(chance_.below(2));
    said_ << process << " enters " << name;
    const shm::ResolvedBulkhead found = w_.gate(name);
    if (out_) {
      EXPECT_EQ(found.ref.index, shm::kNoLine);
      return;
    }
    if (names_.size() < kInstances) names_.insert(name);
    EXPECT_EQ(found.shared, !names_.contains(name));
    const std::string at = found.shared ? "" : name;
    const shm::BulkheadEntry entry = w_.enter(found.ref, process);
    EXPECT_EQ(entry.granted, in(at) < limit_);
    shared += found.shared ? 1 : 0;
    granted += entry.granted ? 1 : 0;
    if (entry.granted) held_.push_back({at, found.ref, entry, process});
  }
  /// Also of a pattern that is out: by the reference the call began with.
  void leave() {
    if (held_.empty()) return;
    const auto which = held_.begin() + static_cast<std::ptrdiff_t>(chance_.below(held_.size()));
    said_ << which->process << " leaves " << which->at;
    EXPECT_EQ(w_.leave(which->ref, which->entry, which->process), Left::Returned);
    held_.erase(which);
  }
  void make_room() {
    said_ << "all who rest make room";
    w_.look();
    w_.pass(kSecond);
    EXPECT_EQ(w_.make_room(w_.look()), "");
    if (out_ || names_.size() < kInstances) return;
    left += std::erase_if(names_, [&](const std::string& name) { return in(name) == 0; });
  }
  void reload() {
    const std::uint32_t before = limit_;
    limit_ = 1 + static_cast<std::uint32_t>(chance_.below(kMostPlaces));
    said_ << "limit " << limit_;
    if (out_) return;
    // Too scattered, or what was freed rests: as it was.
    if (w_.publish({settings()}).empty()) return;
    limit_ = before;
    EXPECT_EQ(w_.publish({settings()}), "");
  }
  void take_out_or_back() {
    out_ = !out_;
    said_ << (out_ ? "the pattern is taken out" : "the pattern comes back");
    if (!out_) {
      // Whoever is in has its name; the others are forgotten.
      std::erase_if(names_, [&](const std::string& name) { return in(name) == 0; });
      ++came_back;
    }
    EXPECT_EQ(w_.publish(out_ ? std::vector<rule::BulkheadSettings>{} :
                                std::vector<rule::BulkheadSettings>{settings()}), "");
  }
  void die() {
    const auto process = static_cast<std::uint32_t>(chance_.below(2));
    said_ << process << " dies";
    w_.die(process);
    std::erase_if(held_, [&](const Holder& h) { return h.process == process; });
    ++deaths;
  }

  void agree() {
    std::map<std::string, std::uint32_t> seen;
    for (std::uint32_t i = 0; i < w_.view().bulkhead_count; ++i) {
      shm::BulkheadInfo info;
      if (!shm::read_bulkhead(w_.view(), i, info)) continue;
      const bool fresh = seen.emplace(info.name, info.in_use).second;
      EXPECT_TRUE(fresh) << info.name << " has two places";
    }
    std::map<std::string, std::uint32_t> wanted;
    if (!out_) {
      wanted["bank-*"] = in("");
      for (const std::string& name : names_) wanted[name] = in(name);
    }
    EXPECT_EQ(seen, wanted);
  }

  Chance chance_;
  std::uint32_t limit_ = 2;
  bool out_ = false;
  PatternWorld w_;
  std::set<std::string> names_;                      ///< that have a place
  std::vector<Holder> held_;
  std::ostringstream said_;
};

TEST(PatternScript, PlainListsAgreeStepByStep) {
  const std::uint64_t seed = 1;
  std::uint64_t granted = 0, shared = 0, left = 0, came_back = 0, deaths = 0;
  for (std::uint64_t run = 0; run < 20; ++run) {
    Script script(seed + run);
    script.run(2'000);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " run " << run;
    granted += script.granted;
    shared += script.shared;
    left += script.left;
    came_back += script.came_back;
    deaths += script.deaths;
  }
  EXPECT_GT(granted, 1'000U);
  EXPECT_GT(shared, 100U);
  EXPECT_GT(left, 100U);
  EXPECT_GT(came_back, 20U);
  EXPECT_GT(deaths, 20U);
}

}  // namespace
}  // namespace cutwater::test
