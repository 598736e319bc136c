// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/tops.hpp"

#include <algorithm>
#include <cstring>

#include "base/crc32c.hpp"

namespace cutwater::shm {
namespace {

constexpr std::size_t kWords = sizeof(TopRecord) / sizeof(std::uint64_t);

/// The hash as it lies there: 0 means free.
std::uint64_t name_of(KeyHash key) noexcept { return key.lo == 0 ? 1 : key.lo; }

std::uint32_t sum_of(const TopRecord& record) noexcept {
  constexpr std::size_t kBefore = offsetof(TopRecord, check);
  constexpr std::size_t kBehind = kBefore + sizeof record.check;
  const auto* bytes = reinterpret_cast<const char*>(&record);
  const std::uint32_t first = crc32c(bytes, kBefore);
  return crc32c(bytes + kBehind, sizeof record - kBehind, first);
}

/// A private copy, word by word; relaxed: the checksum says whether the words belong together.
TopRecord copy_of(const TopRecord& shared) noexcept {
  std::uint64_t words[kWords];
  const auto* from = reinterpret_cast<const std::uint64_t*>(&shared);
  for (std::size_t i = 0; i < kWords; ++i) words[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
  TopRecord out;
  std::memcpy(&out, words, sizeof out);
  return out;
}

void store(TopRecord& shared, TopRecord record) noexcept {
  record.check = sum_of(record);
  std::uint64_t words[kWords];
  std::memcpy(words, &record, sizeof words);
  auto* to = reinterpret_cast<std::uint64_t*>(&shared);
  for (std::size_t i = 0; i < kWords; ++i) __atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
}

bool is_whole(const TopRecord& record) noexcept {
  return record.key_hash != 0 && record.length <= sizeof record.text &&
         record.check == sum_of(record);
}

void set_text(TopRecord& record, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), sizeof record.text);
  std::memset(record.text, 0, sizeof record.text);
  if (length != 0) std::memcpy(record.text, text.data(), length);
  record.length = static_cast<std::uint8_t>(length);
}

/// The row of a key, else the one it takes: that which asked least, or one that is torn. One pass
/// over the rows, and one sum: a torn row that seems to ask much is found by the new key whose
/// number names it, sooner or later.
TopRecord* place_of(TopRecord* rows, std::uint32_t count, std::uint64_t name) noexcept {
  TopRecord* least = rows;
  std::uint64_t fewest = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < count; ++i) {
    // relaxed, all: a guess of where to write; what is written is judged as a whole.
    const std::uint64_t here = __atomic_load_n(&rows[i].key_hash, __ATOMIC_RELAXED);
    if (here == name) return rows + i;
    const std::uint64_t asked =
        here == 0 ? 0 : __atomic_load_n(&rows[i].asked, __ATOMIC_RELAXED);
    if (asked >= fewest) continue;
    fewest = asked;
    least = rows + i;
  }
  TopRecord* const chance = rows + name % count;
  const TopRecord seen = copy_of(*chance);
  return seen.key_hash != 0 && !is_whole(seen) ? chance : least;
}

}  // namespace

void note_top(const View& view, const TopNote& note) noexcept {
  if (note.limit >= view.limit_count || view.tops_per_limit == 0) return;
  TopRecord* rows = view.tops + std::size_t{note.limit} * view.tops_per_limit;
  const std::uint64_t name = name_of(note.key);
  TopRecord* const place = place_of(rows, view.tops_per_limit, name);
  TopRecord record = copy_of(*place);
  if (!is_whole(record)) record = {};
  if (record.key_hash != name) {
    record = {.key_hash = name, .asked = record.asked, .refused = 0, .over = record.asked,
              .check = 0, .length = 0, .text = {}};
  }
  record.asked += note.weight;
  if (note.refused) record.refused += note.weight;
  set_text(record, note.text);
  store(*place, record);
}

std::vector<Top> read_tops(const View& view, std::uint32_t limit) {
  std::vector<Top> out;
  if (limit >= view.limit_count) return out;
  const TopRecord* rows = view.tops + std::size_t{limit} * view.tops_per_limit;
  for (std::uint32_t i = 0; i < view.tops_per_limit; ++i) {
    const TopRecord record = copy_of(rows[i]);
    if (!is_whole(record)) continue;
    out.push_back({record.key_hash, record.asked, record.refused, record.over,
                   std::string(record.text, record.length)});
  }
  std::sort(out.begin(), out.end(), [](const Top& a, const Top& b) { return a.asked > b.asked; });
  return out;
}

void clear_tops(const View& view, std::uint32_t limit) noexcept {
  if (limit >= view.limit_count) return;
  TopRecord* rows = view.tops + std::size_t{limit} * view.tops_per_limit;
  for (std::uint32_t i = 0; i < view.tops_per_limit; ++i) store(rows[i], TopRecord{});
}

}  // namespace cutwater::shm
