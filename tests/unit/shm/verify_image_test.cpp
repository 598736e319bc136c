// SPDX-License-Identifier: Apache-2.0
// verify finds what is planted in the rule image and on the control pages (C143).
#include <limits>

#include "unit/shm/verify_support.hpp"

namespace cutwater::shm {
namespace {

using test::VerifyTest;

class VerifyImage : public VerifyTest {};

// covers: C143
TEST_F(VerifyImage, FindsAFlippedBitAnywhereInTheImage) {
  auto* image = const_cast<std::uint8_t*>(view().image[view().current() & kCurrentImageBit]);
  for (std::uint64_t at = sizeof(ImageHead); at < view().image_length; at += 97) {
    image[at] ^= 0x20;
    EXPECT_FALSE(verify(view()).ok()) << at;
    image[at] ^= 0x20;
  }
  EXPECT_TRUE(verify(view()).ok());
}

TEST_F(VerifyImage, FindsAWrongSum) {
  const_cast<ImageHead&>(view().image_head(view().current())).crc32c ^= 1;

  expect_found(": its checksum is wrong");
}

TEST_F(VerifyImage, FindsAHeadThatCountsTooMuch) {
  auto& head = const_cast<ImageHead&>(view().image_head(view().current()));
  head.rules = view().rule_count + 1;

  expect_found("counts more rules than reserved");
}

TEST_F(VerifyImage, FindsAKindThatDoesNotExist) {
  rule(2).kind = 77;
  make_image_sum_right();

  expect_found("rule 2: has a kind that does not exist");
}

TEST_F(VerifyImage, FindsNumbersNoConfigurationGives) {
  const RuleRecord honest = rule(2);
  const auto plant = [&](auto change) {
    rule(2) = honest;
    change(rule(2));
    make_image_sum_right();
    expect_found("rule 2: has numbers that no configuration gives");
  };

  plant([](RuleRecord& r) { r.mult = 5; });
  plant([](RuleRecord& r) { r.shift = 1; });
  plant([](RuleRecord& r) { r.shift = 200; });
  plant([](RuleRecord& r) { r.f = 63; });
  plant([](RuleRecord& r) { r.burst = -1; });
  plant([](RuleRecord& r) { r.reach = std::numeric_limits<std::int64_t>::max(); });
  plant([](RuleRecord& r) { r.base_n = std::numeric_limits<std::int64_t>::min(); });
  plant([](RuleRecord& r) { r.base_t = std::numeric_limits<std::int64_t>::min(); });
  plant([](RuleRecord& r) { r.valid_from = std::numeric_limits<std::int64_t>::max(); });
}

TEST_F(VerifyImage, FindsARuleOfNoLimitAndOfNoWindow) {
  rule(2).limit = 9999;
  rule(3).window = 17;
  make_image_sum_right();

  expect_found("rule 2: belongs to a limit that does not exist");
  expect_found("rule 3: belongs to a window that does not exist");
}

TEST_F(VerifyImage, FindsALimitWithAForeignRule) {
  limit(0).rule[0] = limit(1).rule[0];
  make_image_sum_right();

  expect_found("limit 0: names rule 3, which belongs to another limit or window");
}

TEST_F(VerifyImage, FindsALimitWithARuleThatDoesNotExist) {
  limit(0).rule[0] = 65'000;
  make_image_sum_right();

  expect_found("limit 0: names rule 65000, which does not exist");
}

TEST_F(VerifyImage, FindsALimitWithTooManyWindowsAndAnUnknownChoice) {
  limit(0).windows = 200;
  limit(1).on_full = 9;
  make_image_sum_right();

  expect_found("limit 0: has more windows than there are");
  expect_found("limit 1: has an on-full that does not exist");
}

TEST_F(VerifyImage, FindsBadNames) {
  name(0).length = 255;
  name(1).text[0] = '\n';
  make_image_sum_right();

  expect_found("limit 0: its name has an impossible length");
  expect_found("limit 1: its name has characters no name has");
}

TEST_F(VerifyImage, FindsTwoLimitsOfOneName) {
  name(1) = name(0);
  make_image_sum_right();

  expect_found("limit 1: has the name of limit 0");
}

TEST_F(VerifyImage, FindsGenerationZero) {
  view().rules_control->current &= 3;

  expect_found("control page: `current` has generation 0");
}

TEST_F(VerifyImage, FindsAnImpossibleSteppedClock) {
  view().state_control->stepped_ns = -1;

  expect_found("stepped clock: stands at an impossible time");
}

}  // namespace
}  // namespace cutwater::shm
