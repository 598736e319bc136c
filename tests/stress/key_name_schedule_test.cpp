// SPDX-License-Identifier: Apache-2.0
// Two writers of one slot's name, in the orders that would tell a wrong name: one stood still in
// the middle of its write, or before it, until its entry was gone and another's name was there.
#include <gtest/gtest.h>

#include <optional>

#include "rule/limit_settings.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/key_name.hpp"
#include "stress/actor.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

class KeyNameSchedule : public testing::Test {
 protected:
  static constexpr std::uint64_t kSlot = 5;

  KeyNameSchedule() : world_({limit("a", {1, kHour}, 5)}, {.remember_keys = true}) {
    handle_ = shm::resolve(world_.view(), "a");
  }
  std::uint64_t tag_of(const std::string& key) const {
    return shm::fingerprint(shm::hash_key(handle_.secret, key), 0) << shm::kFingerprintShift | 2;
  }
  void write(const std::string& key) const {
    shm::remember_key(world_.view(), kSlot, tag_of(key), key);
  }
  /// What a reader is told while the entry of `key` lies in the slot: nothing, or the truth.
  void expect_true(const std::string& key, const std::string& when) const {
    const auto name = shm::read_key_name(world_.view(), kSlot, tag_of(key), handle_.secret, 0);
    if (!name) return;
    EXPECT_EQ(name->cut, key.size() > shm::kKeyNameWhole) << when;
    EXPECT_EQ(name->text, key.substr(0, name->cut ? shm::kKeyNameShown : key.size())) << when;
  }

  World world_;
  shm::LimitHandle handle_;
};

TEST_F(KeyNameSchedule, AWriterThatStoodStillInTheMiddleMakesNoWrongName) {
  const std::string keys[] = {std::string(39, 'a'), std::string(39, 'b'), std::string(60, 'c'),
                              std::string(60, 'd')};
  for (const std::string& slow : keys) {
    for (const std::string& fast : keys) {
      if (slow == fast) continue;
      for (int stops = 1; stops <= 6; ++stops) {
        Actor writer([&] { write(slow); });
        for (int i = 0; i < stops; ++i) ASSERT_TRUE(writer.step());
        write(fast);
        const std::string order = slow.substr(0, 1) + " at " + std::to_string(stops) + ", then " +
                                  fast.substr(0, 1);
        do {
          for (const std::string& key : keys) expect_true(key, order);
        } while (writer.step());
        for (const std::string& key : keys) expect_true(key, order);
      }
    }
  }
}

TEST_F(KeyNameSchedule, ANameWrittenTooLateIsOfNoEntry) {
  const std::string late(60, 'l'), now(60, 'n');
  Actor writer([&] { write(late); });
  ASSERT_TRUE(writer.run_to("name.before_text"));
  write(now);
  writer.finish();                       // the record is whole, and of the entry that is gone

  expect_true(now, "after a late write");
}

}  // namespace
}  // namespace cutwater::test
