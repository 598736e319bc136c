// SPDX-License-Identifier: Apache-2.0
// Offsets that another process, or another version with the same ABI number, relies on.
#include "shm/layout.hpp"

#include <gtest/gtest.h>

namespace cutwater::shm {
namespace {

TEST(Layout, HeaderFieldsLieWhereTheFormatSays) {
  EXPECT_EQ(offsetof(FileHeader, magic), 0U);
  EXPECT_EQ(offsetof(FileHeader, abi_major), 8U);
  EXPECT_EQ(offsetof(FileHeader, abi_minor), 10U);
  EXPECT_EQ(offsetof(FileHeader, header_length), 12U);
  EXPECT_EQ(offsetof(FileHeader, features_required), 16U);
  EXPECT_EQ(offsetof(FileHeader, uuid), 32U);
  EXPECT_EQ(offsetof(FileHeader, boot_id), 48U);
  EXPECT_EQ(offsetof(FileHeader, epoch_ns), 64U);
  EXPECT_EQ(offsetof(FileHeader, clock), 72U);
  EXPECT_EQ(offsetof(FileHeader, time_namespace), 80U);
  EXPECT_EQ(offsetof(FileHeader, total_length), 88U);
  EXPECT_EQ(offsetof(FileHeader, file), 96U);
  EXPECT_EQ(offsetof(FileHeader, region), 128U);
  EXPECT_EQ(sizeof(Region), 32U);
  EXPECT_EQ(offsetof(FileHeader, crc32c), 640U);
  EXPECT_EQ(offsetof(FileHeader, ready), 644U);
  EXPECT_EQ(offsetof(FileHeader, secret), 704U);
  EXPECT_EQ(sizeof(FileHeader), 4096U);
}

TEST(Layout, RecordsKeepTheirSizes) {
  EXPECT_EQ(sizeof(Word16), 16U);
  EXPECT_EQ(sizeof(ImageHead), 64U);
  EXPECT_EQ(sizeof(LimitConfig), 64U);
  EXPECT_EQ(sizeof(RuleRecord), 192U);
  EXPECT_EQ(sizeof(NameRecord), 64U);
  EXPECT_EQ(sizeof(LimitState), 128U);
  EXPECT_EQ(sizeof(ProcessRow), 128U);
  EXPECT_EQ(sizeof(StripeOwner), 64U);
  EXPECT_EQ(sizeof(LimitCounters), 128U);
  EXPECT_EQ(sizeof(SetRecord), 16U);
  EXPECT_EQ(sizeof(OverrideRecord), 16U);
  EXPECT_EQ(sizeof(PatternRecord), 128U);
  EXPECT_EQ(sizeof(CalendarRecord), 256U);
  EXPECT_EQ(sizeof(TopRecord), 64U);
  EXPECT_EQ(sizeof(EventRecord), 64U);
  EXPECT_EQ(sizeof(RulesControl), 4096U);
  EXPECT_EQ(sizeof(StateControl), 4096U);
  EXPECT_EQ(sizeof(StatsControl), 4096U);
}

// Words that are changed by more than one process do not share a cache line with anything else.
TEST(Layout, CurrentHasALineOfItsOwn) {
  EXPECT_EQ(offsetof(RulesControl, current), 0U);
  EXPECT_EQ(offsetof(RulesControl, changed), 64U);
}

TEST(Layout, NoWordNeedsALockOfTheCompiler) {
  EXPECT_TRUE(__atomic_always_lock_free(sizeof(std::uint64_t), nullptr));
  EXPECT_TRUE(__atomic_always_lock_free(sizeof(std::uint32_t), nullptr));
}

TEST(Layout, TagFieldsFillTheWordWithoutOverlap) {
  const std::uint64_t fingerprint = ((std::uint64_t{1} << kFingerprintBits) - 1)
                                    << kFingerprintShift;

  EXPECT_EQ(fingerprint | kTagAlt | kTagTentative | kTagRuleMask, ~std::uint64_t{0});
  EXPECT_EQ(fingerprint & (kTagAlt | kTagTentative | kTagRuleMask), 0U);
  EXPECT_EQ(kTagAlt & kTagTentative, 0U);
}

}  // namespace
}  // namespace cutwater::shm
