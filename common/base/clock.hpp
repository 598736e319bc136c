// SPDX-License-Identifier: Apache-2.0
// The segment's clock: the only place that reads time for a
// decision. Whole ns since the segment's epoch.
//
//   boottime CLOCK_BOOTTIME by the vdso (no system call), minus the epoch in the file header. 22-25
//     ns.
//   tsc the time-stamp counter, opt-in (`instance.clock: tsc`): scaled, recalibrated against
//     boottime at least
//             each ms, never decreasing within a thread. Only where the counter is invariant; see
//               tsc_usable().
//   stepped a word in shared memory that its creator moves, never backwards: tests, replay, the
//     demonstration.
//
// Never wall time: a settable clock would refill or lock out every bucket (C023). No signature of
// ours takes `now`. Thread safety: now() from any thread of any process.
#pragma once
#include <ctime>
#include <cstdint>

namespace cutwater {

/// A reading of CLOCK_BOOTTIME in ns.
[[gnu::always_inline]] inline std::int64_t boottime_ns() noexcept {
  timespec reading;
  clock_gettime(CLOCK_BOOTTIME, &reading);
  return std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec;
}

/// True when the time-stamp counter is invariant and the kernel itself uses it as its clock source.
bool tsc_usable() noexcept;
/// Reading of the calibrated counter in ns of CLOCK_BOOTTIME; never decreasing within a thread.
std::int64_t tsc_boottime_ns() noexcept;

class SegmentClock {
 public:
  SegmentClock() = default;
  static SegmentClock boottime(std::int64_t epoch_ns) noexcept {
    return {nullptr, epoch_ns, false};
  }
  static SegmentClock tsc(std::int64_t epoch_ns) noexcept { return {nullptr, epoch_ns, true}; }
  static SegmentClock stepped(const std::int64_t* word) noexcept { return {word, 0, false}; }

  bool is_stepped() const noexcept { return word_ != nullptr; }
  /// The word of a stepped clock; nullptr for the others.
  const std::int64_t* stepped_word() const noexcept { return word_; }
  bool is_tsc() const noexcept { return word_ == nullptr && tsc_; }

  /// ns since the segment's epoch; never decreasing within a thread.
  [[gnu::always_inline]] std::int64_t now() const noexcept {
    // acquire: pairs with the release of whoever moved the stepped clock, so what happened before
    // the step is seen.
    if (word_ != nullptr) [[unlikely]] return __atomic_load_n(word_, __ATOMIC_ACQUIRE);
    if (tsc_) [[unlikely]] return tsc_boottime_ns() - epoch_ns_;
    return boottime_ns() - epoch_ns_;
  }

  /// Segment time of a CLOCK_BOOTTIME reading; not for a stepped clock.
  std::int64_t from_boottime(std::int64_t boottime) const noexcept { return boottime - epoch_ns_; }

  /// The CLOCK_BOOTTIME reading at segment time `t`: what an absolute sleep wants. `t` itself for a
  /// stepped clock.
  std::int64_t to_boottime(std::int64_t t) const noexcept { return t + epoch_ns_; }

 private:
  SegmentClock(const std::int64_t* word, std::int64_t epoch_ns, bool tsc) noexcept
      : word_(word), epoch_ns_(epoch_ns), tsc_(tsc) {}

  const std::int64_t* word_ = nullptr;
  std::int64_t epoch_ns_ = 0;
  bool tsc_ = false;
};

}  // namespace cutwater
