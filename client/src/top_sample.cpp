// SPDX-License-Identifier: Apache-2.0
#include "src/top_sample.hpp"

#include <algorithm>

#include "rule/limit_settings.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/limit/tops.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::detail {
namespace {

/// Stamp of this thread's last note; of any segment: a clock that jumps only sets the pace.
thread_local constinit std::int64_t last_note_ns = 0;

/// The weight that the last note calls for.
std::uint32_t next_weight(std::uint32_t weight, std::int64_t since_ns) noexcept {
  if (since_ns < 0) return weight;
  if (since_ns < kNoteEveryNs) return std::min(weight * 2, kMostWeight);
  // A thread that rested notes everything again.
  return since_ns < 4 * kNoteEveryNs ? weight : std::max(weight / 2, std::uint32_t{1});
}

}  // namespace

void note_sample(const LimitState& state, const Sample& sample) noexcept {
  ThreadCounter& counter = thread_counter;
  const std::uint32_t weight = kSampleAll / counter.sample_below;
  const shm::View& view = *state.view;
  if (sample.limit < view.limit_count) {
    const shm::LimitConfig& config = view.limit_config(view.current(), sample.limit);
    const bool shown =
        shm::read_once(config.show_keys) == static_cast<std::uint8_t>(rule::ShowKeys::Shown);
    shm::note_top(view, {.limit = sample.limit,
                         .key = sample.key,
                         .text = shown ? sample.text : std::string_view{},
                         .weight = weight * sample.asks,
                         .refused = sample.refused});
  }
  const std::uint32_t next = next_weight(weight, sample.t - last_note_ns);
  counter.sample_below = kSampleAll / next;
  last_note_ns = sample.t;
}

}  // namespace cutwater::detail
