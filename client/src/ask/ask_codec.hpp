// SPDX-License-Identifier: Apache-2.0
// The frames of asking, written and read where they are needed: straight into a frame's buffer, out
// of a payload into a Decision, without the message structs of wire/ask_message.hpp in between,
// which would allocate for each key. Same bytes and same rules: a test compares every function here
// with wire::encode() and wire::decode().
// Writers throw std::bad_alloc when the buffer cannot grow; AskSocket's buffers are warm. Readers
// check everything they use: a payload is untrusted. Thread safety: pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <cutwater/decision.hpp>

#include "src/limit_state.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::client {

/// Bytes that the keys of one frame may have; what is over goes into the next frame.
inline constexpr std::size_t kItemsBytes = 16U << 10;

struct AcquireHead {
  std::uint64_t ttl_ns = 0;        ///< 0 = no limit
  std::uint64_t max_wait_ns = 0;
};

/// How many of the first keys go into one frame of at most `max_frame` bytes: one at least, at most
/// wire::kMaxItems, up to the first key that is too long.
std::size_t keys_of_frame(std::span<const std::string_view> keys, std::size_t max_frame) noexcept;
/// ACQUIRE of all these keys. Appends to `frame`, as all writers here do.
void put_acquire(std::string& frame, AcquireHead head, std::string_view limit,
                 std::span<const std::string_view> keys, std::uint64_t cost);
/// One item with a limit of its own.
struct NamedAsk {
  std::string_view limit, key;
  std::uint64_t cost = 1;
};
/// ACQUIRE of one item that was used already.
void put_charge(std::string& frame, AcquireHead head, const NamedAsk& ask);
/// PEEK, and ENTER of limits alone.
void put_peek(std::string& frame, std::span<const NamedAsk> asks);
void put_enter(std::string& frame, AcquireHead head, std::span<const NamedAsk> asks);
/// ENTER of all it may have. Empty names are parts left out.
struct AdmissionAsk {
  std::string_view bulkhead, breaker;
  std::span<const NamedAsk> limits;
  Nanos max_wait{0};
  Nanos call_ns{0};                ///< how long the call may take; 0 = unknown
  bool apart = false;              ///< the place gets a ticket of its own
};
void put_admission(std::string& frame, AcquireHead head, const AdmissionAsk& ask);
/// OUTCOME of one ticket.
void put_outcome(std::string& frame, const wire::OutcomeReport& report);
/// REFUND of one whole charge.
void put_refund(std::string& frame, std::uint32_t request, std::uint32_t item);

/// In DecisionData::n of an ENTER's item: a shadow refused in the set, so it may have no charge.
inline constexpr std::int64_t kPerhapsNotCharged = 1;

/// What a Decision out of an answer remembers for its refund.
struct AskReceipt {
  std::uint32_t request = 0;
  std::uint32_t session = 0;       ///< AskSocket::session_number()
};

/// The decisions of an ACQUIRE's or PEEK's answer into `out`, exactly as many. False: it is not
/// such an answer. A granted charge gets its receipt; item errors become Degraded refusals (an
/// unknown or forbidden name: with a hint, as where a limit is gone), KeyTooLong, InvalidArgument.
/// `cost` is that of every item; `look`: no receipts.
struct DecisionTaking {
  detail::LimitState* state = nullptr;   ///< nullptr: the owners are the caller's to set
  std::span<Decision> out{};
  std::uint64_t cost = 1;
  bool look = false;
  std::int64_t stamp_ns = 0;
};
bool take_decisions(std::string_view payload, const DecisionTaking& taking, AskReceipt receipt);

/// The answer of an ENTER of limits: the verdict, without a receipt, and what each item says by
/// itself, with its receipt. A daemon that tells the verdict alone: each item says that.
struct AllTaking {
  std::span<const NamedAsk> asks;
  Decision verdict;
  std::array<Decision, wire::kMaxEnterItems> each;
  std::size_t count = 0;           ///< of `each`: one for each ask, or none: nothing was decided
  std::size_t index = 0;           ///< of the item that the verdict is of
  std::int64_t stamp_ns = 0;
};
/// The same of an admission that was read.
void take_told(const wire::Admission& told, AskReceipt receipt, AllTaking& taking) noexcept;
bool take_admission(std::string_view payload, AskReceipt receipt, AllTaking& taking);

/// The one pair of a REFUND's answer.
bool take_refund(std::string_view payload, std::uint16_t& code, std::uint64_t& tokens);

}  // namespace cutwater::client
