// SPDX-License-Identifier: Apache-2.0
// Two buckets charged together: the protocol holds in every setting, and each of its guards is
// needed.
#include "model/all_or_none_model.hpp"

#include "model/model_test.hpp"

namespace cutwater::model {
namespace {

constexpr AllOrNoneSetting kSettings[] = {
    {"TwoCallers", 2, {1, 2, 0}, 0, 0, 2},
    {"TwoCallersKillsTime", 2, {1, 1, 0}, 2, 3, 2},
    {"ThreeCallersKill", 3, {1, 1, 2}, 1, 0, 1},
    {"ThreeCallersKillTime", 3, {1, 1, 1}, 1, 2, 1},
};

using M = AllOrNoneMutant;
constexpr const char* kLost = "tokens lost without a kill or an overtaken undo";
constexpr const char* kTwice = "two calls own one token";
constexpr MutantCase<M> kMutants[] = {
    {M::UndoLowers, "UndoLowers", "TwoCallersKillsTime", kTwice},
    {M::UndoStoresOld, "UndoStoresOld", "TwoCallersKillsTime", kTwice},
    {M::NoUndo, "NoUndo", "TwoCallers", kLost},
    {M::TakeWithoutCheck, "TakeWithoutCheck", "TwoCallers", "beyond the burst"},
    {M::UndoBelowReceipt, "UndoBelowReceipt", "TwoCallers", kTwice},
};

class AllOrNoneModelHolds : public testing::TestWithParam<AllOrNoneSetting> {};
class AllOrNoneModelMutant : public testing::TestWithParam<MutantCase<M>> {};

TEST_P(AllOrNoneModelHolds, Holds) {
  AllOrNoneModel model(GetParam(), M::None);

  expect_holds(model, GetParam().name);
}

TEST_P(AllOrNoneModelMutant, IsCaught) {
  AllOrNoneModel model(setting_named(kSettings, GetParam().setting), GetParam().mutant);

  expect_caught(model, GetParam().setting, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(Setting, AllOrNoneModelHolds, testing::ValuesIn(kSettings), kNameOf);
INSTANTIATE_TEST_SUITE_P(Without, AllOrNoneModelMutant, testing::ValuesIn(kMutants), kNameOf);

}  // namespace
}  // namespace cutwater::model
