// SPDX-License-Identifier: Apache-2.0
// What the files of shm/breaker/*.cpp share: a breaker's parts with private bounds, and the one way
// to move its state. Not for anybody else.
#pragma once
#include <cstdint>
#include <span>

#include "base/guard.hpp"
#include "rule/breaker_users.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/breaker/ring.hpp"
#include "shm/pattern_place.hpp"

namespace cutwater::shm {

/// Rounds of enter and settle before the conservative answer (spec memory 14).
inline constexpr int kBreakerRounds = 64;
/// Rule images read in a row before a caller gives up on a stable one.
inline constexpr int kConfigReads = 8;
/// Cells of the time ring of a min-span: ring_cells(kMinSpanSlots).
inline constexpr std::uint64_t kMinSpanCells = 32;

/// A private copy of the configuration, and pointers that were compared with private bounds.
struct BreakerParts {
  const View* view = nullptr;
  std::uint32_t index = 0;
  std::uint64_t current = 0;         ///< `current` the copy was read under
  BreakerHead* head = nullptr;
  BreakerConfig config;
  RingView ring;
  RingView span;                     ///< cells == nullptr: no min-span
  Word16* probes = nullptr;
  std::uint32_t probe_count = 0;
  BreakerUser* users = nullptr;
  std::uint32_t user_count = 0;
  Word16* hanging = nullptr;         ///< cells of calls in flight
  std::uint32_t hanging_count = 0;   ///< 0: not counted

  const rule::BreakerNumbers& numbers() const noexcept { return config.numbers; }
  bool is_time() const noexcept {
    return config.numbers.window_type == static_cast<std::uint8_t>(rule::WindowType::TimeBased);
  }
  TimeShape shape() const noexcept { return {config.numbers.slots, config.numbers.slot_ns}; }
  TimeShape span_shape() const noexcept {
    return {rule::kMinSpanSlots, config.numbers.span_slot_ns};
  }
  rule::OpenEdge edge() const noexcept {
    return static_cast<rule::OpenEdge>(config.numbers.open_edge);
  }
};
/// False: no such breaker any more, no name has this place of a pattern, or its places lie out of
/// bounds (counted as damage).
bool read_parts(const View& view, std::uint32_t index, BreakerParts& out) noexcept;
bool read_parts(const View& view, BreakerRef ref, BreakerParts& out) noexcept;
/// The same of a place of a pattern that no name may have: for the publisher.
bool read_place(const View& view, std::uint32_t index, BreakerParts& out) noexcept;
/// The rules changed since they were read: reads them again. False: gone.
bool refresh_parts(BreakerParts& parts) noexcept;

/// Keeps what the short ways need of them (shm/breaker/kept.hpp), for later calls.
void keep_breaker(const BreakerParts& parts, BreakerLocal* local) noexcept;

inline Word16 state_of(const BreakerParts& parts) noexcept { return load16(&parts.head->state); }

/// Where a move leads; epoch and `previous` follow from what it starts from.
struct NextState {
  rule::BreakerState state = rule::BreakerState::Closed;
  rule::BreakerReason reason = rule::BreakerReason::None;
  std::uint32_t attempts = 0;
  std::int64_t deadline_ns = 0;
  bool ramping = false;
  std::uint32_t permille = 1023;     ///< rate of the window that decided, 1023 unknown
  std::uint64_t calls = 0;
  rule::BreakerWindow window;        ///< CLOSED to OPEN: what decided, for the record of the trip
  std::uint32_t hanging = 0;         ///< of it, calls still out
};
/// B1: one swap of exactly `seen`, epoch + 1, then the event. From an unannounced word it announces
/// instead and returns false; false also when somebody else moved: look again.
bool move_breaker(const BreakerParts& parts, Word16 seen, const NextState& next,
                  std::int64_t now, std::uint32_t row) noexcept;
/// Before a swap of `seen` to `next`: what the window of the epoch to come counts from. False:
/// somebody else moved.
bool begin_windows(const BreakerParts& parts, Word16 seen, rule::BreakerState next) noexcept;
/// Writes the event of a word nobody announced yet, then says so in the word.
void announce_breaker(const BreakerParts& parts, Word16 seen, std::uint32_t row) noexcept;

/// OPEN for the configured wait, at the `attempts`-th opening in a row.
NextState opened(const BreakerParts& parts, const BreakerWord& from, std::uint32_t attempts,
                 rule::BreakerReason reason, std::int64_t now) noexcept;
/// CLOSED after half-open, ramping where that is configured.
NextState closed_again(const BreakerParts& parts, std::int64_t now) noexcept;

/// B2 of CLOSED: judges every outcome not yet judged (COUNT), or the window it makes (TIME).
void settle_count(const BreakerParts& parts, std::uint64_t upto, std::int64_t now,
                  const BreakerCaller& caller) noexcept;
/// An outcome about to be judged.
struct Judged {
  std::uint32_t epoch = 0;
  std::uint32_t turn = 0;            ///< of the window, for the users' counts
  rule::BreakerOutcome last;
  std::int64_t now = 0;              ///< 0 = the clock was not read
};
/// Opens, or tells METRICS_ONLY's would_open, when the rule says so for this window.
void judge_window(const BreakerParts& parts, rule::BreakerWindow window, Judged judged,
                  const BreakerCaller& caller) noexcept;

/// By when a probe must have reported.
std::int64_t probe_deadline(const BreakerParts& parts, std::int64_t now,
                            std::int64_t deadline_ns) noexcept;

/// The step that a passed deadline asks for; false: none is due, or it is HALF_OPEN's or a ramp's.
bool due_step(const BreakerParts& parts, const BreakerWord& word, std::int64_t now,
              NextState& next) noexcept;
/// True when a pattern's name may lose a place in this state (PatternSide::rests): it keeps nobody
/// out, and nothing of it is out but maybe calls in flight.
bool breaker_state_rests(const BreakerParts& parts, const BreakerWord& word) noexcept;
/// look_at_breaker() in HALF_OPEN.
BreakerEntry look_at_probes(const BreakerParts& parts, const BreakerWord& word,
                            std::int64_t now) noexcept;
/// The window of `epoch` at `now`, of either kind; reads only.
rule::BreakerWindow window_now(const BreakerParts& parts, std::uint32_t epoch,
                               std::int64_t now) noexcept;
/// The name at `index` of the image `current` names, with its 0, cut to `size`.
void breaker_name(const View& view, std::uint64_t current, std::uint32_t index, char* out,
                  std::size_t size) noexcept;

/// What this configuration, of an image or a copy, says of its name.
PatternEntry breaker_entry(const View& view, const BreakerConfig& config) noexcept;

/// All its counters together: changes with every use.
std::uint64_t breaker_uses(const View& view, std::uint32_t index) noexcept;
/// Empties every record of its users, the living too: they join anew. For a place that goes to
/// another name.
void forget_users(const BreakerParts& parts) noexcept;

struct ProbeTake {
  enum class Found : std::uint8_t { Taken, EnterAgain, NoneFree } found = Found::NoneFree;
  Word16 ticket;
  std::uint16_t cell = 0;
  std::int64_t earliest_ns = 0;      ///< NoneFree: earliest deadline seen, 0 = none
};
ProbeTake take_probe(const BreakerParts& parts, Word16 seen, const BreakerCaller& caller,
                     std::int64_t now, std::int64_t deadline_ns) noexcept;
/// HALF_OPEN: moves on when the cells decide.
void settle_half_open(const BreakerParts& parts, std::int64_t now, std::uint32_t row) noexcept;
rule::ProbeResults collect_probes(const BreakerParts& parts, std::uint32_t epoch,
                              std::uint32_t& held) noexcept;
/// A probe whose owner is dead or late, made free or spent. True: it was, or somebody was quicker.
enum class Lapsed : std::uint8_t { No, Reclaimed, Expired, Changed };
Lapsed lapse_probe(const BreakerParts& parts, Word16* place, Word16 seen, std::int64_t now,
                   StripeHandle stripe) noexcept;

/// True when the row that a cell names is known to be gone.
bool owner_is_dead(const View& view, const ProbeCell& cell) noexcept;

// Calls in flight (shm/breaker/hanging.cpp).
/// Puts a call just granted in `call.epoch` into a cell; none free, or a caller without a row:
/// counted as untracked.
void track_call(const BreakerParts& parts, const BreakerCaller& caller, std::int64_t now,
                BreakerCall& call) noexcept;
/// Gives its cell back, before its outcome is recorded.
void untrack_call(const BreakerParts& parts, const BreakerCall& call) noexcept;
/// Calls of `epoch` out for longer than the slow threshold: looked up at most once per ms, and anew
/// whenever one of them ended. Cells of the dead are freed.
std::uint32_t hanging_calls(const BreakerParts& parts, std::uint32_t epoch, std::int64_t now,
                            StripeHandle stripe) noexcept;
/// The same, looked up without a write.
std::uint32_t count_hanging(const BreakerParts& parts, std::uint32_t epoch,
                            std::int64_t now) noexcept;
/// Adds them to the counts of the users whose rows hold them.
void add_hanging(const BreakerParts& parts, std::uint32_t epoch, std::int64_t now,
                 std::span<rule::UserCounts> users) noexcept;
/// What was looked up before is not believed any more: a call that it counted has ended, or the
/// dead are to be found now.
void forget_look(const BreakerParts& parts) noexcept;
/// Opens a breaker whose window and calls in flight ask for it.
void judge_hanging(const BreakerParts& parts, std::int64_t now,
                   const BreakerCaller& caller) noexcept;

void count_duration(const View& view, StripeHandle stripe, std::uint32_t index,
                    std::int64_t duration_ns) noexcept;
void count_damage(const View& view) noexcept;
void count_contention(const View& view) noexcept;

}  // namespace cutwater::shm
