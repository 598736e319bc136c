// SPDX-License-Identifier: Apache-2.0
// A breaker's half-open probes: the protocol holds in every setting, and each of its guards is
// needed.
#include "model/probe_model.hpp"

#include "model/model_test.hpp"

namespace cutwater::model {
namespace {

constexpr ProbeSetting kSettings[] = {
    {.name = "TwoCallersKillsDeadlines", .callers = 2, .same_process = false, .control = false,
     .lapse_frees = false, .first_failure = false, .rounds = 1, .kills = true,
     .wrong_reap = false, .deadlines = 2, .epochs_max = 5},
    {.name = "TwoCallersResetAndForce", .callers = 2, .same_process = false, .control = true,
     .lapse_frees = false, .first_failure = false, .rounds = 1, .kills = false,
     .wrong_reap = false, .deadlines = 0, .epochs_max = 5},
    {.name = "ThreeCallersFirstFailureOpens", .callers = 3, .same_process = false,
     .control = false, .lapse_frees = false, .first_failure = true, .rounds = 1, .kills = false,
     .wrong_reap = false, .deadlines = 0, .epochs_max = 6},
    {.name = "TwoThreadsLapseFrees", .callers = 2, .same_process = true, .control = false,
     .lapse_frees = true, .first_failure = false, .rounds = 2, .kills = false,
     .wrong_reap = false, .deadlines = 1, .epochs_max = 4},
    {.name = "TwoCallersRowWronglyReaped", .callers = 2, .same_process = false, .control = false,
     .lapse_frees = false, .first_failure = false, .rounds = 1, .kills = true,
     .wrong_reap = true, .deadlines = 0, .epochs_max = 5},
};

using M = ProbeMutant;
constexpr const char* kStuck = "stuck: a lone caller cannot bring the breaker back";
constexpr const char* kLate = "a late result changed somebody else's probe";
constexpr MutantCase<M> kMutants[] = {
    {M::NoReread, "NoReread", "TwoCallersResetAndForce",
     "a call starts although the breaker had moved on"},
    {M::OtherNotOlder, "OtherNotOlder", "TwoCallersResetAndForce",
     "a live probe of the current epoch was overwritten"},
    {M::NoSettle, "NoSettle", "TwoCallersKillsDeadlines", kStuck},
    {M::NoTake, "NoTake", "TwoThreadsLapseFrees", kLate},
    {M::EpochlessResult, "EpochlessResult", "TwoThreadsLapseFrees", kLate},
    {M::NoAnnounce, "NoAnnounce", "TwoCallersKillsDeadlines",
     "a transition will never be announced"},
    {M::NoDeadRule, "NoDeadRule", "TwoCallersKillsDeadlines", kStuck},
    {M::DeadIsResult, "DeadIsResult", "TwoCallersKillsDeadlines",
     "a dead owner spoke about the dependency"},
    {M::CountOldSpent, "CountOldSpent", "TwoCallersKillsDeadlines",
     "decided before every probe had a result"},
    {M::MoveBlind, "MoveBlind", "ThreeCallersFirstFailureOpens",
     "decision differs from the sequential rule"},
    {M::NoLapse, "NoLapse", "TwoCallersKillsDeadlines", kStuck},
};

class ProbeModelHolds : public testing::TestWithParam<ProbeSetting> {};
class ProbeModelMutant : public testing::TestWithParam<MutantCase<M>> {};

TEST_P(ProbeModelHolds, Holds) {
  ProbeModel model(GetParam(), M::None);

  expect_holds(model, GetParam().name);
}

TEST_P(ProbeModelMutant, IsCaught) {
  ProbeModel model(setting_named(kSettings, GetParam().setting), GetParam().mutant);

  expect_caught(model, GetParam().setting, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(Setting, ProbeModelHolds, testing::ValuesIn(kSettings), kNameOf);
INSTANTIATE_TEST_SUITE_P(Without, ProbeModelMutant, testing::ValuesIn(kMutants), kNameOf);

}  // namespace
}  // namespace cutwater::model
