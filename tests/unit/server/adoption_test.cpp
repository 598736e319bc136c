// SPDX-License-Identifier: Apache-2.0
#include "adoption.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/directory.hpp"
#include "shm/process_table.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

class Adoption : public testing::Test {
 protected:
  Adoption() {
    ::mkdir(place_.memory().c_str(), 0700);
    folder_.reset(::open(place_.memory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    options_.capacity = {.keys = 1024, .limits = 4, .processes = 16, .stripes = 2, .events = 1024};
  }

  Birth get(rule::Initial after_damage = rule::Initial::Empty) {
    auto birth = adopt_or_create(folder_.get(), options_, after_damage);
    EXPECT_TRUE(birth) << birth.error().text();
    return std::move(*birth);
  }
  std::string uuid(const Birth& birth) {
    const auto* bytes = reinterpret_cast<const char*>(birth.segment.view().uuid);
    return {bytes, 16};
  }
  std::string file(const char* name) const { return place_.memory() + "/" + name; }
  bool there(const char* name) const { return ::access(file(name).c_str(), F_OK) == 0; }
  /// Overwrites bytes of a file.
  void scribble(const char* name, long offset, const std::string& bytes) const {
    const int fd = ::open(file(name).c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), offset), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }

  test::ScratchPlace place_;
  shm::UniqueFd folder_;
  shm::SegmentOptions options_;
};

TEST_F(Adoption, MakesWhatIsNotThere) {
  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::Fresh);
  EXPECT_FALSE(birth.start_empty);
  EXPECT_TRUE(there("rules") && there("state") && there("stats"));
}

TEST_F(Adoption, C044TakesOverWhatFits) {
  const std::string first = uuid(get());

  const Birth second = get();

  EXPECT_EQ(second.kind, Birth::Kind::Adopted);
  EXPECT_EQ(uuid(second), first);
}

TEST_F(Adoption, C045RemovesWhatACutShortCreationLeft) {
  for (const char* name : {"rules.next", "state.next", "stats.next"}) {
    test::write_file(file(name), "half");
  }

  EXPECT_EQ(get().kind, Birth::Kind::Fresh);
  EXPECT_FALSE(there("rules.next") || there("state.next") || there("stats.next"));

  test::write_file(file("state.next"), "half");
  EXPECT_EQ(get().kind, Birth::Kind::Adopted);
  EXPECT_FALSE(there("state.next"));
}

TEST_F(Adoption, SetsADamagedMemoryAsideAndStartsEmpty) {
  struct Damage { const char* what; std::function<void()> plant; const char* reason; };
  const Damage damages[] = {
      {"truncated", [&] { ASSERT_EQ(::truncate(file("state").c_str(), 4096), 0); }, "state"},
      {"foreign", [&] { scribble("rules", 0, "notours!"); }, "rules"},
      {"header", [&] { scribble("stats", 200, "xxxxxxxx"); }, "stats"},
      {"missing", [&] { ::unlink(file("stats").c_str()); }, "stats"},
  };
  for (const Damage& damage : damages) {
    const std::string before = uuid(get());
    damage.plant();

    const Birth birth = get();

    EXPECT_EQ(birth.kind, Birth::Kind::SetAside) << damage.what;
    EXPECT_TRUE(birth.start_empty) << damage.what;
    EXPECT_NE(birth.reason.find(damage.reason), std::string::npos) << birth.reason;
    EXPECT_TRUE(there("rules.bad")) << damage.what;
    EXPECT_NE(uuid(birth), before) << damage.what;
  }
}

TEST_F(Adoption, InitialAfterDamageFullIsObeyed) {
  get();
  scribble("rules", 0, "notours!");

  EXPECT_FALSE(get(rule::Initial::Full).start_empty);
}

TEST_F(Adoption, KeepsOneSetOfBadFiles) {
  for (int i = 0; i < 3; ++i) {
    get();
    scribble("rules", 0, "notours!");
    EXPECT_EQ(get().kind, Birth::Kind::SetAside);
  }

  int files = 0;
  for (const char* name : {"rules", "state", "stats", "rules.bad", "state.bad", "stats.bad"}) {
    files += there(name) ? 1 : 0;
  }
  EXPECT_EQ(files, 6);
}

TEST_F(Adoption, DamagedRulesAreNotBelieved) {
  {
    const Birth birth = get();
    const shm::View& view = birth.segment.view();
    const auto current = view.current() & shm::kCurrentImageBit;
    const_cast<std::uint8_t*>(view.image[current])[view.image_length - 1] ^= 1;
  }

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::SetAside);
  EXPECT_NE(birth.reason.find("checksum of the image"), std::string::npos);
}

TEST_F(Adoption, C129OtherCapacitiesAreMovedToAndSaidWithBothNumbers) {
  struct Change { std::function<void(shm::Capacity&)> make; const char* reason; };
  const Change changes[] = {
      {[](shm::Capacity& c) { c.keys = 4096; }, "capacity.keys was 1024 there and is 4096 here"},
      {[](shm::Capacity& c) { c.limits = 8; }, "capacity.limits was 4 there and is 8 here"},
      {[](shm::Capacity& c) { c.processes = 32; },
       "capacity.processes was 16 there and is 32 here"},
      {[](shm::Capacity& c) { c.stripes = 3; }, "capacity.stripes was 2 there and is 3 here"},
      {[](shm::Capacity& c) { c.events = 2048; },
       "capacity.events was 1024 there and is 2048 here"},
      {[](shm::Capacity& c) { c.overrides = 17; },
       "capacity.overrides was 4096 there and is 17 here"},
      {[](shm::Capacity& c) { c.tops = 0; }, "capacity.tops was 64 there and is 0 here"},
      {[](shm::Capacity& c) { c.trips = 7; }, "capacity.trips was 1024 there and is 7 here"},
      {[](shm::Capacity& c) { c.calendars = 3; }, "capacity.calendars was 64 there and is 3 here"},
      {[](shm::Capacity& c) { c.breakers = 9; }, "capacity.breakers was 64 there and is 9 here"},
      {[](shm::Capacity& c) { c.breaker_memory = 65536; },
       "capacity.breaker-memory was 524288 there and is 65536 here"},
      {[](shm::Capacity& c) { c.bulkheads = 7; },
       "capacity.bulkheads was 64 there and is 7 here"},
      {[](shm::Capacity& c) { c.bulkhead_cells = 100; },
       "capacity.bulkhead-cells was 4096 there and is 100 here"},
      {[](shm::Capacity& c) { c.waiters = 33; },
       "capacity.waiters was 1024 there and is 33 here"},
  };
  for (const Change& change : changes) {
    const std::string first = uuid(get());
    const shm::Capacity before = options_.capacity;
    change.make(options_.capacity);

    const Birth birth = get();

    EXPECT_EQ(birth.kind, Birth::Kind::Moved) << change.reason;
    EXPECT_FALSE(birth.start_empty);
    EXPECT_EQ(birth.reason, change.reason);
    EXPECT_NE(uuid(birth), first);
    EXPECT_FALSE(there("rules.bad") || there("rules.next"));
    EXPECT_EQ(get().kind, Birth::Kind::Adopted) << change.reason;
    options_.capacity = before;
    EXPECT_EQ(get().kind, Birth::Kind::Moved) << change.reason;
  }
}

TEST_F(Adoption, KeysAreNeverFewerThanTheMemoryBeganWith) {
  options_.capacity.keys = 4096;
  get();
  options_.capacity.keys = 1024;

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::Adopted);
  EXPECT_EQ(birth.segment.capacity().keys, 4096U);
}

TEST_F(Adoption, C129WhatIsInUseAndDoesNotFitIsRefusedWithTheNumberToSet) {
  options_.capacity.processes = 32;
  {
    const Birth larger = get();
    shm::RowTable table(larger.segment.view(), false);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(table.grant({.kind = shm::RowKind::Process, .pid = 1, .name = "test"}));
    }
  }
  options_.capacity.processes = 16;

  auto refused = adopt_or_create(folder_.get(), options_, rule::Initial::Empty);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::InvalidConfig);
  EXPECT_NE(refused.error().text().find("set capacity.processes to at least 20"),
            std::string::npos)
      << refused.error().text();
  EXPECT_FALSE(there("rules.next") || there("state.next") || there("stats.next"));
  options_.capacity.processes = 32;
  EXPECT_EQ(get().kind, Birth::Kind::Adopted) << "nothing was changed";
}

// Another clock: there a copy would mean nothing.
TEST_F(Adoption, AMemoryThatProcessesDecideInIsNotSetAside) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  shm::RowGrant row;
  {
    const Birth birth = get();
    shm::RowTable rows(birth.segment.view(), true);
    auto granted = rows.grant({.kind = shm::RowKind::Process,
                               .pid = pid,
                               .start_time = shm::process_start_time(pid),
                               .name = "test"});
    ASSERT_TRUE(granted) << granted.error().text();
    row = *granted;
  }
  options_.clock = shm::ClockKind::Stepped;

  auto refused = adopt_or_create(folder_.get(), options_, rule::Initial::Empty);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::InvalidConfig);
  EXPECT_NE(refused.error().text().find(std::to_string(pid)), std::string::npos);
  options_.clock = shm::ClockKind::Boottime;
  {
    const Birth same = get();
    EXPECT_EQ(same.kind, Birth::Kind::Adopted);
    shm::RowTable rows(same.segment.view(), false);
    rows.mark_dead(row);
    rows.free(row);
  }
  options_.clock = shm::ClockKind::Stepped;
  EXPECT_EQ(get().kind, Birth::Kind::SetAside);
}

TEST_F(Adoption, AMemoryWithoutItsRulesIsDamageNotANewInstance) {
  get();
  ASSERT_EQ(::unlink(file("rules").c_str()), 0);

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::SetAside);
  EXPECT_TRUE(birth.start_empty);
}

// Killed between setting aside and making anew: the next start still knows that a memory was lost.
TEST_F(Adoption, WhatWasSetAsideWithNothingMadeSinceStartsEmpty) {
  get();
  for (const char* name : {"rules", "state", "stats"}) {
    ASSERT_EQ(::rename(file(name).c_str(), (file(name) + ".bad").c_str()), 0);
  }

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::SetAside);
  EXPECT_TRUE(birth.start_empty);
  EXPECT_EQ(get().kind, Birth::Kind::Adopted);
}

TEST_F(Adoption, AFlippedBitInTheHashSecretIsDamage) {
  get();
  scribble("rules", offsetof(shm::FileHeader, secret), "ZZZZ");

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::SetAside);
  EXPECT_NE(birth.reason.find("checksum"), std::string::npos) << birth.reason;
}

TEST_F(Adoption, SizesThatAreRoundedUpAreStillTheSame) {
  options_.capacity.keys = 1025;
  get();

  EXPECT_EQ(get().kind, Birth::Kind::Adopted);
}

TEST_F(Adoption, AnotherClockIsSaid) {
  get();
  options_.clock = shm::ClockKind::Stepped;

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::SetAside);
  EXPECT_NE(birth.reason.find("clock is boottime, this daemon was started with stepped"),
            std::string::npos);
}

// Of a move that was killed after the old memory was marked.
TEST_F(Adoption, ASupersededMemoryIsMovedAgainAlsoWithTheSizesItHas) {
  const Birth old = get();
  __atomic_fetch_or(&old.segment.view().rules_control->current, shm::kCurrentSupersededBit,
                    __ATOMIC_SEQ_CST);

  const Birth birth = get();

  EXPECT_EQ(birth.kind, Birth::Kind::Moved);
  EXPECT_EQ(birth.reason, "a former move was cut short");
  EXPECT_NE(uuid(birth), uuid(old));
  EXPECT_EQ(get().kind, Birth::Kind::Adopted);
}

TEST_F(Adoption, ALinkInPlaceOfAFileEndsTheStart) {
  get();
  ::unlink(file("state").c_str());
  ASSERT_EQ(::symlink("/etc/passwd", file("state").c_str()), 0);

  auto birth = adopt_or_create(folder_.get(), options_, rule::Initial::Empty);

  ASSERT_FALSE(birth);
  EXPECT_EQ(birth.error().code(), Errc::NotOurs);
}

}  // namespace
}  // namespace cutwater::server
