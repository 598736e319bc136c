// SPDX-License-Identifier: Apache-2.0
// What a Limit does when its record's memory is not (any more) where the limit is decided: the
// client asks over the socket, has no daemon, or its memory was superseded. is_away() is the one
// question the decision path asks; everything else here is rare and out of its way.
//
// A record never changes its memory: threads may stand in the middle of a decision. An away record
// goes on through its link (daemon_link.hpp), which knows where this client decides now: in another
// memory, by a record of its own there; over the socket; by if_absent.
// Thread safety: everything from any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include <cutwater/limit.hpp>

#include "src/limit_state.hpp"

namespace cutwater::detail {

/// What is asked. Wait may sleep (Limit::acquire), Reserve does not. After (Limit::charge) is asked
/// of memory only; without it, it is answered as without a daemon.
enum class AskKind : std::uint8_t { Now, Look, Wait, Reserve, After };

/// True: ask through the functions below and touch no memory of this record.
[[gnu::always_inline]] inline bool is_away(const LimitState& state) noexcept {
  // relaxed: set once, before the record is handed out or for good; a decision that misses it meets
  // a memory that says the same.
  if (state.away.load(std::memory_order_relaxed)) return true;
  return state.link != nullptr && (state.view->current() & shm::kCurrentSupersededBit) != 0;
}

/// `key` is at most kMaxKeyBytes, ask.cost at most kMaxCost; 0 is a look. Fills all of `out`.
void ask_elsewhere(LimitState& state, std::string_view key, const Ask& ask, AskKind kind,
                   Decision& out) noexcept;

/// The same of a record that is not away: Limit's own operation.
void ask_record(LimitState& state, std::string_view key, const Ask& ask, AskKind kind,
                Decision& out) noexcept;

/// The record in whose memory this limit is decided now: `state`, or another one; nullptr while no
/// memory is mapped.
LimitState* record_now(LimitState& state) noexcept;

/// As Limit::acquire_batch; `keys` and `out` are equally long, keys may be too long.
void batch_elsewhere(LimitState& state, std::span<const std::string_view> keys,
                     std::span<Decision> out, std::uint64_t cost) noexcept;

/// True: `decision` was made through a link for this limit; refund_elsewhere() undoes it.
bool made_elsewhere(const LimitState& state, const DecisionData& decision) noexcept;
Result<std::uint64_t> refund_elsewhere(LimitState& state, Decision& decision);

/// The bytes of a key with a handle, shared by the copies: to ask for it over the socket, and for
/// patterns that a reload may bring. In this process's memory alone; cleared with the last copy.
struct KeyText {
  std::atomic<std::uint64_t> users;
  std::uint32_t length;
  char bytes[];

  /// nullptr without memory. `key` is at most kMaxKeyBytes.
  static KeyText* make(std::string_view key) noexcept;
};
/// Its bytes; empty without one.
inline std::string_view bytes_of(const KeyText* text) noexcept {
  return text == nullptr ? std::string_view{} : std::string_view{text->bytes, text->length};
}
/// One user more, and one less; nullptr is nobody's.
KeyText* share(KeyText* text) noexcept;
void drop(KeyText* text) noexcept;

/// As ask_elsewhere() for a handle. One made while its limit was mapped has no text: it goes on in
/// every memory of the same secret (a superseding one has it), else it is answered Degraded.
void key_elsewhere(LimitState& state, shm::KeyHash hash, const KeyText* text, std::uint64_t cost,
                   AskKind kind, Decision& out) noexcept;

}  // namespace cutwater::detail
