// SPDX-License-Identifier: Apache-2.0
// Which decisions of this process are noted in the limit's list of top keys (shm/limit/tops.hpp),
// where people see who asks most and who is refused most.
//
// A note costs some 300 ns, a decision 40: so a thread notes one of its `TopRate::weight` decisions
// and that one counts for so many. The weight follows the thread's pace: 1, every decision, up to
// some 1000 decisions a second, then as many as keep it at about a note in kNoteEveryNs, at most
// kMostWeight. A key's numbers are right in the mean, whatever the pace does meanwhile.
//
// On the decision path that is a multiplication and a comparison with a word of the line the thread
// counts by: no store, no clock of its own. is_sampled() picks by the golden section of the count:
// whatever order the keys are asked in, it meets them evenly; every 64th decision would meet one of
// 64 keys that are asked in turn, and always that one.
//
// A lease (thread_lease.hpp) is noted when it is made, with all that it may pay. Looks, charges
// after the fact and undos are not noted.
// Hot. Threads: each has its own pace. A fork copies it.
#pragma once
#include <cstdint>
#include <string_view>

#include <cutwater/decision.hpp>

#include "shm/limit/key_hash.hpp"
#include "src/limit_state.hpp"

namespace cutwater::detail {

inline constexpr std::int64_t kNoteEveryNs = 1'000'000;
inline constexpr std::uint32_t kMostWeight = 1 << 15;

/// How a thread samples: a decision whose count times the golden section, taken as a fraction, lies
/// at or below `below`: one of 2^32 / (below + 1) of them.
using SampleBelow = std::uint32_t;
inline constexpr SampleBelow kSampleAll = ~SampleBelow{0};

[[gnu::always_inline]] inline bool is_sampled(std::uint64_t count, SampleBelow below) noexcept {
  return static_cast<std::uint32_t>(count) * 0x9E37'79B1U <= below;
}

/// One decision to note, at segment time `t`. `asks`: how many it stands for by itself.
struct Sample {
  std::uint32_t limit = 0;
  shm::KeyHash key;
  std::string_view text;               ///< of the key; kept only where show-keys is `shown`
  std::int64_t t = 0;
  std::uint64_t asks = 1;
  bool refused = false;
};
/// Rare: notes what is_sampled() chose, and sets the thread's pace anew.
[[gnu::cold]] void note_sample(const LimitState& state, const Sample& sample) noexcept;

}  // namespace cutwater::detail
