// SPDX-License-Identifier: Apache-2.0
// Reloads of a running daemon: taken over whole, or refused with every reason and nothing changed.
#include <gtest/gtest.h>

#include <csignal>

#include <sys/stat.h>
#include <unistd.h>

#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

class Reload : public testing::Test {
 protected:
  Reload() {
    place_.write_config("limits: { api: { rate: 10/s, burst: 10 } }\n");
    daemon_.emplace(place_);
    EXPECT_TRUE(daemon_->ready()) << daemon_->log();
    peer_.emplace(place_.socket());
    EXPECT_TRUE(peer_->greet(wire::Want::Ask));
  }
  wire::SteerAnswer reload() {
    wire::Steer asked;
    asked.verb = wire::kVerbConfigReload;
    return peer_->steer(asked).value_or(wire::SteerAnswer{999, peer_->refusal().text, 0});
  }
  std::string status(const char* key) {
    const auto answer = peer_->read("status");
    const wire::Value* value = answer ? answer->rows.at(0).find(key) : nullptr;
    if (value == nullptr) return "none";
    if (const auto number = value->as_unsigned()) return std::to_string(*number);
    return value->as_string() != nullptr ? *value->as_string() : "?";
  }

  ScratchPlace place_;
  std::optional<DaemonProcess> daemon_;
  std::optional<RawPeer> peer_;
};

TEST_F(Reload, C130EachBadFileIsRefusedWithItsReasonAndTheOldOneRunsWhole) {
  const std::string hash = status("config_hash"), generation = status("generation");
  struct Bad { const char* what; std::string text; const char* reason; };
  const Bad files[] = {
      {"syntax", "limits: { api: [", "cutwater.yaml:"},
      {"unknown key", "limits: { api: { rate: 20/s, brust: 1 } }", "did you mean 'burst'?"},
      {"impossible change", "instance: { name: blue }\nlimits: { api: { rate: 20/s } }",
       "needs a restart"},
      {"half written", "limits:\n  api: { rate: 20/s }\n  other: { ra", "cutwater.yaml:"},
      {"beyond what was reserved", "capacity: { keys: 4M }\nlimits: { api: { rate: 20/s } }",
       "capacity.keys"},
  };
  for (const Bad& bad : files) {
    place_.write_config(bad.text);

    const wire::SteerAnswer answer = reload();

    EXPECT_EQ(answer.code, wire::kSteerInvalid) << bad.what;
    EXPECT_NE(answer.text.find(bad.reason), std::string::npos) << bad.what << ": " << answer.text;
    EXPECT_NE(answer.text.find("the running configuration stays"), std::string::npos) << bad.what;
    EXPECT_EQ(status("config_hash"), hash) << bad.what;
    EXPECT_EQ(status("generation"), generation) << bad.what;
  }
  EXPECT_EQ(status("reloads_refused"), std::to_string(std::size(files)));
}

TEST_F(Reload, C130AFileThatCannotBeReadIsRefused) {
  ::unlink(place_.config().c_str());
  const wire::SteerAnswer gone = reload();
  EXPECT_EQ(gone.code, wire::kSteerInvalid);
  EXPECT_NE(gone.text.find(place_.config()), std::string::npos) << gone.text;

  ASSERT_EQ(::mkfifo(place_.config().c_str(), 0644), 0);   // would hold whoever opens it
  EXPECT_EQ(reload().code, wire::kSteerInvalid);
  EXPECT_EQ(peer_->ping(1)->value, 1U);
}

TEST_F(Reload, AGoodFileIsTakenOverAndShowsInStatus) {
  const std::string hash = status("config_hash");
  place_.write_config("limits: { api: { rate: 10/s, burst: 20 }, new: { rate: 1/s } }\n");

  const wire::SteerAnswer answer = reload();

  EXPECT_EQ(answer.code, wire::kSteerDone) << answer.text;
  EXPECT_NE(status("config_hash"), hash);
  EXPECT_EQ(status("limits"), "2");
  EXPECT_EQ(status("reloads"), "1");
}

TEST_F(Reload, ASignalReloadsAndTellsTheManager) {
  place_.write_config("limits: { api: { rate: 10/s, burst: 20 } }\n");

  daemon_->signal(SIGHUP);

  EXPECT_TRUE(daemon_->wait_notification("RELOADING=1"));
  EXPECT_TRUE(daemon_->wait_notification("STATUS=reloaded: "));
  EXPECT_TRUE(daemon_->wait_log("1 changed"));
}

TEST_F(Reload, ASignalWithABadFileIsSaidLineByLine) {
  place_.write_config("limits:\n  a: { rate: 0/s }\n  b: { rate: 5 }\n");

  daemon_->signal(SIGHUP);

  EXPECT_TRUE(daemon_->wait_log("2 errors; nothing was reloaded"));
  EXPECT_NE(daemon_->log().find("cutwater.yaml:2:"), std::string::npos);
  EXPECT_NE(daemon_->log().find("cutwater.yaml:3:"), std::string::npos);
}

TEST_F(Reload, ADryOneTellsItsDiffToWhoAskedAndNotToTheLog) {
  place_.write_config("limits: { api: { rate: 20/s, burst: 20 }, new: { rate: 1/s } }\n");
  wire::Steer asked;
  asked.verb = wire::kVerbConfigReload;
  asked.arguments = wire::Value::map({{"dry", true}});

  const auto answer = peer_->steer(asked);

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, wire::kSteerDone) << answer->text;
  EXPECT_NE(answer->text.find("new"), std::string::npos) << answer->text;
  EXPECT_TRUE(daemon_->wait_log("nothing was changed (dry)"));
  EXPECT_EQ(daemon_->log().find("(dry)?"), std::string::npos) << daemon_->log();
  EXPECT_EQ(daemon_->log().find("20/s"), std::string::npos) << daemon_->log();
}

TEST_F(Reload, APatternThatIsNoneOrDoesNotFitIsRefusedWithItsRemedy) {
  const std::string limits = "limits: { api: { rate: 10/s } }\n";
  place_.write_config(limits + "breakers: { \"a*b*\": {} }\n");
  const wire::SteerAnswer form = reload();
  EXPECT_EQ(form.code, wire::kSteerInvalid);
  EXPECT_NE(form.text.find("cutwater.yaml:2:13: breakers.a*b*: a pattern is a name with one * in "
                           "it, such as \"bank-*\""),
            std::string::npos)
      << form.text;

  place_.write_config(limits + "breakers: { \"bank-*\": {} }\nbulkheads: { \"bank-*\": {} }\n");
  const wire::SteerAnswer first = reload();          // as it comes it fits
  EXPECT_EQ(first.code, wire::kSteerDone) << first.text;

  place_.write_config(limits + "breakers: { \"bank-*\": { max-instances: 100 } }\n");
  const wire::SteerAnswer room = reload();
  EXPECT_EQ(room.code, wire::kSteerInvalid);
  EXPECT_NE(room.text.find("capacity.breakers: the blocks take 101 now, and 80 were reserved at "
                           "start; restart the daemon"),
            std::string::npos)
      << room.text;
}

TEST_F(Reload, ChangesInQuickSuccessionAllTakeEffect) {
  for (int burst = 11; burst <= 20; ++burst) {
    place_.write_config("limits: { api: { rate: 10/s, burst: " + std::to_string(burst) + " } }\n");
    const wire::SteerAnswer answer = reload();
    ASSERT_EQ(answer.code, wire::kSteerDone) << answer.text;
  }

  const auto limits = peer_->read("limits");
  EXPECT_EQ(limits->rows.at(0).find("burst")->as_unsigned(), 20U);
}

TEST_F(Reload, AccessAndLogLevelFollowTheFile) {
  place_.write_config("log: { level: debug }\nlimits: { api: { rate: 10/s, burst: 10 } }\n");
  ASSERT_EQ(reload().code, wire::kSteerDone);

  RawPeer mapped(place_.socket());
  ASSERT_TRUE(mapped.greet(wire::Want::Map));
  mapped.send_frame(wire::MessageType::Bye, 0, *wire::encode(wire::Bye{}));

  EXPECT_TRUE(daemon_->wait_log(" debug "));
}

}  // namespace
}  // namespace cutwater::test
