// SPDX-License-Identifier: Apache-2.0
#include "shm/event_log.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "base/crc32c.hpp"
#include "base/guard.hpp"
#include "base/sync_point.hpp"

namespace cutwater::shm {
namespace {

constexpr std::size_t kRecordWords = sizeof(EventRecord) / sizeof(std::uint64_t);
constexpr std::size_t kSummedFrom = offsetof(EventRecord, t_ns);
constexpr std::size_t kSummedTo = offsetof(EventRecord, check);

/// The number is part of the sum: fields of one event under the number of another do not fit.
std::uint32_t check_of(const EventRecord& record, std::uint64_t number_word) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  const std::uint32_t sum = crc32c(&number_word, sizeof number_word);
  return crc32c(bytes + kSummedFrom, kSummedTo - kSummedFrom, sum);
}

EventRecord pack(const Event& event, std::int64_t t_ns, std::uint64_t number_word) noexcept {
  EventRecord record{};
  record.t_ns = t_ns;
  record.object = event.object;
  record.epoch = event.epoch;
  record.kind = static_cast<std::uint8_t>(event.kind);
  record.from = event.from;
  record.to = event.to;
  record.reason = event.reason;
  record.row = event.row;
  std::memcpy(record.payload, event.text, strnlen(event.text, sizeof record.payload));
  record.check = check_of(record, number_word);
  return record;
}

Event unpack(const EventRecord& record) noexcept {
  Event event;
  event.number = record.number - 1;
  event.t_ns = record.t_ns;
  event.kind = static_cast<EventKind>(record.kind);
  event.object = record.object;
  event.epoch = record.epoch;
  event.from = record.from;
  event.to = record.to;
  event.reason = record.reason;
  event.row = record.row;
  std::memcpy(event.text, record.payload, sizeof record.payload);
  return event;
}

enum class Seen { Whole, Torn, Unstamped, Overwritten };

/// Reads the record that event `number` would be in.
Seen look(const View& view, std::uint64_t number, EventRecord& out) noexcept {
  const EventRecord& record = view.events[number % view.event_count];
  const auto* place = reinterpret_cast<const std::uint64_t*>(&record);
  // acquire: pairs with the release of the number, so the fields read after it are this event's or
  // those of a late writer, which the checksum tells.
  const std::uint64_t before = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (before == 0 || before < number + 1) return Seen::Unstamped;
  if (before > number + 1) return Seen::Overwritten;
  std::uint64_t words[kRecordWords] = {before};
  // acquire: none of them may move past the second look at the number.
  for (std::size_t i = 1; i < kRecordWords; ++i) {
    words[i] = __atomic_load_n(place + i, __ATOMIC_ACQUIRE);
  }
  std::memcpy(&out, words, sizeof out);
  if (__atomic_load_n(place, __ATOMIC_RELAXED) != before) return Seen::Torn;
  if (guarded(Guard::EventChecksum) && out.check != check_of(out, before)) return Seen::Torn;
  return Seen::Whole;
}

/// Up to which number unstamped events are given up, looking from the unstamped `number` on: a
/// later one tells that their writers have had their time, stamped more than 10 ms ago, or so many
/// numbers ahead that no writer is that slow. `number` itself: none is, its writer may live. The
/// whole rest is looked at, as a memory that took another's place may begin with a long gap.
std::uint64_t given_up(const View& view, std::uint64_t number, std::uint64_t end) noexcept {
  // Held inside the horizon: a stepped clock is a shared word.
  const std::int64_t now = std::clamp<std::int64_t>(view.clock.now(), 0, kHorizonNs);
  for (std::uint64_t later = number + 1; later < end; ++later) {
    EventRecord record;
    if (look(view, later, record) != Seen::Whole) continue;
    if (record.t_ns <= now - kUnstampedPatienceNs) return later;
    if (later - number >= kUnstampedAhead) return later - kUnstampedAhead + 1;
  }
  return number;
}

/// What names an event once: (kind, object, epoch).
using EventName = std::tuple<EventKind, std::uint32_t, std::uint32_t>;

}  // namespace

std::string_view name_of(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::None: return "none";
    case EventKind::DaemonStarted: return "daemon_started";
    case EventKind::DaemonTookOver: return "daemon_took_over";
    case EventKind::DaemonStopped: return "daemon_stopped";
    case EventKind::ConfigReloaded: return "config_reloaded";
    case EventKind::ConfigRefused: return "config_refused";
    case EventKind::ClientAttached: return "client_attached";
    case EventKind::ClientGone: return "client_gone";
    case EventKind::ClientRefused: return "client_refused";
    case EventKind::LimitReset: return "limit_reset";
    case EventKind::TableFull: return "table_full";
    case EventKind::Damage: return "damage";
    case EventKind::BreakerMoved: return "breaker_moved";
    case EventKind::BreakerWouldOpen: return "breaker_would_open";
    case EventKind::BreakerProbeExpired: return "breaker_probe_expired";
    case EventKind::BreakerReclaimed: return "breaker_reclaimed";
    case EventKind::BreakerLocalFault: return "breaker_local_fault";
    case EventKind::BreakerFlapping: return "breaker_flapping";
    case EventKind::PlaceReclaimed: return "place_reclaimed";
    case EventKind::PlaceRevoked: return "place_revoked";
    case EventKind::ManualAct: return "manual_act";
    case EventKind::RightsChanged: return "rights_changed";
    case EventKind::SlowReader: return "slow_reader";
  }
  return "unknown";
}

std::uint64_t append_event(const View& view, const Event& event) noexcept {
  // relaxed: the number is only taken; what it names is published below.
  const std::uint64_t number =
      __atomic_fetch_add(&view.stats_control->next_event, 1, __ATOMIC_RELAXED);
  const std::uint64_t number_word = number + 1;
  EventRecord& place = view.events[number % view.event_count];
  auto* to = reinterpret_cast<std::uint64_t*>(&place);
  // A ring's length behind: the record belongs to somebody newer, this event is lost anyway.
  if (__atomic_load_n(to, __ATOMIC_RELAXED) > number_word) return number;

  const EventRecord record = pack(event, view.clock.now(), number_word);
  std::uint64_t words[kRecordWords];
  std::memcpy(words, &record, sizeof words);
  // A swap, so that no field below is seen before the number is gone (a locked step orders stores).
  const std::uint64_t first = guarded(Guard::EventNumberLast) ? 0 : number_word;
  __atomic_exchange_n(to, first, __ATOMIC_SEQ_CST);
  CUTWATER_SYNC_POINT("event_log.number_cleared");
  // relaxed: the number published after them carries them.
  for (std::size_t i = 1; i < kRecordWords; ++i) {
    __atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
    if (i == kRecordWords / 2) CUTWATER_SYNC_POINT("event_log.half_written");
  }
  CUTWATER_SYNC_POINT("event_log.before_number");
  // PUBLISHES the record to look(): pairs with its acquire.
  if (guarded(Guard::EventNumberLast)) __atomic_store_n(to, number_word, __ATOMIC_RELEASE);
  return number;
}

EventPage read_events(const View& view, std::uint64_t from, std::uint32_t max) {
  EventPage page;
  // acquire: pairs with nothing of its own; it keeps the records from being read before the bound.
  const std::uint64_t end = __atomic_load_n(&view.stats_control->next_event, __ATOMIC_ACQUIRE);
  page.next = std::min(from, end);
  if (end - page.next > view.event_count) {
    page.lost = end - view.event_count - page.next;
    page.next = end - view.event_count;
  }
  max = std::min(max, view.event_count);
  std::set<EventName> seen_names;
  std::uint64_t given = page.next;   // unstamped events below it are given up
  // At most one ring's length of numbers, whatever the shared word says.
  while (page.next < end && page.events.size() < max) {
    EventRecord record;
    const Seen seen = look(view, page.next, record);
    if (seen == Seen::Unstamped && page.next >= given) given = given_up(view, page.next, end);
    if (seen == Seen::Unstamped && page.next >= given) break;
    ++page.next;
    if (seen == Seen::Whole) {
      const Event event = unpack(record);
      const bool repeat =
          event.epoch != 0 && !seen_names.emplace(event.kind, event.object, event.epoch).second;
      if (!repeat) page.events.push_back(event);
    } else {
      ++page.lost;
    }
  }
  return page;
}

void copy_events(const View& from, const View& to) noexcept {
  const std::uint64_t end = __atomic_load_n(&from.stats_control->next_event, __ATOMIC_ACQUIRE);
  const std::uint64_t most = std::min({end, std::uint64_t{from.event_count},
                                       std::uint64_t{to.event_count}});
  for (std::uint64_t number = end - most; number != end; ++number) {
    EventRecord record;
    // The checksum covers the number and no place, so a record is whole in a ring of any size.
    if (look(from, number, record) == Seen::Whole) to.events[number % to.event_count] = record;
  }
  to.stats_control->next_event = end;
}

std::string check_event(const View& view, std::uint32_t index) {
  const std::uint64_t word = __atomic_load_n(&view.events[index].number, __ATOMIC_ACQUIRE);
  if (word == 0) return "";   // never used, or being written
  if ((word - 1) % view.event_count != index) return "holds the number of another record";
  if (word > __atomic_load_n(&view.stats_control->next_event, __ATOMIC_ACQUIRE)) {
    return "holds a number that was never given out";
  }
  EventRecord record;
  return look(view, word - 1, record) == Seen::Torn ? "its checksum is wrong" : "";
}

}  // namespace cutwater::shm
