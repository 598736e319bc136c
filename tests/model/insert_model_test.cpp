// SPDX-License-Identifier: Apache-2.0
// The first sight of a key: the protocol holds in every setting, and each of its guards is needed.
#include "model/insert_model.hpp"

#include "model/model_test.hpp"

namespace cutwater::model {
namespace {

constexpr InsertSetting kSettings[] = {
    {"TwoCallersTwiceChurn", 2, 0, 3, 2, false, 2},
    {"TwoCallersTwiceKill", 2, 1, 2, 1, false, 2},
    {"OverflowChurn", 2, 0, 3, 2, true, 2},
    {"OverflowKill", 2, 1, 2, 1, true, 2},
    {"OverflowChurnBurstOne", 2, 0, 3, 2, true, 1},
    {"OverflowKillBurstOne", 2, 1, 2, 1, true, 1},
};

using M = InsertMutant;
constexpr const char* kTwice = "one token handed out twice";
constexpr MutantCase<M> kMutants[] = {
    {M::FirstClockOnly, "FirstClockOnly", "TwoCallersTwiceChurn", kTwice},
    {M::ClockBeforeRescan, "ClockBeforeRescan", "TwoCallersTwiceChurn", kTwice},
    {M::NoRescan, "NoRescan", "TwoCallersTwiceChurn", kTwice},
    {M::BlindPromote, "BlindPromote", "TwoCallersTwiceChurn", kTwice},
    {M::NoOverflowRead, "NoOverflowRead", "OverflowChurn", kTwice},
    {M::OverflowReadEarly, "OverflowReadEarly", "OverflowChurn", kTwice},
    {M::NoOverflowRescan, "NoOverflowRescan", "OverflowChurn", kTwice},
    {M::NoOverflowClock, "NoOverflowClock", "OverflowChurn", kTwice},
    {M::TentativesLookAlike, "TentativesLookAlike", "TwoCallersTwiceChurn", kTwice},
    {M::NoOverflowWait, "NoOverflowWait", "OverflowChurn", "beyond the burst"},
};

class InsertModelHolds : public testing::TestWithParam<InsertSetting> {};
class InsertModelMutant : public testing::TestWithParam<MutantCase<M>> {};

TEST_P(InsertModelHolds, Holds) {
  InsertModel model(GetParam(), M::None);

  expect_holds(model, GetParam().name);
}

TEST_P(InsertModelMutant, IsCaught) {
  InsertModel model(setting_named(kSettings, GetParam().setting), GetParam().mutant);

  expect_caught(model, GetParam().setting, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(Setting, InsertModelHolds, testing::ValuesIn(kSettings), kNameOf);
INSTANTIATE_TEST_SUITE_P(Without, InsertModelMutant, testing::ValuesIn(kMutants), kNameOf);

}  // namespace
}  // namespace cutwater::model
