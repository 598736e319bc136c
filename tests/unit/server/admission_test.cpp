// SPDX-License-Identifier: Apache-2.0
#include "ask/admission.hpp"

#include <gtest/gtest.h>

namespace cutwater::server {
namespace {

using wire::Want;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kNow = 100 * kSecond;

config::Access access_for_group_50() {
  config::Access access;
  access.map.groups = {50};
  access.daemon_uid = 1;
  return access;
}

AdmissionFacts facts() {
  return {.layout_major = 1, .layout_minor = 0, .features_required = 0, .time_namespace = 77,
          .boottime_ns = kNow, .stepped = false};
}

wire::Hello hello(Want want = Want::Map) {
  wire::Hello out;
  out.want = want;
  out.layout = {1, 0, 0};
  out.clock_ns = kNow;
  out.time_ns = 77;
  return out;
}

const config::Peer kMember{1000, 1000, {50}};
const config::Peer kStranger{1001, 1001, {}};
const config::Peer kRoot{0, 0, {}};

TEST(Admission, AMemberMapsAndMayLookButNotSteer) {
  const Admission got = admit(hello(), kMember, access_for_group_50(), facts());

  EXPECT_FALSE(got.refused);
  EXPECT_EQ(got.mode, Want::Map);
  EXPECT_EQ(got.why, "");
  EXPECT_EQ(got.rights, wire::kRightUse | wire::kRightLook);
}

TEST(Admission, RootHasEveryRight) {
  const Admission got = admit(hello(Want::MapRead), kRoot, access_for_group_50(), facts());

  EXPECT_EQ(got.mode, Want::MapRead);
  EXPECT_EQ(got.rights, wire::kRightUse | wire::kRightLook | wire::kRightSteer);
}

TEST(Admission, AStrangerIsRefusedWithReasonAndRemedy) {
  const Admission got = admit(hello(), kStranger, access_for_group_50(), facts());

  EXPECT_TRUE(got.refused);
  EXPECT_NE(got.reason.find("uid 1001"), std::string::npos);
  EXPECT_NE(got.reason.find("access.ask"), std::string::npos);
  EXPECT_NE(got.reason.find("add the user"), std::string::npos);
}

TEST(Admission, OtherSchemesThanPeercredAreRefused) {
  wire::Hello asked = hello();
  asked.auth = "hmac";

  EXPECT_TRUE(admit(asked, kRoot, access_for_group_50(), facts()).refused);
}

TEST(Admission, C051AnotherLayoutIsNotMappedAndSaysBothNumbers) {
  wire::Hello asked = hello();
  asked.layout = {3, 1, 0};

  const Admission got = admit(asked, kMember, access_for_group_50(), facts());

  EXPECT_FALSE(got.refused);
  EXPECT_EQ(got.mode, Want::Ask);
  EXPECT_NE(got.why.find("layout 3.1 there, 1.0 here"), std::string::npos);
}

TEST(Admission, C051AFeatureTheLibraryDoesNotKnowKeepsItOut) {
  AdmissionFacts newer = facts();
  newer.features_required = 4;

  const Admission got = admit(hello(), kMember, access_for_group_50(), newer);

  EXPECT_EQ(got.mode, Want::Ask);
  EXPECT_NE(got.why.find("0x4"), std::string::npos);
}

TEST(Admission, ALibraryThatMapsNothingIsToldSo) {
  wire::Hello asked = hello();
  asked.layout = {};

  EXPECT_EQ(admit(asked, kMember, access_for_group_50(), facts()).why,
            "the client maps no memory");
}

TEST(Admission, C032AnotherTimeNameSpaceIsNotMappedWhateverTheReading) {
  for (const std::uint64_t reading : {kNow, kNow + 86'400 * kSecond, kNow - 50 * kSecond}) {
    wire::Hello asked = hello();
    asked.time_ns = 78;
    asked.clock_ns = reading;

    const Admission got = admit(asked, kMember, access_for_group_50(), facts());

    EXPECT_EQ(got.mode, Want::Ask);
    EXPECT_NE(got.why.find("time name space"), std::string::npos);
  }
}

TEST(Admission, TheReadingDecidesWhenTheNameSpaceIsUnknown) {
  struct Case { std::uint64_t reading; Want mode; };
  for (const Case& each : {Case{kNow - kSecond, Want::Map}, Case{kNow - kSecond - 1, Want::Ask},
                           Case{kNow + kSecond, Want::Map}, Case{kNow + kSecond + 1, Want::Ask}}) {
    wire::Hello asked = hello();
    asked.time_ns = 0;
    asked.clock_ns = each.reading;

    EXPECT_EQ(admit(asked, kMember, access_for_group_50(), facts()).mode, each.mode)
        << each.reading;
  }
}

TEST(Admission, ALateHelloOfTheSameClockIsNoMismatch) {
  wire::Hello asked = hello();
  asked.clock_ns = kNow - 30 * kSecond;   // the daemon was stopped while it lay in the socket

  EXPECT_EQ(admit(asked, kMember, access_for_group_50(), facts()).mode, Want::Map);
}

TEST(Admission, AReadingAheadOfOursCannotBeTheSameClock) {
  wire::Hello asked = hello();
  asked.clock_ns = kNow + 2 * kSecond;

  const Admission got = admit(asked, kMember, access_for_group_50(), facts());

  EXPECT_EQ(got.mode, Want::Ask);
  EXPECT_EQ(got.why, "clocks differ by 2.000 s");
}

TEST(Admission, ASteppedSegmentComparesNoClocks) {
  AdmissionFacts stepped = facts();
  stepped.stepped = true;
  wire::Hello asked = hello();
  asked.time_ns = 78;
  asked.clock_ns = 1;

  EXPECT_EQ(admit(asked, kMember, access_for_group_50(), stepped).mode, Want::Map);
}

TEST(Admission, WhoOnlyAsksIsNotComparedAtAll) {
  wire::Hello asked = hello(Want::Ask);
  asked.layout = {};
  asked.time_ns = 78;

  const Admission got = admit(asked, kMember, access_for_group_50(), facts());

  EXPECT_EQ(got.mode, Want::Ask);
  EXPECT_EQ(got.why, "");
}

}  // namespace
}  // namespace cutwater::server
