// SPDX-License-Identifier: Apache-2.0
// Names of keys (`instance.remember-keys`): beside each slot of the bucket table 48 bytes in
// `stats` that say, for people, whose bucket lies there. Never an input of a decision; without the
// setting there is no such region (View::key_names is nullptr) and nobody pays for it.
//
// Written by whoever inserted the key, behind the promotion, and never again: an entry that is
// found costs what it costs without names. Only where the limit's show-keys is `shown`: what people
// may not see is kept nowhere.
//
//   a key of up to 39 bytes     lies there whole. It is believed when the limit's secret hashes it
//                               to the fingerprint of the slot's entry: then it is its key (a wrong
//                               one passes once in 2^46)
//   a longer one                its first 31 bytes, and behind them a seal of 8 bytes over them and
//                               the fingerprint. It is shown as cut, never as a whole key
//
// Both only when the tag written with it is the entry's (guards KeyNameOfItsEntry, KeyNameProven).
// The rule id of the tag may be another: a change of rules leaves a name valid, as fingerprint and
// place are made of the limit's name and the key.
//
// Order of a write: tag 0, text, tag (release). Writers of one slot do not wait for each other: one
// that stood still after its promotion may write when its entry is gone and another's is there, or
// in the middle of another's name. What then lies there is of no entry, or fails the proof: the
// name is missing until the entry is next inserted, and never a wrong one. The same for one that
// was killed in the middle.
// Bounds: 48 bytes read or written. Nothing here allocates but read_key_name(). Thread and process
// safety: everything, from anybody who maps `stats` read-write; reading from anybody.
// Spec: memory 13.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/limit/key_hash.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// Writes the name of the entry `tag` that was just put into slot `slot`. Nothing where names are
/// not kept, or when `key` has no bytes to show (data() nullptr).
void remember_key(const View& view, std::uint64_t slot, std::uint64_t tag,
                  std::string_view key) noexcept;

struct KeptKey {
  std::string text;                    ///< bytes as given by the program, not made printable
  bool cut = false;                    ///< `text` is only the beginning of a longer key
};
/// The key of the entry `tag` (not a claim) as it was read from slot `slot`. Nothing: not kept, or
/// not to be believed. `secret` is of the limit and `window` of the rule that the tag names.
std::optional<KeptKey> read_key_name(const View& view, std::uint64_t slot, std::uint64_t tag,
                                     const LimitSecret& secret, std::uint8_t window);

/// For the copy into another memory: the name beside slot `slot` of `from` goes along to slot
/// `new_slot` of `to`, where the entry's tag is `new_tag`. Nothing where one of the two keeps none.
/// The owner, while nobody decides in `to`.
void copy_key_name(const View& from, std::uint64_t slot, const View& to, std::uint64_t new_slot,
                   std::uint64_t new_tag) noexcept;

}  // namespace cutwater::shm
