// SPDX-License-Identifier: Apache-2.0
// Tops: which keys of a limit ask most and are refused most. A Space-Saving sketch of
// capacity.tops rows for each limit, in `stats`: for people, never an input of a decision.
//
// A key that is in the list counts there; a new one takes the row that asked least, and starts with
// that row's number (`over`: so much of `asked` may be of the keys that were there before). So a
// key that makes more than 1/rows of what is noted is in the list, and asked - over <= true count
// <= asked.
// Any process notes, without a lock: a row is read, changed and written as a whole, and carries a
// checksum. Two writers at once, or one killed in the middle, cost a row or a count, never more: a
// row whose sum is wrong is free. Who notes a sample says the weight of one (1 of 16: 16).
// Keys lie there as hashes; their text only where the limit's show-keys is `shown`, cut to 27
// bytes.
// Cost: one look over the rows, some 300 ns with 64; of what a mapped client decides only a sample
// is noted where there is much (client/src/top_sample.hpp).
// Nothing here allocates but read_tops(). Thread and process safety: everything.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/limit/key_hash.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

struct TopNote {
  std::uint32_t limit = 0;
  KeyHash key;
  std::string_view text;               ///< of the key, when it may be shown; else empty
  std::uint64_t weight = 1;            ///< asks that this note stands for
  bool refused = false;
};
void note_top(const View& view, const TopNote& note) noexcept;

struct Top {
  std::uint64_t key_hash = 0;
  std::uint64_t asked = 0, refused = 0, over = 0;
  std::string text;
};
/// The rows of a limit that are whole, most asking first.
std::vector<Top> read_tops(const View& view, std::uint32_t limit);

/// The index was given to another limit: its list begins anew. Owner only.
void clear_tops(const View& view, std::uint32_t limit) noexcept;

}  // namespace cutwater::shm
