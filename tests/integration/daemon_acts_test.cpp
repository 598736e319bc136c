// SPDX-License-Identifier: Apache-2.0
// What an operator does by hand: it holds at once, comes back after a restart and after a reboot,
// and can be undone. And what a changed file or a changed right does.
#include <filesystem>
#include <map>
#include <thread>

#include "integration/ask_fixture.hpp"

namespace cutwater::test {
namespace {

namespace fs = std::filesystem;

using wire::Value;

const Value kNothing = Value(Value::Map{});
constexpr std::uint64_t kHour = 3600ULL * 1'000'000'000;

class Acts : public Asked {
 protected:
  wire::SteerAnswer steer(std::string_view verb, const std::string& limit, const std::string& key,
                          Value arguments = kNothing, std::uint64_t for_ns = 0) {
    RawPeer peer(place_.socket());
    if (!peer.greet(hello(0))) return {999, peer.refusal().text, 0};
    wire::Steer asked;
    asked.verb = verb;
    if (!limit.empty()) asked.name = limit;
    if (!key.empty()) asked.key = key;
    asked.arguments = std::move(arguments);
    asked.for_ns = for_ns;
    asked.note = "by a test";
    return peer.steer(asked).value_or(wire::SteerAnswer{998, peer.refusal().text, 0});
  }
  /// "allowed 4", "banned", "limit".
  std::string ask(const std::string& limit, const std::string& key, std::uint64_t cost = 1) {
    RawPeer peer(place_.socket());
    if (!peer.greet(hello(0))) return peer.refusal().text;
    const auto answer = peer.ask<wire::AcquireAnswer>(acquire(limit, key, cost));
    if (!answer) return peer.refusal().text;
    const wire::DecisionAnswer& one = answer->decisions[0];
    const std::string reason(name_of(static_cast<Reason>(one.reason)));
    return one.allowed() ? reason + " " + std::to_string(one.remaining) : reason;
  }
  /// The change is in force within 100 ms of being published.
  bool becomes(const std::string& limit, const std::string& key, const std::string& answer) {
    return eventually([&] { return ask(limit, key, 0) == answer || ask(limit, key) == answer; });
  }
  std::vector<Value> read(const std::string& what) {
    RawPeer peer(place_.socket());
    if (!peer.greet(hello(0))) return {};
    const auto answer = peer.read(what);
    return answer ? answer->rows : std::vector<Value>{};
  }
  void restart(bool reboot) {
    daemon_->kill();
    if (reboot) fs::remove_all(place_.memory());
    daemon_.reset();
    daemon_.emplace(place_);
    ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  }
};

TEST_F(Acts, ABanHoldsAtOnceComesBackAfterARebootAndCanBeUndone) {
  start();
  EXPECT_EQ(ask("slow", "mallory"), "allowed 4");

  EXPECT_EQ(steer(wire::kVerbLimitBan, "slow", "mallory", kNothing, kHour).code, wire::kSteerDone);
  EXPECT_EQ(steer(wire::kVerbLimitBan, "slow", "for-ever").code, wire::kSteerDone);
  EXPECT_EQ(ask("slow", "mallory"), "banned");
  EXPECT_EQ(ask("slow", "for-ever"), "banned");
  EXPECT_EQ(ask("slow", "alice"), "allowed 4");

  for (const bool reboot : {false, true}) {
    restart(reboot);
    EXPECT_EQ(ask("slow", "mallory"), "banned") << "reboot " << reboot;
    EXPECT_EQ(ask("slow", "for-ever"), "banned") << "reboot " << reboot;
  }
  EXPECT_EQ(ask("slow", "alice"), "allowed 4") << "buckets do not come back after a reboot";

  const auto journal = read("journal");
  ASSERT_EQ(journal.size(), 2U);
  EXPECT_EQ(*journal[0].find("do")->as_string(), "ban");
  EXPECT_EQ(*journal[0].find("note")->as_string(), "by a test");
  EXPECT_EQ(journal[0].find("key")->as_string()->front(), '#') << "hashed by default";
  EXPECT_EQ(steer(wire::kVerbJournalUndo, "", "", Value::map({{"id", 2}})).code, wire::kSteerDone);
  EXPECT_EQ(steer(wire::kVerbLimitUnban, "slow", "mallory").code, wire::kSteerDone);
  EXPECT_TRUE(becomes("slow", "mallory", "allowed 4"));
  EXPECT_TRUE(becomes("slow", "for-ever", "allowed 4"));
  restart(true);
  EXPECT_EQ(ask("slow", "mallory"), "allowed 4");
  EXPECT_EQ(*read("journal")[0].find("state")->as_string(), "undone");
}

TEST_F(Acts, AnOverrideAndShadowAreInForceAndReloadsKeepThem) {
  start();
  const auto done = steer(wire::kVerbLimitOverride, "slow", "partner",
                          Value::map({{"rate", "100/h"}, {"burst", 50}}));
  EXPECT_EQ(done.code, wire::kSteerDone) << done.text;
  EXPECT_TRUE(eventually([&] { return ask("slow", "partner", 30) == "allowed 20"; }));
  EXPECT_EQ(steer(wire::kVerbLimitShadow, "tenant", "", Value::map({{"on", true}})).code,
            wire::kSteerDone);
  EXPECT_TRUE(becomes("tenant", "acme", "allowed 4"));
  EXPECT_TRUE(eventually([&] { return ask("tenant", "big", 1000).rfind("allowed", 0) == 0; }));

  place_.write_config(std::string(kLimits) + "  more: { rate: 1/s }\n");
  ASSERT_EQ(steer(wire::kVerbConfigReload, "", "").code, wire::kSteerDone);
  EXPECT_EQ(ask("slow", "partner", 20), "allowed 0");
  EXPECT_EQ(ask("slow", "other", 6), "never");

  const auto overrides = read("overrides");
  ASSERT_EQ(overrides.size(), 1U);
  EXPECT_EQ(*overrides[0].find("origin")->as_string(), "act");
  EXPECT_EQ(steer(wire::kVerbLimitOverride, "slow", "partner").code, wire::kSteerDone);
  EXPECT_TRUE(eventually([&] { return ask("slow", "partner", 6) == "never"; }));
}

TEST_F(Acts, DrainCreditAndResetOfOneKey) {
  start();
  EXPECT_EQ(steer(wire::kVerbLimitDrain, "slow", "a").text,
            "drained: what was there is spent in every window; the one with the fewest had 5 "
            "tokens");
  EXPECT_EQ(ask("slow", "a"), "limit");
  EXPECT_EQ(steer(wire::kVerbLimitCredit, "slow", "a", Value::map({{"n", 2}})).text,
            "credited: 2 tokens are there now");
  EXPECT_EQ(ask("slow", "a"), "allowed 1");
  EXPECT_EQ(steer(wire::kVerbLimitDrain, "tenant", "a").text,
            "drained: what was there is spent in every window; the one with the fewest had 4 "
            "tokens");
  EXPECT_EQ(steer(wire::kVerbLimitReset, "slow", "a").code, wire::kSteerDone);
  EXPECT_EQ(ask("slow", "a"), "allowed 4");
}

TEST_F(Acts, C136TopKeysAreAListOfFixedSizeShownAsTheLimitAllows) {
  start({}, "capacity: { processes: 64, keys: 4096, tops: 8 }\n"
            "limits:\n"
            "  hashed: { rate: 1/h, burst: 1 }\n"
            "  shown:  { rate: 1/h, burst: 1, show-keys: shown }\n"
            "  hidden: { rate: 1/h, burst: 1, show-keys: hidden }\n");
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello(0)));
  for (const char* limit : {"hashed", "shown", "hidden"}) {
    for (int i = 0; i < 60; ++i) {
      wire::Acquire asked = acquire(limit, "flood" + std::to_string(i));
      asked.items.push_back({std::nullopt, "mallory", 1, 0});
      ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(asked));
    }
  }

  std::map<std::string, std::string> heaviest;
  std::map<std::string, int> rows;
  for (const Value& row : read("top")) {
    const std::string limit = *row.find("limit")->as_string();
    if (rows[limit]++ == 0) heaviest[limit] = *row.find("key")->as_string();
  }
  for (const auto& [limit, count] : rows) EXPECT_EQ(count, 8) << limit;
  EXPECT_EQ(heaviest["shown"], "mallory");
  EXPECT_EQ(heaviest["hashed"].size(), 17U);
  EXPECT_EQ(heaviest["hashed"].front(), '#');
  EXPECT_EQ(heaviest["hidden"], "");
  EXPECT_EQ(daemon_->log().find("mallory"), std::string::npos);
}

TEST_F(Acts, WrongActsSayWhatIsWrongAndChangeNothing) {
  start();
  EXPECT_EQ(steer(wire::kVerbLimitBan, "nobody", "a").code, wire::kSteerNoSuchName);
  EXPECT_EQ(steer(wire::kVerbLimitBan, "slow", "").code, wire::kSteerInvalid);
  EXPECT_EQ(steer(wire::kVerbLimitCredit, "slow", "a").code, wire::kSteerInvalid);
  EXPECT_EQ(steer(wire::kVerbLimitOverride, "slow", "a", Value::map({{"rate", "0/s"}})).code,
            wire::kSteerInvalid);
  EXPECT_EQ(steer(wire::kVerbJournalUndo, "", "", Value::map({{"id", 7}})).code,
            wire::kSteerNoSuchName);
  EXPECT_EQ(steer(wire::kVerbLogLevel, "", "", Value::map({{"level", "loud"}})).code,
            wire::kSteerInvalid);
  EXPECT_EQ(steer("limit.bann", "slow", "a").code, wire::kSteerInvalid);
  EXPECT_TRUE(read("journal").empty());
}

TEST_F(Acts, ARefusedPublicationLeavesTheFormerBreakersAndActsGoOn) {
  start({}, "capacity: { processes: 64, keys: 4096, breaker-memory: 64KiB }\n"
            "limits: { slow: { rate: 1/h, burst: 5 } }\nbreakers: { stock: {} }\n");
  const std::string good = read_file(place_.config());
  // Good by itself; whether its windows fit is known at publication only.
  std::string bad = good.substr(0, good.rfind(" }")) + ",\n";
  bad += "  big: { sliding-window-type: COUNT_BASED, sliding-window-size: 65535 } }\n";
  const std::string refusal = "the breakers need";

  write_file(place_.path() + "/bad", bad);
  fs::rename(place_.path() + "/bad", place_.config());
  EXPECT_TRUE(daemon_->wait_log(refusal)) << daemon_->log();

  for (int round = 0; round < 2; ++round) {
    const auto override = steer(wire::kVerbLimitOverride, "slow", "partner",
                                Value::map({{"unlimited", true}}));
    EXPECT_EQ(override.code, wire::kSteerDone) << override.text;
    const auto ban = steer(wire::kVerbLimitBan, "slow", "mallory");
    EXPECT_EQ(ban.code, wire::kSteerDone) << ban.text;
    const auto unban = steer(wire::kVerbLimitUnban, "slow", "mallory");
    EXPECT_EQ(unban.code, wire::kSteerDone) << unban.text;
    const auto ended = steer(wire::kVerbLimitOverride, "slow", "partner");
    EXPECT_EQ(ended.code, wire::kSteerDone) << ended.text;
    if (round != 0) break;
    const auto asked = steer(wire::kVerbConfigReload, "", "");
    EXPECT_EQ(asked.code, wire::kSteerInvalid);
    EXPECT_NE(asked.text.find(refusal), std::string::npos) << asked.text;
  }

  write_file(place_.path() + "/good", good);
  fs::rename(place_.path() + "/good", place_.config());
  EXPECT_TRUE(daemon_->wait_log("reloaded: 0 limits added, 0 changed, 0 removed, 1 unchanged"))
      << daemon_->log();
}

TEST_F(Acts, ARefusedActLeavesNoEvent) {
  start({}, "capacity: { processes: 64, keys: 4096, overrides: 1 }\n"
            "limits: { slow: { rate: 1/h, burst: 5 } }\n");
  const Value unlimited = Value::map({{"unlimited", true}});
  const auto acts = [&] {
    std::size_t count = 0;
    for (const Value& row : read("events")) {
      const std::string* kind = row.find("kind") ? row.find("kind")->as_string() : nullptr;
      count += kind != nullptr && *kind == "manual_act" ? 1 : 0;
    }
    return count;
  };
  ASSERT_EQ(steer(wire::kVerbLimitOverride, "slow", "one", unlimited).code, wire::kSteerDone);
  EXPECT_EQ(acts(), 1U);

  const auto refused = steer(wire::kVerbLimitOverride, "slow", "two", unlimited);

  EXPECT_NE(refused.code, wire::kSteerDone) << refused.text;
  EXPECT_NE(refused.text.find("capacity.overrides"), std::string::npos) << refused.text;
  EXPECT_EQ(acts(), 1U);
  ASSERT_EQ(steer(wire::kVerbLimitOverride, "slow", "one").code, wire::kSteerDone);
  EXPECT_EQ(acts(), 2U) << "its end";
}

TEST_F(Acts, ShadowOffEndsWhatAHandBeganWhereTheFileEnforces) {
  start();
  const Value on = Value::map({{"on", true}}), off = Value::map({{"on", false}});
  EXPECT_EQ(steer(wire::kVerbLimitShadow, "slow", "", off).text,
            "nothing to do: the limit is enforced");
  EXPECT_EQ(steer(wire::kVerbLimitShadow, "slow", "", on).text, "shadow until undone");

  const auto ended = steer(wire::kVerbLimitShadow, "slow", "", off);

  EXPECT_EQ(ended.code, wire::kSteerDone);
  EXPECT_EQ(ended.text, "enforced again: shadow of act 1 undone");
  EXPECT_EQ(ended.act, 0U) << "none stands by it";
}

TEST_F(Acts, ShadowOffHoldsAgainstAFileThatSaysShadow) {
  start({}, "limits: { slow: { rate: 1/h, burst: 5, mode: shadow } }\n");

  const auto off = steer(wire::kVerbLimitShadow, "slow", "", Value::map({{"on", false}}));

  EXPECT_EQ(off.text,
            "enforced until undone; this beats mode: shadow of the configuration, reloads too");
  EXPECT_EQ(off.act, 1U);
  EXPECT_EQ(steer(wire::kVerbLimitShadow, "slow", "", Value::map({{"on", true}})).text,
            "shadow until undone; the configuration says mode: shadow already");
}

TEST_F(Acts, WithoutAStateDirectoryAnActHoldsAndSaysThatItIsNotSaved) {
  start({.arguments = {"--set", "instance.state-directory=off"}});

  const auto answer = steer(wire::kVerbLimitBan, "slow", "mallory", kNothing, kHour);

  EXPECT_EQ(answer.code, wire::kSteerDone);
  EXPECT_NE(answer.text.find("NOT saved"), std::string::npos) << answer.text;
  EXPECT_EQ(ask("slow", "mallory"), "banned");
}

TEST_F(Acts, ATimedBanThatTheBookHasNoRoomForIsNotInTheTableEither) {
  constexpr int kMostActs = 4096;
  start({.arguments = {"--set", "instance.state-directory=off"}},
        "capacity: { processes: 64, keys: 65536 }\nlimits: { slow: { rate: 1/h, burst: 5 } }\n");
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello(0)));
  const auto ban = [&](const std::string& key) {
    wire::Steer asked;
    asked.verb = wire::kVerbLimitBan;
    asked.name = "slow";
    asked.key = key;
    asked.for_ns = kHour;
    return peer.steer(asked).value_or(wire::SteerAnswer{998, peer.refusal().text, 0});
  };
  for (int i = 0; i < kMostActs; ++i) {
    ASSERT_EQ(ban("k" + std::to_string(i)).code, wire::kSteerDone) << i;
  }

  EXPECT_EQ(ban("mallory").code, wire::kSteerNoRoom);

  EXPECT_EQ(ask("slow", "mallory"), "allowed 4");
  EXPECT_EQ(ask("slow", "k0"), "banned");
}

TEST_F(Acts, ASwappedLinkOfAContainerPlatformIsReloaded) {
  for (const char* version : {"..v1", "..v2"}) fs::create_directory(place_.path() + "/" + version);
  write_file(place_.path() + "/..v1/cutwater.yaml", kLimits);
  write_file(place_.path() + "/..v2/cutwater.yaml",
             std::string(kLimits) + "  new: { rate: 1/s }\n");
  fs::create_directory_symlink("..v1", place_.path() + "/..data");
  fs::create_symlink("..data/cutwater.yaml", place_.config());
  daemon_.emplace(place_);
  ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  ASSERT_NE(ask("new", "a"), "allowed 0");

  fs::create_directory_symlink("..v2", place_.path() + "/..new");
  fs::rename(place_.path() + "/..new", place_.path() + "/..data");

  EXPECT_TRUE(eventually([&] { return ask("new", "a") == "allowed 0"; })) << daemon_->log();
}

TEST_F(Acts, AWrongFileThatIsPutThereChangesNothingAndIsSaid) {
  start();
  write_file(place_.path() + "/next", "limits: { slow: { rate: 1/h, brust: 5 } }\n");
  fs::rename(place_.path() + "/next", place_.config());

  EXPECT_TRUE(daemon_->wait_log("did you mean 'burst'?"));
  EXPECT_EQ(ask("slow", "a"), "allowed 4");
}

TEST_F(Acts, C065WhoMayOnlyAskAsksAndWhoLosesTheRightIsToldAndEnded) {
  if (!is_root()) GTEST_SKIP() << "needs root to come as another user";
  const std::string open = "listen: { unix: { mode: \"0666\" } }\n";
  start({}, "access: { ask: { users: [23456] } }\n" + open + kLimits);
  const std::string socket = place_.memory() + "@socket/cutwater.sock";
  const std::string config = place_.config();
  write_file(place_.path() + "/less", "access: { ask: { users: [34567] } }\n" + open + kLimits);

  std::thread swap([&] {
    const bool asked = eventually([&] {
      RawPeer root(socket);
      if (!root.greet(RawPeer::hello(Want::Ask))) return false;
      const auto counters = root.read("counters");
      for (const wire::Value& row : counters ? counters->rows : std::vector<wire::Value>{}) {
        if (row.find("allowed")->as_unsigned() == 1U) return true;
      }
      return false;
    });
    if (asked) fs::rename(place_.path() + "/less", config);
  });
  const std::string seen = as_user(23456, 23456, {}, [&]() -> std::string {
    RawPeer peer(socket);
    const auto welcome = peer.greet(RawPeer::hello(Want::Map));
    if (!welcome) return "refused: " + peer.refusal().text;
    if (welcome->mode != Want::Ask || welcome->why.empty()) return "mapped";
    if (!peer.ask<wire::AcquireAnswer>(acquire("slow", "a"))) return "no answer";
    if (peer.read("status") || peer.refusal().code != ErrorCode::NotPermitted) return "may look";
    while (const auto frame = peer.receive()) {
      if (frame->header.type != MessageType::Goaway) continue;
      const auto goaway = wire::decode<wire::Goaway>(frame->payload);
      if (goaway->reason != wire::GoawayReason::RightsChanged) return "another reason";
      RawPeer again(socket);
      return again.greet(RawPeer::hello(Want::Ask)) ? "still welcome" : "told";
    }
    return "not told";
  });
  swap.join();

  EXPECT_EQ(seen, "told") << daemon_->log();
}

}  // namespace
}  // namespace cutwater::test
