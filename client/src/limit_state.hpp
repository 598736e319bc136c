// SPDX-License-Identifier: Apache-2.0
// LimitState: what the library keeps of one limit a program asked for by name: where to decide,
// with which secret, on whose counters. Made by Core::limit(), never moved, freed with the Client,
// so a decision touches no allocator and a Decision may point to it (its owner, for the name).
//
// Hot: the first two lines are read by every decision; only `ref` and `plain_current` change after
// it was made (a limit that a reload moved), and they are single words.
// Includes nothing heavier than <atomic>, <chrono> and our own. Thread safety: as marked at each
// member.
#pragma once
#include <atomic>
#include <cstdint>

#include <cutwater/decision.hpp>

#include "shm/limit/bucket.hpp"

namespace cutwater::client {
class DaemonLink;
}

namespace cutwater::detail {

class AskWatcher;
class CalendarRenewal;

/// Index and incarnation of a limit in one word, so that nobody sees half of a change.
constexpr std::uint64_t pack_ref(shm::LimitRef ref) noexcept {
  return std::uint64_t{ref.incarnation} << 32 | ref.index;
}
constexpr shm::LimitRef unpack_ref(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

/// The row of the process table that a Client got, and the process_life() in which it is ours.
struct ClientRow {
  std::uint32_t index = 0;                       ///< 0 = none
  std::uint32_t generation = 0;
  std::uint64_t life = 0;
};

/// No generation of rules has this number.
inline constexpr std::uint64_t kNoCurrent = ~std::uint64_t{0};

/// What a daemon told of a limit when it was first asked for over the socket (RESOLVE); a reload
/// since then is not seen here.
struct ToldLimit {
  std::uint32_t max_waiting = 1024;    ///< callers asleep at once; as usual, where it is not told
  std::uint8_t ip_prefix_v4 = 32, ip_prefix_v6 = 64;
  /// Of a limit that is one plain rate for all keys; 0: it is not.
  std::uint64_t quota = 0;
  std::int64_t window_ns = 0;          ///< in which the quota is there anew
};

/// A private copy of a plain limit's rule, in the shape in which src/known_key.hpp computes with
/// it. Words that racing threads read one by one; `current`, stored last, says of which rules.
struct alignas(64) PlainRule {
  /// Numbers of the rule at or above it: the horizon of a segment is 2^59 ns.
  static constexpr std::uint64_t kMaxElapsed = std::uint64_t{1} << 60;

  std::uint64_t current = kNoCurrent;  ///< of the rules it was copied from; kNoCurrent = none
  std::uint64_t names = 0;             ///< limit index:32 | rule id:16 | up:8 | down:8
  std::uint64_t head = 0;              ///< first eight bytes of an answer that grants
  std::int64_t start = 0;              ///< reading of the clock itself at base_t
  std::uint64_t mult = 0;
  std::int64_t base_t = 0;
  std::int64_t base_n = 0;
  std::int64_t burst = 0;
  std::int64_t floor = 0;
  std::int64_t reach = 0;
  std::uint64_t writer = 0;            ///< process_life() of the thread that writes; 0 = nobody
  // Set before the record is published, never changed.
  const std::uint64_t* current_at = nullptr;   ///< `current` of the rules now
  const std::int64_t* stepped = nullptr;       ///< word of a stepped clock; else CLOCK_BOOTTIME
  Word16* slots = nullptr;
  std::uint64_t slot_count = 0;        ///< 0: never for the short way (the tsc clock)

  static constexpr std::uint32_t index_of(std::uint64_t names) noexcept {
    return static_cast<std::uint32_t>(names);
  }
  static constexpr std::uint16_t rule_of(std::uint64_t names) noexcept {
    return static_cast<std::uint16_t>(names >> 32);
  }
  static constexpr unsigned up_of(std::uint64_t names) noexcept { return names >> 48 & 63; }
  static constexpr unsigned down_of(std::uint64_t names) noexcept { return names >> 56 & 63; }
  static constexpr unsigned f_of(std::uint64_t head) noexcept { return head >> 40 & 63; }
};

struct alignas(64) LimitState {
  DecisionOwner owner;                           ///< first: Decision::limit_name() reads it
  const shm::View* view = nullptr;               ///< of the Client's segment
  const ClientRow* row = nullptr;                ///< of the Client
  std::uint64_t client = 0;                      ///< number of the Client, never used twice
  const std::atomic<std::uint64_t>* life = nullptr;   ///< fork_page().life
  std::atomic<std::uint64_t> ref{0};             ///< pack_ref()
  /// `current` of the rules under which a decision is just a charge; kNoCurrent: decide_closely().
  std::atomic<std::uint64_t> plain_current{kNoCurrent};
  std::uint64_t number = 0;                      ///< of this record; never used twice in a process
  DecidedBy decided_by = DecidedBy::Memory;
  std::atomic<bool> away{false};                 ///< asked through `link` (elsewhere.hpp), for good

  client::DaemonLink* link = nullptr;            ///< of an opened Client; nullptr in memory
  AskWatcher* watcher = nullptr;                 ///< of a watched Client; away then
  shm::LimitSecret secret{};                     ///< of the key hash
  PlainRule plain;                               ///< see src/known_key.hpp

  /// `current` of the rules when the next two were read; kNoCurrent = not yet.
  std::atomic<std::uint64_t> seen_current{kNoCurrent};
  std::atomic<std::uint32_t> lease_tokens{0};    ///< thread-lease of the limit, 0 = off
  /// More than one plain window: overrides, bans, shadow, a calendar ...; ask decide_specially().
  std::atomic<bool> special{false};
  std::atomic<std::uint32_t> max_waiting{0};     ///< callers asleep at once in this process
  /// `current` of the rules in which the name was last looked for in vain.
  std::atomic<std::uint64_t> gone_current{kNoCurrent};
  std::atomic<std::uint64_t> waiting{0};         ///< process_life():32 | callers asleep now:32
  CalendarRenewal* renewal = nullptr;            ///< to be asked before a calendar decides
  char name[64] = {};                            ///< what `owner.name` points to
  ToldLimit told;                                ///< away; set before the record is published
  /// Away: the record of the same name where it was last decided instead; one that lives as long.
  std::atomic<LimitState*> instead{nullptr};
  LimitState* next = nullptr;                    ///< list of the Client; set before it is published
};

/// Rare: reads what is cached of the limit's settings anew, because `current` is another.
void refresh(LimitState& state, std::uint64_t current) noexcept;

/// Rare: finds the name in the current rules. True: `state.ref` is good again.
bool resolve_again(LimitState& state) noexcept;

}  // namespace cutwater::detail
