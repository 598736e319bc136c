// SPDX-License-Identifier: Apache-2.0
#include "shm/bulkhead/publisher.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/guard.hpp"
#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm {
namespace {

std::uint32_t records_wanted(const rule::BulkheadSettings& settings) noexcept {
  return settings.max_wait_ns == 0 ? 0 : settings.max_waiting;
}

/// True when the image names runs of a bulkhead that was taken out.
bool keeps_of_the_removed(const View& view, const std::uint8_t* image) noexcept {
  const auto* configs = reinterpret_cast<const BulkheadConfig*>(image +
                                                                view.image_bulkheads_offset);
  return std::any_of(configs, configs + view.bulkhead_count, [](const BulkheadConfig& c) {
    return c.used == 0 && total_of(c.cells) + total_of(c.records) != 0;
  });
}

Error too_many(std::uint64_t needed, const std::string& what, std::uint64_t room,
               const char* setting) {
  return {Errc::InvalidArgument, std::to_string(needed) + " " + what +
                                     ", but memory was reserved for " + std::to_string(room) +
                                     "; set capacity." + setting + " to at least " +
                                     std::to_string(needed) + " and restart"};
}

}  // namespace

BulkheadConfig& BulkheadPublisher::config(std::uint32_t index) const noexcept {
  return reinterpret_cast<BulkheadConfig*>(image_ + view_.image_bulkheads_offset)[index];
}
NameRecord& BulkheadPublisher::name(std::uint32_t index) noexcept {
  return reinterpret_cast<NameRecord*>(image_ + view_.image_bulkhead_names_offset)[index];
}
std::string_view BulkheadPublisher::name_at(std::uint32_t index) noexcept {
  return {name(index).text, std::min<std::size_t>(name(index).length, sizeof(NameRecord::text))};
}

Result<void> BulkheadPublisher::check(const std::vector<rule::BulkheadSettings>& bulkheads) const {
  std::uint64_t entries = 0, places = 0, records = 0;
  for (const rule::BulkheadSettings& settings : bulkheads) {
    if (auto fine = rule::check(settings); !fine) return fine;
    entries += entries_of(settings);
    places += entries_of(settings) * settings.max_concurrent;
    records += entries_of(settings) * records_wanted(settings);
  }
  if (auto fine = check_names("bulkhead", bulkheads); !fine) return fine;
  const std::string widest = widest_pattern(bulkheads);
  if (entries > view_.bulkhead_count) {
    return too_many(entries, "bulkheads" + widest, view_.bulkhead_count, "bulkheads");
  }
  if (places > view_.bulkhead_cell_count) {
    return too_many(places, "places of bulkheads" + widest, view_.bulkhead_cell_count,
                    "bulkhead-cells");
  }
  if (records > view_.waiter_count) {
    return too_many(records, "calls in line at bulkheads" + widest, view_.waiter_count, "waiters");
  }
  return {};
}

Result<void> BulkheadPublisher::apply(std::uint8_t* image,
                                      const std::vector<rule::BulkheadSettings>& bulkheads,
                                      std::int64_t now) {
  image_ = image;
  now_ = now;
  for (auto& gaps : gaps_) gaps.reset();
  resting_next_ = resting_;
  resting_index_next_ = resting_index_;
  if (auto fine = check(bulkheads); !fine) return fine;
  find_resting(now);
  // The image says so already, and nothing waits to be given back: most reloads are about others.
  const bool as_it_is = !settings_.empty() && bulkheads == settings_ && given_up_.empty() &&
                        resting_next_.empty() && resting_index_next_.empty();
  if (as_it_is && !settle_due(image) && !keeps_of_the_removed(view_, image)) return {};
  let_go_of_the_removed();
  const std::vector<Wanted> all = expand_patterns(bulkheads);
  std::unordered_set<std::string_view> wanted;
  for (const Wanted& one : all) wanted.insert(one.settings.name);
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    if (config(i).used != 0 && wanted.count(name_at(i)) == 0) remove(i, now);
  }
  find_names();
  for (const Wanted& one : all) {
    const std::uint32_t index = names_.index_of(one.settings.name);
    auto done = index == EntryNames::kNone ? add(one, now) : write(index, one.settings, now);
    if (!done) return done;
  }
  make_room();
  return {};
}

/// I1: the higher incarnation frees the place, by the swap of `current`.
void BulkheadPublisher::make_room() {
  const BulkheadSide side(view_);
  for (const PlaceRef& place : given_up_) {
    if (place.index >= view_.bulkhead_count) continue;
    BulkheadConfig& c = config(place.index);
    const bool same = c.used != 0 && c.kind == kInstanceEntry && c.incarnation == place.incarnation;
    if (!same || !side.rests(place.index)) continue;
    ++c.incarnation;
    Word16 holding = load16(&view_.bulkheads[place.index].holding);
    while (!cas16(&view_.bulkheads[place.index].holding, holding, {})) {}
  }
}

void BulkheadPublisher::committed(const std::vector<rule::BulkheadSettings>& bulkheads) {
  settings_ = bulkheads;
  given_up_.clear();
  resting_ = std::move(resting_next_);
  resting_index_ = std::move(resting_index_next_);
  // A limit that was raised: those in line get what is free now.
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    if (bulkhead_needs_tick(view_, i)) {
      static_cast<void>(tick_bulkhead(view_, i, shared_stripe(view_)));
    }
  }
}

bool BulkheadPublisher::settle_due(const std::uint8_t* image) const noexcept {
  const auto* configs = reinterpret_cast<const BulkheadConfig*>(image +
                                                                view_.image_bulkheads_offset);
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    const BulkheadConfig& c = configs[i];
    if (c.used == 0) continue;
    const std::uint32_t cells = total_of(c.cells), records = total_of(c.records);
    const std::uint32_t line = c.max_wait_ns == 0 ? 0 : c.max_waiting;
    if (cells > c.limit && drained_to(c.cells, Pool::Cells, c.limit) < cells) return true;
    if (records > line && drained_to(c.records, Pool::Records, line) < records) return true;
  }
  return false;
}

/// What rested long enough is forgotten, so that the lists stay as short as what rests.
void BulkheadPublisher::find_resting(std::int64_t now) {
  const auto over = [now](const auto& r) { return r.until <= now; };
  std::erase_if(resting_next_, over);
  std::erase_if(resting_index_next_, over);
  index_rests_.assign(view_.bulkhead_count, false);
  for (const RestingIndex& r : resting_index_next_) {
    if (r.index < index_rests_.size()) index_rests_[r.index] = true;
  }
  resting_of_.clear();
  for (std::size_t i = 0; i < resting_next_.size(); ++i) {
    resting_of_.emplace(resting_next_[i].index, i);
  }
}

/// What rests, or has its runs still, serves only the name that had it.
void BulkheadPublisher::find_names() {
  names_.begin(view_.bulkhead_count);
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    using Free = EntryNames::Free;
    const BulkheadConfig& c = config(i);
    if (c.used != 0) {
      names_.add_used(i, name_at(i));
      continue;
    }
    const bool kept = index_rests_[i] || total_of(c.cells) + total_of(c.records) != 0;
    names_.add_free(i, name_at(i), kept                  ? Free::OwnerOnly
                                   : c.incarnation == 0 ? Free::Fresh
                                                        : Free::Reusable);
  }
}

/// Its runs stay where they are until let_go_of_the_removed(); holders of the old name are told at
/// once that it is gone.
void BulkheadPublisher::remove(std::uint32_t index, std::int64_t now) {
  writing_ = index;
  BulkheadConfig& c = config(index);
  if (!guarded(Guard::PlacesKeptWhileAway)) {
    shrink(c.cells, Pool::Cells, 0, now);
    shrink(c.records, Pool::Records, 0, now);
    c.limit = c.max_waiting = 0;
  }
  c.used = 0;
  ++c.incarnation;
  resting_index_next_.push_back({index, now + kBulkheadRestNs});
  index_rests_[index] = true;
}

/// Those that are gone for kBulkheadRestNs and whose last holder has left.
void BulkheadPublisher::let_go_of_the_removed() {
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    BulkheadConfig& c = config(i);
    if (c.used != 0 || total_of(c.cells) + total_of(c.records) == 0 || index_rests_[i]) continue;
    if (nobody_is_in(view_, c)) c = emptied(c);
  }
}

Result<void> BulkheadPublisher::add(const Wanted& wanted, std::int64_t now) {
  const rule::BulkheadSettings& settings = wanted.settings;
  const std::uint32_t index = names_.free_for(settings.name);
  if (index == EntryNames::kNone) {
    return Error{Errc::Busy,
                 "bulkheads that were removed keep their place for 10 s and none is left for '" +
                     (wanted.pattern.empty() ? settings.name : wanted.pattern) +
                     "'; raise capacity.bulkheads (now " + std::to_string(view_.bulkhead_count) +
                     ") and restart"};
  }
  // A ticket of the index's former owner is never one of the new one's: `next` goes on.
  Word16 holding = load16(&view_.bulkheads[index].holding);
  while (!cas16(&view_.bulkheads[index].holding, holding, {})) {}
  BulkheadConfig& c = config(index);
  // One that comes back finds the runs it had, with those who are still in.
  c.used = 1;
  ++c.incarnation;
  c.kind = wanted.kind;
  c.pattern = wanted.kind == kInstanceEntry ? names_.index_of(wanted.pattern) : kNoLine;
  if (wanted.kind == kInstanceEntry) {
    // An apply() that failed may have written the number that would be next.
    const bool kept = !nobody_is_in(view_, c);
    if (!kept) c.incarnation += load16(&view_.bulkheads[index].place.identity).hi == c.incarnation;
    if (kept) keep_name(index, c.incarnation);
  }
  NameRecord& record = name(index);
  record = {};
  record.length = static_cast<std::uint8_t>(settings.name.size());
  std::memcpy(record.text, settings.name.data(), settings.name.size());
  names_.take(index, settings.name);
  return write(index, settings, now);
}

/// A pattern that comes back: the place stays with the name whose calls are still in it. Written
/// while the image in force has no such place; nobody looks.
void BulkheadPublisher::keep_name(std::uint32_t index, std::uint32_t incarnation) noexcept {
  PatternPlace& place = view_.bulkheads[index].place;
  Word16 identity = load16(&place.identity);
  if (identity.lo == 0) return;
  const std::uint64_t before = identity.hi;
  while (!cas16(&place.identity, identity, {identity.lo, incarnation})) {}
  for (Word16& word : place.name) {
    Word16 seen = load16(&word);
    // Not of that name: its text was never written; whoever asks for it writes it.
    while (seen.hi == before && !cas16(&word, seen, {seen.lo, incarnation})) {}
  }
}

Result<void> BulkheadPublisher::write(std::uint32_t index, const rule::BulkheadSettings& settings,
                                      std::int64_t now) {
  writing_ = index;
  BulkheadConfig& c = config(index);
  // What the image in force still grants or lets wait in is not given up in the same step.
  const std::uint32_t cells = std::max(settings.max_concurrent, c.limit);
  const std::uint32_t records =
      std::max(records_wanted(settings), c.max_wait_ns == 0 ? 0 : c.max_waiting);
  if (auto fine = fit(c.cells, Pool::Cells, cells, now); !fine) return fine;
  if (auto fine = fit(c.records, Pool::Records, records, now); !fine) return fine;
  c.enabled = settings.enabled ? 1 : 0;
  c.limit = settings.max_concurrent;
  c.max_waiting = settings.max_waiting;
  c.max_wait_ns = settings.max_wait_ns;
  c.max_hold_ns = settings.max_hold_ns;
  return {};
}

}  // namespace cutwater::shm
