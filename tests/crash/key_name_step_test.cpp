// SPDX-License-Identifier: Apache-2.0
// The name of a key, killed at every instruction of the insert that writes it, and of the write
// alone over an older name: afterwards a name is there and right, or there is none.
#include <gtest/gtest.h>

#include <optional>

#include "crash/stepper.hpp"
#include "rule/limit_settings.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/key_name.hpp"

namespace cutwater::test {
namespace {

using shm::KeptKey;

class KeyNameStep : public testing::Test {
 protected:
  KeyNameStep() : world_({shown()}, {.remember_keys = true}) {}
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
    handle_ = shm::resolve(world_.view(), "a");
  }
  static rule::LimitSettings shown() {
    rule::LimitSettings settings = limit("a", {1, kHour}, 5);
    settings.show_keys = rule::ShowKeys::Shown;
    return settings;
  }
  void take(const std::string& key) const {
    shm::BucketAsk ask{.limit = handle_.ref, .key = shm::hash_key(handle_.secret, key)};
    ask.text = key;
    DecisionData out;
    std::uint64_t hint = shm::kNoSlot;
    shm::charge(world_.view(), ask, hint, out);
  }
  static bool is_name_of(const KeptKey& name, const std::string& key) {
    if (!name.cut) return key == name.text;
    return key.size() > shm::kKeyNameWhole && key.substr(0, shm::kKeyNameShown) == name.text;
  }
  std::optional<KeptKey> name_in(std::uint64_t slot) const {
    const std::uint64_t tag = world_.view().slots[slot].lo;
    return shm::read_key_name(world_.view(), slot, tag, handle_.secret, 0);
  }
  /// Every name there is one of `keys`, in the place of its entry.
  void expect_true_names(const std::vector<std::string>& keys) const {
    for (std::uint64_t i = 0; i < world_.view().slot_count; ++i) {
      const Word16 word = world_.view().slots[i];
      if (word.lo == 0 || shm::is_claim(word.lo)) continue;
      const auto name = name_in(i);
      if (!name) continue;
      bool known = false;
      for (const std::string& key : keys) {
        const bool same = is_name_of(*name, key);
        const std::uint64_t fp = shm::fingerprint(shm::hash_key(handle_.secret, key), 0);
        known = known || (same && fp == word.lo >> shm::kFingerprintShift);
      }
      EXPECT_TRUE(known) << name->text << " in slot " << i;
    }
  }
  std::size_t names() const {
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < world_.view().slot_count; ++i) count += name_in(i) ? 1 : 0;
    return count;
  }

  World world_;
  shm::LimitHandle handle_;
};

TEST_F(KeyNameStep, InsertOfAKeyThatIsNamed) {
  const std::string key = "alice";
  kill_everywhere(world_, {"insert with a name", [](World&) {}, [&](World&) { take(key); },
                           [&](World& w, bool done) {
                             expect_true_names({key});
                             EXPECT_TRUE(names() == 1 || (!done && names() == 0));
                             w.pass(10 * kMillisecond);        // beyond a claim's deadline
                             take(key);
                             expect_true_names({key});
                             EXPECT_EQ(w.verify(), "");
                           }});
}

TEST_F(KeyNameStep, WriteOverANameAndOverACutOne) {
  const std::string longer(50, 'z'), other(45, 'y');
  for (const auto& [before, after] : {std::pair{longer, other}, std::pair{std::string("bob"),
                                                                          longer},
                                      std::pair{other, std::string("bob")}}) {
    const std::string first = before, second = after;      // a lambda may not have the binding
    const auto tag_of = [&](const std::string& key) {
      return shm::fingerprint(shm::hash_key(handle_.secret, key), 0) << shm::kFingerprintShift | 2;
    };
    const auto name = [&](std::uint64_t tag) {
      return shm::read_key_name(world_.view(), 3, tag, handle_.secret, 0);
    };
    const auto write = [&](const std::string& key) {
      shm::remember_key(world_.view(), 3, tag_of(key), key);
    };
    kill_everywhere(world_, {"remember_key", [&](World&) { write(first); },
                             [&](World&) { write(second); },
                             [&](World&, bool done) {
                               const auto old_name = name(tag_of(first));
                               const auto new_name = name(tag_of(second));
                               EXPECT_TRUE(new_name || !done);
                               EXPECT_FALSE(old_name && new_name);
                               EXPECT_TRUE(!old_name || is_name_of(*old_name, first));
                               EXPECT_TRUE(!new_name || is_name_of(*new_name, second));
                             }});
  }
}

TEST_F(KeyNameStep, CopyOfAName) {
  const std::string key = "alice";
  World other({shown()}, {.remember_keys = true});
  const std::uint64_t tag =
      shm::fingerprint(shm::hash_key(handle_.secret, key), 0) << shm::kFingerprintShift | 2;
  shm::remember_key(other.view(), 1, tag, key);
  kill_everywhere(world_, {"copy_key_name", [](World&) {},
                           [&](World& w) { shm::copy_key_name(other.view(), 1, w.view(), 4, tag); },
                           [&](World& w, bool done) {
                             const auto name =
                                 shm::read_key_name(w.view(), 4, tag, handle_.secret, 0);
                             EXPECT_TRUE(name || !done);
                             EXPECT_TRUE(!name || is_name_of(*name, key));
                           }});
}

}  // namespace
}  // namespace cutwater::test
