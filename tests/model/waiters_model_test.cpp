// SPDX-License-Identifier: Apache-2.0
// Waiting in line for a place: the protocol holds in every setting, and each of its guards is
// needed.
#include "model/waiters_model.hpp"

#include <vector>

#include "model/model_test.hpp"

namespace cutwater::model {
namespace {

// All settings; a mutant may use one that is too large for the algorithm itself.
constexpr WaitersSetting kSettings[] = {
    {.name = "TwoCallersKills", .kills = 2, .daemon_kills = 1},
    {.name = "TwoCallersTwiceDeadline", .deadlines = 1, .rounds = 2},
    {.name = "TwoCallersDeadlineStop", .deadlines = 1, .stops = 1, .order = false},
    {.name = "TwoCallersShrinkKill", .cells = 2, .limit = 2, .limit_later = 1, .kills = 1,
     .order = false, .holds = {1, -1}},
    {.name = "TwoCallersGrowKills", .large = true, .cells = 2, .limit = 1, .limit_later = 2,
     .kills = 1, .daemon_kills = 1, .order = false},
    {.name = "ThreeCallersOrder", .callers = 3},
    {.name = "ThreeCallersStop", .callers = 3, .stops = 1, .order = false, .holds = {0, -1}},
    {.name = "ThreeCallersDeadline", .large = true, .callers = 3, .deadlines = 1, .order = false,
     .holds = {0, -1}},
    {.name = "ThreeCallersKill", .large = true, .callers = 3, .kills = 1, .order = false,
     .holds = {0, -1}},
    {.name = "ThreeCallersTwoPlaces", .large = true, .cells = 2, .limit = 2, .callers = 3},
    {.name = "ThreeCallersShrinkNoWaiting", .cells = 2, .limit = 2, .limit_later = 1,
     .callers = 3, .wait = false, .holds = {1, -1}},
    {.name = "ThreeCallersShrinkTwoHold", .large = true, .cells = 2, .limit = 2,
     .limit_later = 1, .callers = 3, .holds = {0, 1}},
};

// More than kStatesMax states without a violation, not exhausted: it only serves a mutant.
constexpr WaitersSetting kMutantSettings[] = {
    {.name = "ThreeCallersOneTwice", .callers = 3, .deadlines = 1, .rounds = 2,
     .holds = {0, -1}},
};

std::vector<WaitersSetting> settings_of_this_run() {
  std::vector<WaitersSetting> chosen;
  for (const WaitersSetting& setting : kSettings) {
    if (!setting.large || full_run()) chosen.push_back(setting);
  }
  return chosen;
}

using M = WaitersMutant;
constexpr const char* kBeside = "lost wake-up: a live waiter sleeps beside a free place";
constexpr const char* kLost = "lost place: a cell is never free again";
constexpr const char* kOvertook = "a newcomer overtook a waiter";
constexpr const char* kTurn = "a waiter was served out of turn";
constexpr MutantCase<M> kMutants[] = {
    {M::NoRelook, "NoRelook", "TwoCallersKills", kBeside},
    {M::NoConfirm, "NoConfirm", "TwoCallersKills", kLost},
    {M::NoServeOnArrival, "NoServeOnArrival", "TwoCallersKills", kBeside},
    {M::NoSecond, "NoSecond", "ThreeCallersShrinkTwoHold", kLost},
    {M::NoPassOn, "NoPassOn", "TwoCallersTwiceDeadline", kLost},
    {M::NoVoid, "NoVoid", "TwoCallersKills", kLost},
    {M::ReaperSilent, "ReaperSilent", "TwoCallersKills", kBeside},
    {M::NoCount, "NoCount", "ThreeCallersShrinkNoWaiting",
     "more places decided than the limit allows"},
    {M::Barge, "Barge", "TwoCallersTwiceDeadline", kOvertook},
    {M::QuietBlind, "QuietBlind", "TwoCallersTwiceDeadline", kOvertook},
    {M::SleepBlind, "SleepBlind", "TwoCallersKills", kBeside},
    {M::NoTicket, "NoTicket", "ThreeCallersOneTwice", kTurn},
    {M::HandOverLimit, "HandOverLimit", "ThreeCallersShrinkTwoHold",
     "handed on while over the limit"},
    {M::NotLowest, "NotLowest", "TwoCallersTwiceDeadline", kTurn},
    {M::NoCap, "NoCap", "TwoCallersDeadlineStop", kBeside},
};

class WaitersModelHolds : public testing::TestWithParam<WaitersSetting> {};
class WaitersModelMutant : public testing::TestWithParam<MutantCase<M>> {};

TEST_P(WaitersModelHolds, Holds) {
  WaitersModel model(GetParam(), M::None);

  expect_holds(model, GetParam().name);
}

TEST_P(WaitersModelMutant, IsCaught) {
  const bool own = GetParam().mutant == M::NoTicket;
  WaitersModel model(own ? kMutantSettings[0] : setting_named(kSettings, GetParam().setting),
                     GetParam().mutant);

  expect_caught(model, GetParam().setting, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(Setting, WaitersModelHolds, testing::ValuesIn(settings_of_this_run()),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Without, WaitersModelMutant, testing::ValuesIn(kMutants), kNameOf);

}  // namespace
}  // namespace cutwater::model
