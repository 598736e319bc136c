// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/trips.hpp"

#include <algorithm>
#include <cstring>

#include "base/crc32c.hpp"
#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/breaker/story.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

constexpr std::size_t kTripWords = sizeof(TripRecord) / sizeof(std::uint64_t);
constexpr std::size_t kSummedFrom = offsetof(TripRecord, t_ns);
constexpr std::size_t kSummedTo = offsetof(TripRecord, check);
constexpr std::uint32_t kEpochLow = 0xff'ffff;
constexpr std::uint64_t kEntryFailed = 1, kEntrySlow = 2;

/// The number is part of the sum: one trip's fields under another's number do not fit.
std::uint32_t check_of(const TripRecord& record, std::uint64_t number_word) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  const std::uint32_t sum = crc32c(&number_word, sizeof number_word);
  return crc32c(bytes + kSummedFrom, kSummedTo - kSummedFrom, sum);
}

/// Counts one failure or slow call for its row; rows beyond kTripRows are left out.
void add_row(TripRecord& trip, std::uint32_t row, bool failed, bool slow) noexcept {
  std::uint8_t at = 0;
  while (at < trip.row_count && trip.rows[at].row != row) ++at;
  if (at == kTripRows) return;
  if (at == trip.row_count) trip.rows[trip.row_count++] = {row, 0, 0, 0};
  trip.rows[at].failures += failed;
  trip.rows[at].slow += slow;
}

/// The last failures and slow calls of the epoch before `trip.epoch`, newest first, no more than
/// the window had.
void collect_recent(const RecentFailures& recent, TripRecord& trip) noexcept {
  const std::uint64_t next = __atomic_load_n(&recent.next, __ATOMIC_RELAXED);
  const std::uint64_t most = std::min<std::uint64_t>(
      {next, kRecentFailures, std::max(trip.failures + trip.slow, std::uint64_t{1})});
  for (std::uint64_t i = 1; i <= most; ++i) {
    const std::uint64_t entry =
        __atomic_load_n(&recent.entry[(next - i) % kRecentFailures], __ATOMIC_RELAXED);
    const bool failed = (entry & kEntryFailed) != 0, slow = (entry & kEntrySlow) != 0;
    const std::uint32_t epoch = static_cast<std::uint32_t>(entry >> 24) & kEpochLow;
    if ((!failed && !slow) || epoch != ((trip.epoch - 1) & kEpochLow)) continue;
    ++trip.looked_at;
    if (failed) ++trip.by_class[(entry >> 16 & 0xff) % kBreakerClasses];
    add_row(trip, static_cast<std::uint32_t>(entry >> 48), failed, slow);
  }
}

void name_rows(const View& view, TripRecord& trip) noexcept {
  for (std::uint8_t i = 0; i < trip.row_count; ++i) {
    RowInfo info;
    if (trip.rows[i].row != 0 && read_row(view, trip.rows[i].row, info)) {
      trip.rows[i].pid = info.pid;
    }
  }
  std::sort(trip.rows, trip.rows + trip.row_count, [](const TripRow& a, const TripRow& b) {
    if (a.failures != b.failures) return a.failures > b.failures;
    return a.slow != b.slow ? a.slow > b.slow : a.row < b.row;
  });
}

void tell_durations(const View& view, std::uint32_t index, TripRecord& trip) noexcept {
  DurationFigures total, minute;
  read_durations(view, index, total, minute);
  const bool recent = minute.calls != 0;
  const DurationFigures& of = recent ? minute : total;
  trip.durations = static_cast<std::uint32_t>(std::min<std::uint64_t>(of.calls, 0xffff'ffff));
  trip.p50_ns = of.p50_ns;
  trip.p99_ns = of.p99_ns;
  trip.max_ns = of.max_ns;
  trip.durations_since_ns = recent ? trip.t_ns - of.span_ns : 0;
}

TripRecord make_trip(const BreakerParts& parts, const TripFacts& facts) noexcept {
  TripRecord trip{};
  trip.t_ns = facts.now_ns;
  trip.object = parts.index;
  trip.incarnation = parts.config.incarnation;
  trip.epoch = facts.epoch;
  trip.from = static_cast<std::uint8_t>(facts.from);
  trip.reason = static_cast<std::uint8_t>(facts.reason);
  trip.attempts = static_cast<std::uint8_t>(std::min(facts.attempts, 255u));
  trip.until_ns = facts.until_ns;
  trip.calls = facts.window.calls;
  trip.failures = facts.window.failures;
  trip.slow = facts.window.slow;
  trip.run = facts.window.run;
  trip.hanging = facts.hanging;
  trip.numbers = parts.numbers();
  breaker_name(*parts.view, parts.current, parts.index, trip.name, sizeof trip.name);
  collect_recent(parts.view->stories[parts.index].recent, trip);
  name_rows(*parts.view, trip);
  tell_durations(*parts.view, parts.index, trip);
  return trip;
}

void store_trip(const View& view, TripRecord& trip) noexcept {
  // relaxed: the number is only taken; what it names is published below.
  const std::uint64_t number =
      __atomic_fetch_add(&view.stats_control->next_trip, 1, __ATOMIC_RELAXED);
  const std::uint64_t number_word = number + 1;
  auto* to = reinterpret_cast<std::uint64_t*>(&view.trips[number % view.trip_count]);
  // A ring's length behind: the record belongs to somebody newer.
  if (__atomic_load_n(to, __ATOMIC_RELAXED) > number_word) return;
  trip.check = check_of(trip, number_word);
  std::uint64_t words[kTripWords];
  std::memcpy(words, &trip, sizeof words);
  // A swap, so that no field below is seen before the number is gone (a locked step orders stores).
  __atomic_exchange_n(to, std::uint64_t{0}, __ATOMIC_SEQ_CST);
  // relaxed: the number published after them carries them.
  for (std::size_t i = 1; i < kTripWords; ++i) {
    __atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
    if (i == kTripWords / 2) CUTWATER_SYNC_POINT("trip.half_written");
  }
  // PUBLISHES the record to look_at_trip(): pairs with its acquire.
  __atomic_store_n(to, number_word, __ATOMIC_RELEASE);
}

/// True: `out` is the whole record at `place`, and the number in it belongs there.
bool look_at_trip(const View& view, std::uint32_t place, TripRecord& out) noexcept {
  const auto* from = reinterpret_cast<const std::uint64_t*>(view.trips + place);
  // acquire: pairs with the release of the number.
  std::uint64_t words[kTripWords] = {__atomic_load_n(from, __ATOMIC_ACQUIRE)};
  if (words[0] == 0 || (words[0] - 1) % view.trip_count != place) return false;
  // acquire: none of them may move past the second look at the number.
  for (std::size_t i = 1; i < kTripWords; ++i) {
    words[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
  }
  std::memcpy(&out, words, sizeof out);
  return __atomic_load_n(from, __ATOMIC_RELAXED) == words[0] &&
         out.check == check_of(out, words[0]);
}

BreakerTrip unpack(const TripRecord& record) {
  BreakerTrip trip;
  trip.number = record.number - 1;
  trip.name.assign(record.name, strnlen(record.name, sizeof record.name));
  trip.index = record.object;
  trip.incarnation = record.incarnation;
  trip.t_ns = record.t_ns;
  trip.until_ns = record.until_ns;
  trip.epoch = record.epoch;
  trip.attempts = record.attempts;
  trip.from = static_cast<rule::BreakerState>(record.from);
  trip.reason = static_cast<rule::BreakerReason>(record.reason);
  trip.window = {record.calls, record.failures, record.slow, record.run};
  trip.hanging = record.hanging;
  trip.looked_at = record.looked_at;
  for (std::size_t i = 0; i < kBreakerClasses; ++i) {
    if (record.by_class[i] == 0) continue;
    trip.classes.push_back({rule::counter_name(static_cast<std::uint8_t>(i)), record.by_class[i]});
  }
  std::stable_sort(trip.classes.begin(), trip.classes.end(),
                   [](const auto& a, const auto& b) { return a.failures > b.failures; });
  trip.contributors.assign(record.rows,
                           record.rows + std::min<std::size_t>(record.row_count, kTripRows));
  trip.durations = record.durations;
  trip.p50_ns = record.p50_ns;
  trip.p99_ns = record.p99_ns;
  trip.max_ns = record.max_ns;
  trip.durations_since_ns = record.durations_since_ns;
  trip.numbers = record.numbers;
  return trip;
}

}  // namespace

void note_failure(const View& view, std::uint32_t index, std::uint32_t epoch, std::uint32_t row,
                  std::uint8_t failure_class, rule::BreakerOutcome outcome) noexcept {
  if (index >= view.breaker_count || (!outcome.failed && !outcome.slow)) return;
  RecentFailures& recent = view.stories[index].recent;
  const std::uint64_t entry = std::uint64_t{row & 0xffff} << 48 |
                              std::uint64_t{epoch & kEpochLow} << 24 |
                              std::uint64_t{failure_class % kBreakerClasses} << 16 |
                              (outcome.slow ? kEntrySlow : 0) | (outcome.failed ? kEntryFailed : 0);
  // relaxed: a sketch; an entry carries its whole meaning.
  const std::uint64_t at = __atomic_fetch_add(&recent.next, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&recent.entry[at % kRecentFailures], entry, __ATOMIC_RELAXED);
}

void record_trip(const View& view, std::uint32_t index, const TripFacts& facts) noexcept {
  BreakerParts parts;
  if (view.trip_count == 0 || !read_parts(view, index, parts)) return;
  TripRecord trip = make_trip(parts, facts);
  store_trip(view, trip);
}

std::vector<BreakerTrip> read_trips(const View& view, std::string_view name, std::size_t most) {
  std::vector<BreakerTrip> trips;
  for (std::uint32_t place = 0; place < view.trip_count; ++place) {
    TripRecord record;
    if (!look_at_trip(view, place, record)) continue;
    if (!name.empty() && name != std::string_view(record.name, strnlen(record.name, 64))) continue;
    trips.push_back(unpack(record));
  }
  std::sort(trips.begin(), trips.end(),
            [](const BreakerTrip& a, const BreakerTrip& b) { return a.number > b.number; });
  if (trips.size() > most) trips.resize(most);
  return trips;
}

void copy_trips(const View& from, const View& to) noexcept {
  to.stats_control->next_trip = __atomic_load_n(&from.stats_control->next_trip, __ATOMIC_RELAXED);
  for (std::uint32_t place = 0; place < from.trip_count && to.trip_count != 0; ++place) {
    TripRecord record;
    if (!look_at_trip(from, place, record)) continue;
    TripRecord& there = to.trips[(record.number - 1) % to.trip_count];
    if (there.number < record.number) there = record;
  }
}

std::string check_trip(const View& view, std::uint32_t index) {
  const std::uint64_t word = __atomic_load_n(&view.trips[index].number, __ATOMIC_ACQUIRE);
  if (word == 0) return "";   // never used, or being written
  if ((word - 1) % view.trip_count != index) return "holds the number of another record";
  if (word > __atomic_load_n(&view.stats_control->next_trip, __ATOMIC_ACQUIRE)) {
    return "holds a number that was never given out";
  }
  TripRecord record;
  if (look_at_trip(view, index, record)) return "";
  const bool same = __atomic_load_n(&view.trips[index].number, __ATOMIC_ACQUIRE) == word;
  return same ? "its checksum is wrong" : "";
}

}  // namespace cutwater::shm
