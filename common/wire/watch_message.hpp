// SPDX-License-Identifier: Apache-2.0
// WATCH: tell me what happens; EVENT: the daemon's push. How a slow watcher's events are coalesced
// is in event_queue.hpp. Rules of reading and writing: message.hpp. Thread safety: values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/message.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kMaxEvents = 256;          ///< in one EVENT
inline constexpr std::uint32_t kMaxPending = 4096;      ///< unsent events of one watch
inline constexpr std::size_t kMaxPattern = 64;

/// Kinds of events, as bits of Watch::kinds; an event has one of them (or one of a newer daemon).
inline constexpr std::uint32_t kEventTransition = 1;
inline constexpr std::uint32_t kEventTrip = 2;
inline constexpr std::uint32_t kEventManual = 4;
inline constexpr std::uint32_t kEventConfig = 8;
inline constexpr std::uint32_t kEventClient = 16;
inline constexpr std::uint32_t kEventPermit = 32;       ///< expired, reclaimed, stale
inline constexpr std::uint32_t kEventOverflow = 64;
inline constexpr std::uint32_t kEventDegraded = 128;
inline constexpr std::uint32_t kEventCluster = 256;
inline constexpr std::uint32_t kKnownEventKinds = 511;

struct Watch {
  static constexpr MessageType kType = MessageType::Watch;
  std::uint32_t kinds = 0;          ///< bits; 0 ends all watches of the session
  std::string pattern;              ///< names it is for: `*` stands for any bytes; "" = all
  std::uint64_t from_seq = 0;       ///< first event wanted; 0 = from now
  std::uint32_t max_pending = 256;  ///< 1..kMaxPending
  bool operator==(const Watch&) const = default;
};

struct WatchAnswer {
  static constexpr MessageType kType = MessageType::WatchAnswer;
  std::uint32_t watch = 0;      ///< EVENTs carry it; 0: all watches ended
  std::uint64_t next_seq = 0;   ///< of the next event of the daemon
  bool operator==(const WatchAnswer&) const = default;
};

struct EventRow {
  std::uint64_t seq = 0;
  std::uint64_t clock_ns = 0;   ///< the segment's clock
  std::uint32_t kind = 0;
  std::string name;             ///< a name or a pattern's; "" when it is about none
  std::uint64_t epoch = 0;      ///< of a breaker: a transition is shown once per (name, epoch)
  Value data = Value(Value::Map{});
  bool operator==(const EventRow&) const = default;
};

struct Event {
  static constexpr MessageType kType = MessageType::Event;
  std::uint32_t watch = 0;
  std::vector<EventRow> events;  ///< 1..kMaxEvents; 0 when only `missed` is told
  std::uint64_t missed = 0;      ///< events before these that were coalesced or dropped
  bool operator==(const Event&) const = default;
};

Result<std::string> encode(const Watch& message);
Result<std::string> encode(const WatchAnswer& message);
Result<std::string> encode(const Event& message);
template <> Decoded<Watch> decode<Watch>(std::string_view payload);
template <> Decoded<WatchAnswer> decode<WatchAnswer>(std::string_view payload);
template <> Decoded<Event> decode<Event>(std::string_view payload);

/// True when `name` is one of those `pattern` stands for (Watch::pattern).
bool matches_pattern(std::string_view pattern, std::string_view name) noexcept;

}  // namespace cutwater::wire
