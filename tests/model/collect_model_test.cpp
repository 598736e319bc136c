// SPDX-License-Identifier: Apache-2.0
// Two equal readings make a decision on M of P results one that a moment justifies; one does not.
#include "model/collect_model.hpp"

#include "model/model_test.hpp"

namespace cutwater::model {
namespace {

TEST(CollectModel, TwoEqualReadingsHold) {
  CollectModel model(CollectMutant::None);

  expect_holds(model, "ThreeResultsTwoDecide");
}

TEST(CollectModel, OneReadingIsCaught) {
  CollectModel model(CollectMutant::OneReading);

  expect_caught(model, "ThreeResultsTwoDecide",
                "a returned result is left out of a decision that counts a newer one");
}

}  // namespace
}  // namespace cutwater::model
