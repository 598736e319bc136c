// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/key_name.hpp"

#include <algorithm>
#include <cstring>

#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "shm/limit/bucket_table.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cutwater::shm {
namespace {

constexpr std::size_t kWords = sizeof(KeyName) / sizeof(std::uint64_t);
using Words = std::uint64_t[kWords];
static_assert(sizeof(KeyName) % sizeof(std::uint64_t) == 0 && offsetof(KeyName, tag) == 0);
static_assert((offsetof(KeyName, text) + kKeyNameShown) % sizeof(std::uint64_t) == 0);

/// What of a tag says which key it is: fingerprint and group.
constexpr std::uint64_t kOfKey = ~(kTagRuleMask | kTagTentative);

/// Over the first bytes of a key that was cut, and the fingerprint they belong to.
std::uint64_t seal_of(const KeyName& name) noexcept {
  char bytes[kKeyNameShown + sizeof(std::uint64_t)];
  const std::uint64_t fp = name.tag >> kFingerprintShift;
  std::memcpy(bytes, &fp, sizeof fp);
  std::memcpy(bytes + sizeof fp, name.text, kKeyNameShown);
  return XXH3_64bits(bytes, sizeof bytes);
}

/// Word by word; relaxed: what belongs together is proven, not assumed.
KeyName copy_of(const KeyName& shared) noexcept {
  const auto* from = reinterpret_cast<const std::uint64_t*>(&shared);
  Words words;
  // acquire: pairs with the release of the tag in store(): who sees it sees that text or a later.
  words[0] = __atomic_load_n(from, __ATOMIC_ACQUIRE);
  for (std::size_t i = 1; i < kWords; ++i) words[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
  KeyName out;
  std::memcpy(&out, words, sizeof out);
  return out;
}

void store(KeyName& shared, const KeyName& name) noexcept {
  Words words;
  std::memcpy(words, &name, sizeof words);
  auto* to = reinterpret_cast<std::uint64_t*>(&shared);
  __atomic_store_n(to, 0, __ATOMIC_RELAXED);
  CUTWATER_SYNC_POINT("name.before_text");
  for (std::size_t i = 1; i < kWords; ++i) {
    // release: behind the tag's 0, so that a reader of this text does not see the tag before it.
    __atomic_store_n(to + i, words[i], __ATOMIC_RELEASE);
    CUTWATER_SYNC_POINT("name.in_text");
  }
  // PUBLISHES the text: pairs with the acquire in copy_of().
  __atomic_store_n(to, words[0], __ATOMIC_RELEASE);
}

}  // namespace

void remember_key(const View& view, std::uint64_t slot, std::uint64_t tag,
                  std::string_view key) noexcept {
  if (view.key_names == nullptr || slot >= view.slot_count || key.data() == nullptr) return;
  KeyName name{};
  name.tag = tag;
  if (key.size() <= kKeyNameWhole) {
    name.length = static_cast<std::uint8_t>(key.size());
    std::memcpy(name.text, key.data(), key.size());
  } else {
    name.length = kKeyNameCut;
    std::memcpy(name.text, key.data(), kKeyNameShown);
    const std::uint64_t seal = seal_of(name);
    std::memcpy(name.text + kKeyNameShown, &seal, sizeof seal);
  }
  store(view.key_names[slot], name);
}

std::optional<KeptKey> read_key_name(const View& view, std::uint64_t slot, std::uint64_t tag,
                                     const LimitSecret& secret, std::uint8_t window) {
  if (view.key_names == nullptr || slot >= view.slot_count) return std::nullopt;
  const KeyName name = copy_of(view.key_names[slot]);
  if (name.tag == 0) return std::nullopt;
  const bool of_entry = ((name.tag ^ tag) & kOfKey) == 0;
  if (guarded(Guard::KeyNameOfItsEntry) && !of_entry) return std::nullopt;
  if (name.length == kKeyNameCut) {
    const std::uint64_t seal = seal_of(name);
    const bool sealed = std::memcmp(name.text + kKeyNameShown, &seal, sizeof seal) == 0;
    if (guarded(Guard::KeyNameProven) && !sealed) return std::nullopt;
    return KeptKey{std::string(name.text, kKeyNameShown), true};
  }
  if (name.length > kKeyNameWhole) return std::nullopt;
  const std::string_view text{name.text, name.length};
  const bool proven = fingerprint(hash_key(secret, text), window) == tag >> kFingerprintShift;
  if (guarded(Guard::KeyNameProven) && !proven) return std::nullopt;
  return KeptKey{std::string(text), false};
}

void copy_key_name(const View& from, std::uint64_t slot, const View& to, std::uint64_t new_slot,
                   std::uint64_t new_tag) noexcept {
  if (from.key_names == nullptr || to.key_names == nullptr) return;
  if (slot >= from.slot_count || new_slot >= to.slot_count) return;
  KeyName name = copy_of(from.key_names[slot]);
  const std::uint64_t fp = new_tag >> kFingerprintShift;
  if (name.tag >> kFingerprintShift != fp) return;
  name.tag = new_tag;
  store(to.key_names[new_slot], name);
}

}  // namespace cutwater::shm
