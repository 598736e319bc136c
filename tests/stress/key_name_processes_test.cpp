// SPDX-License-Identifier: Apache-2.0
// Many processes insert different keys into the same 32 slots, whose entries are soon full again
// and give way; each reads names all the while. The naive model is the list of keys: a name that is
// believed is the key whose fingerprint lies in the slot, or a beginning of it that says so.
// Some writers are killed. Seeds are printed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <random>

#include "rule/limit_settings.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/key_name.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr int kProcesses = 4, kRounds = 30, kInserts = 3000;
constexpr std::uint64_t kKeys = 300;

std::string text_of(std::uint64_t n) {
  // Of all lengths up to twice what is kept; many with the same beginning or the same end.
  std::string text = std::to_string(n % 7) + std::string(n % 79, static_cast<char>('a' + n % 3));
  return text + std::to_string(n);
}

class KeyNameProcesses : public testing::Test {
 protected:
  KeyNameProcesses()
      : world_({shown()}, {.processes = 8, .remember_keys = true,
                           .clock = shm::ClockKind::Boottime}) {
    handle_ = shm::resolve(world_.view(), "a");
    for (std::uint64_t n = 0; n < kKeys; ++n) {
      keys_[n] = text_of(n);
      by_fingerprint_[shm::fingerprint(shm::hash_key(handle_.secret, keys_[n]), 0)] = n;
    }
  }
  static rule::LimitSettings shown() {
    // A token is back after a microsecond: nearly every ask finds a full entry to replace.
    rule::LimitSettings settings = limit("a", {1'000'000, kSecond}, 2);
    settings.show_keys = rule::ShowKeys::Shown;
    return settings;
  }
  void insert(std::uint64_t n) const {
    DecisionData out;
    static_cast<void>(shm::admit(world_.view(), {handle_.ref, shm::key_of(handle_, keys_[n]), 1, 0},
                                 out));
  }
  struct Seen {
    std::uint64_t believed = 0, cut = 0, wrong = 0;
  };
  Seen look() const {
    Seen seen;
    for (std::uint64_t i = 0; i < world_.view().slot_count; ++i) {
      const Word16 word = load16(world_.view().slots + i);
      if (word.lo == 0 || shm::is_claim(word.lo)) continue;
      const auto name = shm::read_key_name(world_.view(), i, word.lo, handle_.secret, 0);
      if (!name) continue;
      ++seen.believed;
      seen.cut += name->cut ? 1 : 0;
      const auto found = by_fingerprint_.find(word.lo >> shm::kFingerprintShift);
      const std::string key = found == by_fingerprint_.end() ? "?" : keys_[found->second];
      const bool right = name->cut ? key.size() > shm::kKeyNameWhole &&
                                         name->text == key.substr(0, shm::kKeyNameShown)
                                   : name->text == key;
      seen.wrong += right ? 0 : 1;
    }
    return seen;
  }
  int work(std::uint64_t seed) const {
    Chance chance(seed);
    std::uint64_t wrong = 0;
    for (int i = 0; i < kInserts; ++i) {
      insert(chance.below(kKeys));
      if (chance.one_in(16)) wrong += look().wrong;
    }
    return wrong == 0 ? 0 : 1;
  }

  World world_;
  shm::LimitHandle handle_;
  std::array<std::string, kKeys> keys_;
  std::map<std::uint64_t, std::uint64_t> by_fingerprint_;
};

TEST_F(KeyNameProcesses, NobodyEverReadsAWrongName) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Chance chance(seed);
  Seen total;
  for (int round = 0; round < kRounds; ++round) {
    std::array<pid_t, kProcesses> child{};
    for (int p = 0; p < kProcesses; ++p) {
      const std::uint64_t own = chance();
      child[static_cast<std::size_t>(p)] = fork();
      if (child[static_cast<std::size_t>(p)] == 0) _exit(work(own));
    }
    // One of them is killed somewhere in its work, after as many looks of mine.
    const std::uint64_t looks = chance.below(200);
    for (std::uint64_t i = 0; i < looks; ++i) {
      const Seen seen = look();
      ASSERT_EQ(seen.wrong, 0U);
      total.believed += seen.believed;
    }
    kill(child[0], SIGKILL);
    for (int p = 0; p < kProcesses; ++p) {
      int status = 0;
      ASSERT_EQ(waitpid(child[static_cast<std::size_t>(p)], &status, 0),
                child[static_cast<std::size_t>(p)]);
      const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      ASSERT_TRUE(well || p == 0) << "a wrong name";
    }
    const Seen seen = look();
    ASSERT_EQ(seen.wrong, 0U);
    total.believed += seen.believed;
    total.cut += seen.cut;
  }
  EXPECT_GT(total.believed, 0U);
  EXPECT_GT(total.cut, 0U);
  EXPECT_EQ(world_.verify(), "");
}

}  // namespace
}  // namespace cutwater::test
