// SPDX-License-Identifier: Apache-2.0
// One conversation about a limit over an AskSocket: write a frame, wait for its answer, read it.
// Each function ends by the moment it is given and says how; when it is not Answered, `out` is
// untouched. Busy is waited out and asked again while there is time.
// Thread safety: everything from any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/limit.hpp>

#include "src/ask/ask_codec.hpp"
#include "src/ask/ask_socket.hpp"
#include "src/limit_state.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::client {

/// What is asked of every key alike.
struct Wanted {
  std::uint64_t cost = 1;
  Nanos max_wait{0};
  bool look = false;
  bool after_the_fact = false;   ///< Limit::charge(); of one key
};

/// ACQUIRE, or PEEK for a look, of one frame's worth of keys. How many keys were answered, from the
/// front, is told in `done`; they are the first elements of `out`. Keys are at most kMaxKeyBytes.
AskEnd ask_decisions(AskSocket& socket, detail::LimitState& state,
                     std::span<const std::string_view> keys, const Wanted& wanted,
                     std::span<Decision> out, std::size_t& done, std::int64_t deadline_ns) noexcept;

/// ENTER of taking.asks, 1..8 limits, all or none; the rest of `taking` is the answer. The owners
/// are the caller's to set.
AskEnd ask_enter(AskSocket& socket, AllTaking& taking, std::int64_t deadline_ns) noexcept;
/// ENTER of all it may have: what came of it, and the session whose tickets it has. Given up, it is
/// cancelled.
struct AdmissionTold {
  wire::Admission admission;
  std::uint32_t request = 0;
  std::uint32_t session = 0;
  std::int64_t stamp_ns = 0;     ///< segment time of the answer, as far as it is known here
};
AskEnd ask_admission(AskSocket& socket, const AdmissionAsk& ask, AdmissionTold& told,
                     std::int64_t deadline_ns) noexcept;
/// PRESENT: the tickets of a former session as they are in this one.
AskEnd ask_present(AskSocket& socket, const wire::Present& present,
                   std::vector<std::string>& tickets, std::uint32_t& session,
                   std::int64_t deadline_ns) noexcept;
/// OUTCOME of one ticket, posted: true when it is on its way in that session.
bool post_outcome(AskSocket& socket, const wire::OutcomeReport& report, bool holds,
                  std::uint32_t session) noexcept;

/// PEEK of several limits, each by itself.
AskEnd ask_peek(AskSocket& socket, std::span<const NamedAsk> asks, std::span<Decision> out,
                std::int64_t deadline_ns) noexcept;

struct RefundTold {
  std::uint16_t code = 0;        ///< 0, or a wire::ItemError
  std::uint64_t tokens = 0;
};
/// REFUND of what one Decision holds.
AskEnd ask_refund(AskSocket& socket, const DecisionData& data, RefundTold& told,
                  std::int64_t deadline_ns) noexcept;

/// RESOLVE of one name.
AskEnd ask_resolve(AskSocket& socket, wire::NameKind kind, std::string_view name,
                   wire::Resolved& told, std::int64_t deadline_ns) noexcept;

/// PING: the daemon's clock.
AskEnd ask_clock(AskSocket& socket, std::int64_t& clock_ns, std::int64_t deadline_ns) noexcept;

/// Sleeps until a place in line begins, `starts_in` behind an answer that just came; on a stepped
/// clock by looking at it, until the daemon is gone.
void sleep_for_place(AskSocket& socket, Nanos starts_in, Nanos ask_timeout) noexcept;

}  // namespace cutwater::client
