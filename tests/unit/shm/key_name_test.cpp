// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/key_name.hpp"

#include <cstring>
#include <optional>

#include "rule/limit_settings.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/memory_copy.hpp"
#include "shm/publisher.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using rule::ShowKeys;

class KeyNameTest : public testing::Test {
 protected:
  struct Entry {
    std::uint64_t slot = kNoSlot;
    std::uint64_t tag = 0;
    std::uint8_t window = 0;
  };

  static SegmentOptions options(bool remember) {
    SegmentOptions options = test::stepped_options();
    options.capacity.remember_keys = remember;
    return options;
  }
  void open(bool remember = true, ShowKeys show = ShowKeys::Shown) {
    segment_.emplace(Segment::create_private(options(remember)).value());
    publisher_.emplace(view());
    publish(show, 10);
  }
  void publish(ShowKeys show, std::uint64_t burst) {
    std::vector<rule::LimitSettings> all(2);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].name = i == 0 ? "api" : "other";
      all[i].show_keys = show;
      all[i].windows.resize(1);
      all[i].windows[0].rate_count = 1;
      all[i].windows[0].rate_period_ns = 3600 * std::uint64_t{1'000'000'000};
      all[i].windows[0].burst = burst;
    }
    ASSERT_TRUE(publisher_->publish(all, 0));
    step_clock(view(), view().clock.now() + 1'000'000'000);
  }
  const View& view() const { return segment_->view(); }

  /// Charges one token; the entry it lies in.
  Entry take(std::string_view limit, std::string_view key) {
    const LimitHandle handle = resolve(view(), limit);
    DecisionData out;
    EXPECT_EQ(admit(view(), {handle.ref, key_of(handle, key), 1, 0}, out), Outcome::Answered);
    EXPECT_EQ(out.reason, Reason::Allowed);
    const auto* slot = static_cast<const Word16*>(out.slot);
    if (slot == nullptr) return {};
    return {static_cast<std::uint64_t>(slot - view().slots), slot->lo, 0};
  }
  std::optional<KeptKey> name_of(const Entry& entry, std::string_view limit = "api") const {
    const LimitHandle handle = resolve(view(), limit);
    return read_key_name(view(), entry.slot, entry.tag, handle.secret, entry.window);
  }

  std::optional<Segment> segment_;
  std::optional<Publisher> publisher_;
};

TEST_F(KeyNameTest, AKeyOfUpTo39BytesIsKeptWholeAndALongerOneIsCutAndSaysSo) {
  open();
  const std::string whole(kKeyNameWhole, 'w'), longer(kKeyNameWhole + 1, 'l');
  const std::string binary("a\0\xff\n", 4);

  for (const std::string& key : {std::string(), std::string("alice"), whole, binary}) {
    const auto name = name_of(take("api", key));
    ASSERT_TRUE(name) << key;
    EXPECT_EQ(name->text, key);
    EXPECT_FALSE(name->cut);
  }
  const auto cut = name_of(take("api", longer));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->cut);
  EXPECT_EQ(cut->text, longer.substr(0, kKeyNameShown));
}

TEST_F(KeyNameTest, NothingIsKeptOfAKeyThatPeopleMayNotSee) {
  for (const ShowKeys show : {ShowKeys::Hashed, ShowKeys::Hidden}) {
    open(true, show);
    EXPECT_FALSE(name_of(take("api", "alice")));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(view().key_names);
    for (std::size_t i = 0; i < view().slot_count * sizeof(KeyName); ++i) ASSERT_EQ(bytes[i], 0);
  }
}

TEST_F(KeyNameTest, WithoutTheSettingThereIsNoMemoryForNames) {
  open(false);
  EXPECT_EQ(view().key_names, nullptr);
  EXPECT_FALSE(name_of(take("api", "alice")));
  EXPECT_FALSE(segment_->capacity().remember_keys);
  const std::uint64_t without = total_length(options(false).capacity);
  const std::uint64_t with = total_length(options(true).capacity);
  EXPECT_GE(with - without, view().slot_count * sizeof(KeyName));
  EXPECT_LE(with - without, view().slot_count * sizeof(KeyName) + 2 * kPage);
}

TEST_F(KeyNameTest, AnEntryThatIsFoundWritesNoName) {
  open();
  const Entry entry = take("api", "alice");
  view().key_names[entry.slot] = {};

  EXPECT_EQ(take("api", "alice").slot, entry.slot);

  EXPECT_FALSE(name_of(entry));
}

TEST_F(KeyNameTest, ANameOfAnotherEntryIsNotBelieved) {
  open();
  const std::string longer(60, 'x'), whole = "alice";
  const Entry cut = take("api", longer), kept = take("api", whole), other = take("api", "bob");
  // As a writer leaves it that stood still until its place was another key's.
  view().key_names[other.slot] = view().key_names[cut.slot];
  EXPECT_FALSE(name_of(other));
  view().key_names[other.slot] = view().key_names[kept.slot];
  EXPECT_FALSE(name_of(other));
  EXPECT_TRUE(name_of(kept));
  // The same bytes under the other limit's secret are another key.
  EXPECT_FALSE(name_of(kept, "other"));
}

TEST_F(KeyNameTest, ATextThatIsNotOfItsTagIsNotBelieved) {
  open();
  const Entry cut = take("api", std::string(60, 'x')), kept = take("api", "alice");
  for (const Entry& entry : {cut, kept}) {
    const KeyName whole = view().key_names[entry.slot];
    for (std::size_t i = 0; i < sizeof whole.text; ++i) {
      if (whole.length != kKeyNameCut && i >= whole.length) break;
      KeyName torn = whole;
      torn.text[i] = static_cast<char>(torn.text[i] ^ 1);
      view().key_names[entry.slot] = torn;
      ASSERT_FALSE(name_of(entry)) << i;
    }
    for (int length = 0; length < 256; ++length) {
      KeyName torn = whole;
      torn.length = static_cast<std::uint8_t>(length);
      view().key_names[entry.slot] = torn;
      ASSERT_EQ(name_of(entry).has_value(), torn.length == whole.length) << length;
    }
    view().key_names[entry.slot] = whole;
    EXPECT_TRUE(name_of(entry));
  }
}

TEST_F(KeyNameTest, ANameOutlivesAChangeOfItsLimit) {
  open();
  Entry entry = take("api", "alice");
  const std::uint64_t before = entry.tag;
  std::vector<rule::LimitSettings> all(1);
  all[0].name = "api";
  all[0].show_keys = ShowKeys::Shown;
  all[0].windows.resize(1);
  all[0].windows[0] = {.rate_count = 1'000'000, .rate_period_ns = 1'000'000'000, .burst = 5};
  all[0].on_change = rule::OnChange::Proportional;
  ASSERT_TRUE(publisher_->publish(all, 0));
  step_clock(view(), view().clock.now() + 1'000'000'000);
  while (!publisher_->sweep(view().slot_count)) {}

  entry.tag = view().slots[entry.slot].lo;

  EXPECT_NE(entry.tag, before) << "the test wants an entry under another rule id";
  const auto name = name_of(entry);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->text, "alice");
}

TEST_F(KeyNameTest, NamesMoveWithTheirEntriesIntoAnotherMemory) {
  open();
  for (int i = 0; i < 12; ++i) take("api", "key-" + std::to_string(i));
  take("api", std::string(50, 'z'));
  for (const bool remember : {true, false}) {
    SegmentOptions other = options(remember);
    auto next = Segment::create_private(other).value();
    View to = next.view();
    to.secret = view().secret;
    ASSERT_TRUE(copy_memory(view(), to));

    int named = 0, cut = 0, entries = 0;
    const LimitHandle handle = resolve(to, "api");
    for (std::uint64_t i = 0; i < to.slot_count; ++i) {
      if (to.slots[i].lo == 0) continue;
      ++entries;
      const auto name = read_key_name(to, i, to.slots[i].lo, handle.secret, 0);
      named += name ? 1 : 0;
      cut += name && name->cut ? 1 : 0;
    }
    EXPECT_EQ(entries, 13);
    EXPECT_EQ(named, remember ? 13 : 0);
    EXPECT_EQ(cut, remember ? 1 : 0);
  }
}

}  // namespace
}  // namespace cutwater::shm
