// SPDX-License-Identifier: Apache-2.0
// What the operator wrote about one circuit breaker, after checking: the bridge between the
// configuration (common/config) and the breakers in shared memory (shm/breaker/publisher.hpp).
// Plain values, all of them integers: durations in ns, ratios in parts per million, so that a
// threshold is compared exactly and the same in every process. The words are Resilience4j's where
// it has one. check() repeats every range for callers that fill one by hand.
//
// Where a block leaves something out, the preset fills it: start with preset(), then overwrite what
// was written. `off` has a value of its own (kOffPpm for a rate, 0 for the rest), because a rate of
// 0 % is a rate: it holds as soon as the minimum is reached.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

namespace cutwater::rule {

/// Bounds of a breaker. Beyond them: refused naming the maximum, never "no limit".
inline constexpr std::uint32_t kPpm = 1'000'000;                ///< 100 %, and a multiplier of 1
inline constexpr std::uint32_t kOffPpm = 0xffff'ffff;           ///< a rate threshold that is off
inline constexpr std::uint32_t kMaxCountWindow = 65'535;        ///< calls
inline constexpr std::uint64_t kMinTimeWindowNs = 100'000'000;  ///< 100 ms
inline constexpr std::uint64_t kMaxTimeWindowNs = 86'400ULL * 1'000'000'000;      ///< 24 h
inline constexpr std::uint32_t kMaxSlots = 120;
inline constexpr std::uint64_t kMinSlotNs = 100'000'000;        ///< no slot is narrower
inline constexpr std::uint32_t kMinSpanSlots = 10;  ///< slots of `sliding-window-min-span`
inline constexpr std::uint32_t kMaxMinimumCalls = 0x8000'0000;  ///< 2^31
inline constexpr std::uint32_t kMaxFailureCount = 65'535;
inline constexpr std::uint32_t kMaxConsecutive = 100;
inline constexpr std::uint64_t kMinOpenWaitNs = 1'000'000;      ///< 1 ms
inline constexpr std::uint64_t kMaxOpenWaitNs = 30ULL * 86'400 * 1'000'000'000;   ///< 30 d
inline constexpr std::uint32_t kMaxBackoffPpm = 10 * kPpm;
inline constexpr std::uint32_t kMaxProbes = 64;
inline constexpr std::uint64_t kMaxProbeTimeoutNs = 600ULL * 1'000'000'000;       ///< 10 min
inline constexpr std::uint64_t kMaxSlowNs = 86'400ULL * 1'000'000'000;            ///< 24 h
inline constexpr std::uint32_t kMaxMinProcesses = 64;
inline constexpr std::uint32_t kMaxRampSteps = 8;
inline constexpr std::uint64_t kMaxRampNs = 3600ULL * 1'000'000'000;
inline constexpr std::uint32_t kMaxInstances = 16'384;
inline constexpr std::uint64_t kMaxIdleNs = 3660ULL * 86'400 * 1'000'000'000;
inline constexpr std::size_t kMaxClasses = 63;    ///< names in `record` and `ignore` together

/// What a breaker may be in. Numbers are those of the state word and of the protocol.
enum class BreakerState : std::uint8_t {
  Closed = 0, Open = 1, HalfOpen = 2, ForcedOpen = 3, Disabled = 4, MetricsOnly = 5,
};
inline constexpr std::uint8_t kBreakerStates = 6;

enum class BreakerPreset : std::uint8_t {
  Cutwater = 0, Resilience4j = 1, Microprofile = 2, Polly = 3, Gobreaker = 4, Hystrix = 5,
  Semian = 6, Sentinel = 7,
};
/// `sliding-window-type`
enum class WindowType : std::uint8_t { CountBased = 0, TimeBased = 1 };
/// `evaluate-on`: what may open: every outcome, or only a failure or a slow call.
enum class EvaluateOn : std::uint8_t { AnyResult = 0, Failure = 1 };
/// `open-edge`: OPEN ends at its deadline, or 1 ns after it.
enum class OpenEdge : std::uint8_t { Inclusive = 0, Exclusive = 1 };
/// `half-open-decision`: rate over all P probes; rate once `half_open_value` results are in; all P
/// must succeed; `half_open_value` successes close.
enum class HalfOpenRule : std::uint8_t { Rate = 0, RateOver = 1, AllSucceed = 2, Successes = 3 };
/// `transition-to-state-after-wait-duration`
enum class AfterHalfOpenWait : std::uint8_t { Open = 0, Closed = 1 };
/// `on-probe-timeout`
enum class OnProbeTimeout : std::uint8_t { Failure = 0, Release = 1 };
/// `ignored-results`
enum class IgnoredResults : std::uint8_t { ReturnPermit = 0, Success = 1 };
/// `late-results`
enum class LateResults : std::uint8_t { Drop = 0, ShowInOpen = 1 };
/// `ramp-after-close`: never; when three or more processes use the breaker; always.
enum class Ramp : std::uint8_t { Off = 0, Auto = 1, On = 2 };

/// `min-processes`: these two, else a number 2..64.
inline constexpr std::uint32_t kMinProcessesAuto = 0;
inline constexpr std::uint32_t kMinProcessesOff = 1;

struct BreakerSettings {
  std::string name;   ///< a name; with exactly one '*': a pattern that makes instances at first use

  // The window.
  WindowType window_type = WindowType::TimeBased;
  std::uint32_t window_calls = 100;                       ///< COUNT: N, 1..65535
  std::uint64_t window_span_ns = 10'000'000'000;          ///< TIME: 100 ms .. 24 h
  std::uint32_t window_slots = 10;        ///< TIME: 1..120; see effective_slots()
  std::uint64_t window_min_span_ns = 0;   ///< COUNT: 0 = off, else 100 ms .. 24 h
  std::uint32_t minimum_calls = 10;       ///< 1..2^31; a COUNT window cuts it to N

  // What opens.
  std::uint32_t failure_rate_ppm = 500'000;               ///< 0..10^6, kOffPpm = off
  std::uint32_t slow_rate_ppm = kOffPpm;                  ///< 0..10^6, kOffPpm = off
  std::uint64_t slow_duration_ns = 60'000'000'000;  ///< slow iff strictly longer; 1 ns .. 24 h
  std::uint32_t failure_count = 0;                        ///< 0 = off, 1..65535
  std::uint32_t consecutive_failures = 5;                 ///< 0 = off, 1..100
  EvaluateOn evaluate_on = EvaluateOn::AnyResult;

  // How long it stays open.
  std::uint64_t open_wait_ns = 5'000'000'000;             ///< 1 ms .. 30 d
  bool backoff = true;                                    ///< enable-exponential-backoff
  std::uint32_t backoff_ppm = 2 * kPpm;                   ///< multiplier, 10^6 .. 10^7
  std::uint64_t max_open_wait_ns = 60'000'000'000;        ///< 0 = none (30 d), else 1 ms .. 30 d
  bool randomized = true;                                 ///< enable-randomized-wait
  std::uint32_t randomized_ppm = 100'000;                 ///< factor, 0..10^6
  OpenEdge open_edge = OpenEdge::Inclusive;
  bool open_on_retry_after = false;
  std::uint64_t max_open_for_ns = 600'000'000'000;        ///< 1 ms .. 30 d

  // Half-open.
  std::uint32_t probes = 5;                               ///< P, 1..64
  HalfOpenRule half_open_rule = HalfOpenRule::Rate;
  std::uint32_t half_open_value = 0;      ///< M of RateOver, k of Successes, 1..P; else 0
  std::uint64_t half_open_max_wait_ns = 0;                ///< 0 = none, else 1 ms .. 30 d
  AfterHalfOpenWait after_half_open_wait = AfterHalfOpenWait::Open;
  bool automatic_half_open = false;
  std::uint64_t probe_timeout_ns = 30'000'000'000;        ///< 1 ms .. 10 min
  OnProbeTimeout on_probe_timeout = OnProbeTimeout::Failure;

  // Outcomes.
  IgnoredResults ignored_results = IgnoredResults::ReturnPermit;
  LateResults late_results = LateResults::Drop;
  bool count_hanging = false;             ///< count-hanging-calls; needs the slow-rate threshold
  std::vector<std::string> record;        ///< classes; with `ignore` at most kMaxClasses
  bool record_given = false;              ///< then what `record` does not name is a success
  std::vector<std::string> ignore;

  // Many processes.
  std::uint32_t min_processes = kMinProcessesAuto;
  Ramp ramp = Ramp::Auto;
  std::array<std::uint8_t, kMaxRampSteps> ramp_percent{25, 50, 100};   ///< rising, 1..100, then 0
  std::uint64_t ramp_ns = 5'000'000'000;                  ///< 1 ms .. 1 h, of all steps together

  BreakerState initial_state = BreakerState::Closed;
  bool enabled = true;                    ///< false: grants everything, records nothing
  std::uint32_t max_instances = 64;       ///< of a pattern, 1..16384
  std::uint64_t idle_ns = 3'600'000'000'000;  ///< of a pattern: age at which an unused one may go
  std::string note;                       ///< at most 256 bytes

  friend bool operator==(const BreakerSettings&, const BreakerSettings&) = default;
};

/// What a block starts from. What a preset requires the operator to say is left 0 or off, so that
/// check() refuses it; required_keys() names those.
BreakerSettings preset(BreakerPreset preset);
/// Keys that must be written under this preset, in the configuration's own spelling.
std::span<const std::string_view> required_keys(BreakerPreset preset) noexcept;
/// The preset a word names; false when there is none.
bool preset_named(std::string_view word, BreakerPreset& out) noexcept;
/// Stable word of a preset.
std::string_view name_of(BreakerPreset preset) noexcept;
/// Slots of a TIME window of this span when `sliding-window-slots` is not written: 10, or one per
/// second under resilience4j (at most kMaxSlots).
std::uint32_t default_slots(BreakerPreset preset, std::uint64_t span_ns) noexcept;
/// Sentinel opens strictly above its ratio: the threshold that says so at or above.
std::uint32_t sentinel_rate_ppm(std::uint32_t ppm) noexcept;

/// Slots a TIME window really has: fewer than written when a slot would be under 100 ms.
std::uint32_t effective_slots(const BreakerSettings& settings) noexcept;
/// Calls below which no rate decides: a COUNT window cuts the written minimum to N.
std::uint32_t effective_minimum(const BreakerSettings& settings) noexcept;
/// True when the name has its one '*'.
bool is_pattern(const BreakerSettings& settings) noexcept;
/// `[A-Za-z0-9*][...]`: a name with exactly one '*' among name characters, not a '*' alone.
bool is_pattern_name(std::string_view text) noexcept;

/// Stable word of a state: "CLOSED", "OPEN", "HALF_OPEN", "FORCED_OPEN", "DISABLED",
/// "METRICS_ONLY".
std::string_view name_of(BreakerState state) noexcept;
/// The state a word names (either spelling of '-' and '_', any case); false when there is none.
bool state_named(std::string_view word, BreakerState& out) noexcept;

/// Ok, or InvalidArgument naming the breaker, the field, its value, the range, and for a
/// contradiction the remedy.
Result<void> check(const BreakerSettings& settings);
/// A remark an operator should see although the settings are valid (0 % opens at the minimum, a
/// minimum no TIME window ever reaches, ...); empty when there is none.
std::string remark(const BreakerSettings& settings);

}  // namespace cutwater::rule
