// SPDX-License-Identifier: Apache-2.0
// verify says nothing about an honest segment and finds what is planted in buckets, rows, stripes
// and events (C143). The rule image: verify_image_test.cpp.
#include <atomic>
#include <thread>

#include "shm/limit/bucket_table.hpp"
#include "unit/shm/verify_support.hpp"

namespace cutwater::shm {
namespace {

using test::VerifyTest;

TEST_F(VerifyTest, CountsWhatIsThere) {
  const VerifyReport report = verify(view());

  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.slots, 512U);
  EXPECT_EQ(report.members, 40U);
  EXPECT_EQ(report.in_debt, 40U);
  EXPECT_EQ(report.claims, 0U);
  EXPECT_EQ(report.limits, 2U);
  EXPECT_EQ(report.rules, 2U);
  EXPECT_EQ(report.rows, 3U);
  EXPECT_EQ(report.events, 3U);
}

TEST_F(VerifyTest, SeesDebtsEnd) {
  step_clock(view(), view().clock.now() + 60'000'000'000);

  EXPECT_EQ(verify(view()).in_debt, 0U);
  EXPECT_EQ(verify(view()).members, 40U);
}

TEST_F(VerifyTest, ReadsAMemoryThatIsMappedReadOnly) {
  test::TmpfsDirectory directory;
  ASSERT_TRUE(Segment::create_files(directory.fd(), test::small_options()));
  const auto looking = Segment::open_files(directory.fd(), Access::ReadOnly);
  ASSERT_TRUE(looking);

  EXPECT_TRUE(verify(looking->view()).ok());
}

TEST_F(VerifyTest, WritesNothing) {
  test::TmpfsDirectory directory;
  const auto owner = Segment::create_files(directory.fd(), test::small_options());
  ASSERT_TRUE(owner);
  owner->view().slots[3] = {~std::uint64_t{0}, ~std::uint64_t{0}};
  const auto looking = Segment::open_files(directory.fd(), Access::ReadOnly);
  ASSERT_TRUE(looking);   // a write would end the process

  EXPECT_FALSE(verify(looking->view()).ok());
}

TEST_F(VerifyTest, StaysQuietOnASegmentInUse) {
  std::atomic<bool> stop{false};
  std::thread user([&] {
    std::uint32_t epoch = 0;
    while (!stop.load()) {
      charge_keys();
      step_clock(view(), view().clock.now() + 1'000'000'000);
      append_event(view(), {.object = 1, .epoch = ++epoch});
    }
  });
  std::uint64_t findings = 0;
  std::string first;
  for (int i = 0; i < 200; ++i) {
    const VerifyReport report = verify(view());
    findings += report.findings_total;
    if (first.empty() && !report.ok())
      first = report.findings[0].place + ": " + report.findings[0].text;
  }
  stop.store(true);
  user.join();

  EXPECT_EQ(findings, 0U) << first;
}

// ---- buckets ----

TEST_F(VerifyTest, FindsAnEntryOfAnUnknownRule) {
  Word16& slot = used_slot();
  slot.lo = (slot.lo & ~kTagRuleMask) | 17;

  expect_found("bucket slot " + std::to_string(index_of(slot)) +
               ": names rule 17, which does not exist");
}

// covers: C143
TEST_F(VerifyTest, FindsATatBeyondReach) {
  Word16& slot = used_slot();
  slot.hi = std::uint64_t{1} << 62;

  expect_found("bucket slot " + std::to_string(index_of(slot)) + ": its tat lies beyond N + D");
}

TEST_F(VerifyTest, FindsAClaimThatNeverEnds) {
  Word16& slot = used_slot();
  slot = {slot.lo | kTagTentative, ~std::uint64_t{0}};

  expect_found("holds a claim that ends too far ahead");
  EXPECT_EQ(verify(view()).claims, 1U);
}

TEST_F(VerifyTest, AcceptsAClaimUnderWay) {
  Word16& slot = used_slot();
  const std::uint64_t ticks = static_cast<std::uint64_t>(view().clock.now()) >> kClaimTickShift;
  slot = {slot.lo | kTagTentative, (ticks + 2) << kClaimNonceBits | 5};

  EXPECT_TRUE(verify(view()).ok()) << texts();
}

TEST_F(VerifyTest, FindsATatWithoutATag) {
  used_slot() = {0, 5};

  expect_found("has a tat but no tag");
}

TEST_F(VerifyTest, FindsTwoMembersOfOneKeyInOneGroup) {
  Word16& slot = used_slot();
  const std::uint64_t group = index_of(slot) / kGroupSlots;
  for (std::uint64_t i = (group + 1) * kGroupSlots; i-- > group * kGroupSlots;) {
    if (view().slots[i].lo != 0) continue;
    view().slots[i] = slot;
    expect_found("holds the same key as slot " + std::to_string(i));
    return;
  }
  FAIL() << "no free slot in the group";
}

TEST_F(VerifyTest, FindsTwoMembersOfOneKeyInItsTwoGroups) {
  Word16& slot = used_slot();
  ASSERT_EQ(slot.lo & kTagAlt, 0U);
  const std::uint64_t group = index_of(slot) / kGroupSlots;
  const std::uint64_t other = other_group(view(), group, slot.lo >> kFingerprintShift);
  for (std::uint64_t i = other * kGroupSlots; i < (other + 1) * kGroupSlots; ++i) {
    if (view().slots[i].lo != 0) continue;
    view().slots[i] = {slot.lo | kTagAlt, slot.hi};
    expect_found("two members of one key");
    return;
  }
  FAIL() << "no free slot in the other group";
}

TEST_F(VerifyTest, FindsAnOverflowWordOfAnotherLimit) {
  view().limits[0].overflow[0] = {limit(1).rule[0], 1};

  expect_found("limit 0: its overflow word names a rule of another limit or window");
}

TEST_F(VerifyTest, FindsAnOverflowWordOfNoRuleAndOneBeyondReach) {
  view().limits[0].overflow[0] = {std::uint64_t{1} << 40, 1};
  view().limits[1].overflow[0] = {limit(1).rule[0], std::uint64_t{1} << 62};

  expect_found("limit 0: its overflow word names a rule that does not exist");
  expect_found("limit 1: its overflow word lies beyond N + D");
}

// With k > 1 the group of an entry follows from its fingerprint; a moved entry is in a wrong one.
TEST_F(VerifyTest, FindsAnEntryInAForeignGroup) {
  View grown = view();
  grown.k = 4;
  grown.g0 = grown.groups / 4;
  std::uint64_t misplaced = 0;
  for (const Finding& finding : verify(grown).findings) {
    misplaced += finding.text == "lies in a group that is not its key's" ? 1 : 0;
  }

  EXPECT_GT(misplaced, 0U);
}

// ---- rows, stripes, events ----

TEST_F(VerifyTest, FindsBadRows) {
  const auto plant = [&](std::uint32_t index, RowWord word, const std::string& text) {
    const std::uint64_t honest = view().rows[index].word;
    view().rows[index].word = pack_row(word);
    expect_found("row " + std::to_string(index) + ": " + text);
    view().rows[index].word = honest;
  };

  plant(5, {1, RowKind::Process, static_cast<RowState>(9)}, "has a state that does not exist");
  plant(5, {1, static_cast<RowKind>(9), RowState::Live}, "has a kind that does not exist");
  plant(5, {1, RowKind::None, RowState::Live}, "is in use but of no kind");
  plant(5, {0, RowKind::Process, RowState::Live}, "is in use but was never granted");
  plant(5, {1, RowKind::Daemon, RowState::Live}, "says that it is the daemon");
  plant(1, {1, RowKind::Process, RowState::Live}, "row 1 is not the daemon's");
  plant(0, {1, RowKind::Process, RowState::Live}, "row 0 is in use");
  view().rows[2].name[47] = 'x';
  expect_found("row 2: its name has no end");
  view().rows[2].name[47] = 0;
  view().rows[2].word |= 1;
  expect_found("row 2: its reserved bits are not 0");
}

TEST_F(VerifyTest, FindsStripesOfTheDead) {
  auto& first = *reinterpret_cast<StripeOwner*>(view().stripes + view().stripe_stride);
  ASSERT_NE(first.owner, Word16{});

  first.owner = {std::uint64_t{2} << 32 | 9, 1};
  expect_found("stripe 1: belongs to a life of row 2 that is over");
  first.owner = {std::uint64_t{9999} << 32 | 1, 1};
  expect_found("stripe 1: belongs to row 9999, which does not exist");
  first.owner = {};
  reinterpret_cast<StripeOwner*>(view().stripes)->owner = {1, 1};
  expect_found("stripe 0: the shared stripe has an owner");
}

TEST_F(VerifyTest, AStripeOfADeadRowThatIsNotFreeYetIsNoDamage) {
  auto& first = *reinterpret_cast<StripeOwner*>(view().stripes + view().stripe_stride);
  first.owner = {std::uint64_t{3} << 32 | 1, 1};

  EXPECT_TRUE(verify(view()).ok()) << texts();
}

TEST_F(VerifyTest, FindsBadEvents) {
  view().events[0].object ^= 4;
  view().events[1].number = 1;
  view().events[2].number = 3 + 16 * 5;

  expect_found("event record 0: its checksum is wrong");
  expect_found("event record 1: holds the number of another record");
  expect_found("event record 2: holds a number that was never given out");
}

TEST_F(VerifyTest, NamesAHundredAndCountsAll) {
  for (std::uint64_t i = 0; i < view().slot_count; ++i) view().slots[i] = {0, 1};

  const VerifyReport report = verify(view());

  EXPECT_EQ(report.findings.size(), kMaxFindings);
  EXPECT_EQ(report.findings_total, view().slot_count);
}

}  // namespace
}  // namespace cutwater::shm
