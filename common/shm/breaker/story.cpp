// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/story.hpp"

#include <algorithm>

#include "shm/breaker/detail.hpp"

namespace cutwater::shm {
namespace {

constexpr std::int64_t kNsPerUs = 1'000;
/// The span people mean by "the last minute".
constexpr std::int64_t kMinuteNs = 60'000'000'000;

/// One whole look, or t_ns 0 when it was being written or there is none.
MinuteLook read_look(const MinuteLook& place) noexcept {
  MinuteLook out{};
  // acquire: pairs with the release of the stamp; the second load shows that nobody began anew.
  const std::int64_t stamp = __atomic_load_n(&place.t_ns, __ATOMIC_ACQUIRE);
  out.duration_us = __atomic_load_n(&place.duration_us, __ATOMIC_ACQUIRE);
  out.failures = __atomic_load_n(&place.failures, __ATOMIC_ACQUIRE);
  out.success = __atomic_load_n(&place.success, __ATOMIC_ACQUIRE);
  for (std::size_t i = 0; i < kHistogramCells; ++i) {
    out.durations[i] = __atomic_load_n(&place.durations[i], __ATOMIC_ACQUIRE);
  }
  if (__atomic_load_n(&place.t_ns, __ATOMIC_RELAXED) == stamp) out.t_ns = stamp;
  return out;
}

/// The newest look that is at least a minute old; else the oldest there is. -1: none.
int look_for(const BreakerStory& story, std::int64_t now) noexcept {
  int best = -1;
  std::int64_t best_t = 0;
  for (std::size_t i = 0; i < kMinuteLooks; ++i) {
    const std::int64_t t = __atomic_load_n(&story.minute[i].t_ns, __ATOMIC_RELAXED);
    if (t <= 0 || t > now) continue;
    const bool old = now - t >= kMinuteNs, best_old = best >= 0 && now - best_t >= kMinuteNs;
    const bool better = best < 0 || (old ? !best_old || t > best_t : !best_old && t < best_t);
    if (!better) continue;
    best = static_cast<int>(i);
    best_t = t;
  }
  return best;
}

DurationFigures minute_of(const BreakerStory& story, const BreakerSums& sums,
                          std::int64_t now) noexcept {
  const int at = look_for(story, now);
  if (at < 0) return {};
  const MinuteLook look = read_look(story.minute[at]);
  if (look.t_ns == 0) return {};
  std::uint32_t cells[kHistogramCells];
  for (std::size_t i = 0; i < kHistogramCells; ++i) {
    cells[i] = sums.durations[i] - look.durations[i];
  }
  DurationFigures out = figures_of(cells, sums.of(BreakerCounter::DurationUs) - look.duration_us);
  out.span_ns = now - look.t_ns;
  return out;
}

}  // namespace

DurationFigures figures_of(const std::uint32_t (&cells)[kHistogramCells],
                           std::uint64_t duration_us) noexcept {
  DurationFigures out;
  std::size_t last = 0;
  for (std::size_t i = 0; i < kHistogramCells; ++i) {
    out.calls += cells[i];
    if (cells[i] != 0) last = i;
  }
  if (out.calls == 0) return out;
  // The value that so many per cent of the calls do not exceed.
  const auto percentile = [&](std::uint64_t percent) {
    const std::uint64_t wanted = (out.calls * percent + 99) / 100;
    std::uint64_t seen = 0;
    std::size_t cell = 0;
    while (cell < last && (seen += cells[cell]) < wanted) ++cell;
    return histogram_upper_ns(cell);
  };
  out.mean_ns = static_cast<std::int64_t>(duration_us / out.calls) * kNsPerUs;
  out.p50_ns = percentile(50);
  out.p99_ns = percentile(99);
  out.max_ns = histogram_upper_ns(last);
  return out;
}

bool read_breaker_figures(const View& view, std::uint32_t index, BreakerFigures& out) noexcept {
  out = {};
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return false;
  const BreakerStory& story = view.stories[index];
  out.sums = sum_breaker_counters(view, index);
  for (std::size_t from = 0; from < rule::kBreakerStates; ++from) {
    out.time_ns[from] = static_cast<std::int64_t>(
        __atomic_load_n(&story.time_us[from], __ATOMIC_RELAXED) * kNsPerUs);
    for (std::size_t to = 0; to < rule::kBreakerStates; ++to) {
      for (std::size_t reason = 0; reason < kBreakerReasons; ++reason) {
        out.moves[from][to][reason] =
            __atomic_load_n(&story.moves[from][to][reason], __ATOMIC_RELAXED);
      }
    }
  }
  const std::int64_t now = view.clock.now();
  const BreakerWord word = unpack_breaker(state_of(parts));
  const Word16 since = load16(&parts.head->since);
  if (epoch_of(since.lo) == word.epoch && since.hi != 0) {
    const auto state = static_cast<std::size_t>(word.state) % rule::kBreakerStates;
    out.time_ns[state] += std::max<std::int64_t>(0, now - static_cast<std::int64_t>(since.hi));
  }
  out.total = figures_of(out.sums.durations, out.sums.of(BreakerCounter::DurationUs));
  out.minute = minute_of(story, out.sums, now);
  if (const int at = look_for(story, now); at >= 0) {
    const MinuteLook look = read_look(story.minute[at]);
    const std::uint64_t outcomes = out.sums.of(BreakerCounter::Success) +
                                   out.sums.of(BreakerCounter::Failure);
    const std::uint64_t before = look.success + look.failures;
    if (look.t_ns != 0 && outcomes >= before) {
      out.minute_outcomes = outcomes - before;
      out.minute_span_ns = now - look.t_ns;
    }
  }
  return true;
}

void read_durations(const View& view, std::uint32_t index, DurationFigures& total,
                    DurationFigures& minute) noexcept {
  total = minute = {};
  if (index >= view.breaker_count) return;
  const BreakerSums sums = sum_breaker_counters(view, index);
  minute = minute_of(view.stories[index], sums, view.clock.now());
  total = figures_of(sums.durations, sums.of(BreakerCounter::DurationUs));
}

void count_move(const View& view, std::uint32_t index, rule::BreakerState from,
                rule::BreakerState to, rule::BreakerReason reason,
                std::int64_t spent_ns) noexcept {
  if (index >= view.breaker_count) return;
  BreakerStory& story = view.stories[index];
  const auto at = static_cast<std::size_t>(from) % rule::kBreakerStates;
  const auto to_at = static_cast<std::size_t>(to) % rule::kBreakerStates;
  const auto why = static_cast<std::size_t>(reason) % kBreakerReasons;
  // relaxed: nothing rides on a count.
  __atomic_fetch_add(&story.moves[at][to_at][why], 1, __ATOMIC_RELAXED);
  if (spent_ns > 0) {
    __atomic_fetch_add(&story.time_us[at], static_cast<std::uint64_t>(spent_ns / kNsPerUs),
                       __ATOMIC_RELAXED);
  }
}

bool look_at_minute(const View& view, std::uint32_t index) noexcept {
  if (index >= view.breaker_count) return false;
  BreakerStory& story = view.stories[index];
  const std::int64_t now = view.clock.now();
  std::size_t oldest = 0;
  std::int64_t oldest_t = now, newest_t = 0;
  for (std::size_t i = 0; i < kMinuteLooks; ++i) {
    const std::int64_t t = __atomic_load_n(&story.minute[i].t_ns, __ATOMIC_RELAXED);
    if (t > now) continue;                           // scribbled over: as good as none
    if (t < oldest_t) oldest = i, oldest_t = t;
    newest_t = std::max(newest_t, t);
  }
  if (newest_t != 0 && now - newest_t < kMinuteStepNs) return false;
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return false;
  const BreakerSums sums = sum_breaker_counters(view, index);
  MinuteLook& look = story.minute[oldest];
  // A swap, so that no figure below is seen under the old stamp.
  __atomic_exchange_n(&look.t_ns, std::int64_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&look.duration_us, sums.of(BreakerCounter::DurationUs), __ATOMIC_RELAXED);
  __atomic_store_n(&look.failures, sums.of(BreakerCounter::Failure), __ATOMIC_RELAXED);
  __atomic_store_n(&look.success, sums.of(BreakerCounter::Success), __ATOMIC_RELAXED);
  for (std::size_t i = 0; i < kHistogramCells; ++i) {
    __atomic_store_n(&look.durations[i], sums.durations[i], __ATOMIC_RELAXED);
  }
  // PUBLISHES the figures to read_look().
  __atomic_store_n(&look.t_ns, now, __ATOMIC_RELEASE);
  return true;
}

}  // namespace cutwater::shm
