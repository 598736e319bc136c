// SPDX-License-Identifier: Apache-2.0
// BulkheadPublisher: the bulkheads' part of the next rule image, and the places it needs.
//
// Belongs to the Publisher (shm/publisher.hpp), which calls apply() on its private image, makes the
// image current, then calls committed(). apply() writes shared memory only where nobody looks yet:
// cells, stamps and records that no image in force names, and heads of bulkheads that do not exist
// yet. What a reload keeps:
//   - a limit that grows gets further cells behind those it has; one that shrinks keeps its cells
//     until nothing is held at or above the limit, so that `over` is seen and counted. settle_due()
//     tells when they can go.
//   - max-waiting the same, with records.
//   - a bulkhead that is removed keeps its index and its cells until kBulkheadRestNs have passed
//     and its last holder has left: its calls still give back what they hold, and one that comes
//     back by that name counts them. Without that a bulkhead taken out and put back would let in
//     its whole limit beside those who are still in (guard PlacesKeptWhileAway).
//   - a pattern's places the same; those whose calls are still in keep their names.
// A freed run of cells or records rests for kBulkheadRestNs, since somebody may have been stopped
// in the middle of using it.
// Killed at any instruction: `current` names the old image with its old places, or the new one with
// places that were whole before.
// Thread safety: one thread. Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/bulkhead_settings.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/entry_names.hpp"
#include "shm/gaps.hpp"
#include "shm/pattern_idle.hpp"
#include "shm/pattern_publish.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// A freed index, cell or record rests this long before it is used again: longer than anybody who
/// runs takes from its look at the image to its swap. One who was stopped for longer, or over a
/// restart of the daemon, which forgets what rests, swaps in the place of another bulkhead, counts
/// there (K1), finds that it is not the one it entered, and gives the place back; killed in
/// between, the tick does. So nobody gets in too many, at worst that bulkhead has one place less
/// meanwhile: it is no reason to keep cells from a reload for longer.
inline constexpr std::int64_t kBulkheadRestNs = 10LL * 1'000'000'000;

class BulkheadPublisher {
 public:
  explicit BulkheadPublisher(const View& view) : view_(view) {}

  /// Makes `image` (private, image_length bytes, as in force) name exactly these bulkheads.
  /// InvalidArgument: a setting out of range, a name twice, or more than was reserved, naming the
  /// number to set. Busy: places still rest, or are too scattered.
  Result<void> apply(std::uint8_t* image, const std::vector<rule::BulkheadSettings>& bulkheads,
                     std::int64_t now);
  /// The image of the last apply() is current: lines whose limit was raised are served.
  void committed(const std::vector<rule::BulkheadSettings>& bulkheads);

  /// True when a bulkhead of `image` (private, as in force) that shrank has drained: the next
  /// apply() makes it smaller.
  bool settle_due(const std::uint8_t* image) const noexcept;

  /// Places of patterns that the next apply() takes from their names, where nobody holds or waits
  /// then: their incarnation goes on. Who entered by the old name in that very moment holds its
  /// place until it leaves, and counts.
  void give_up(std::vector<PlaceRef> places) { given_up_ = std::move(places); }

  /// The settings in force, as published.
  const std::vector<rule::BulkheadSettings>& bulkheads() const noexcept { return settings_; }

 private:
  enum class Pool : std::uint8_t { Cells, Records };
  struct Run { Extent extent; Pool pool; };
  /// Of which bulkhead: it may have its own back at once, nobody else would be confused.
  struct Resting { Run run; std::int64_t until; std::uint32_t index, incarnation; };
  struct RestingIndex { std::uint32_t index; std::int64_t until; };
  using Wanted = WantedEntry<rule::BulkheadSettings>;

  BulkheadConfig& config(std::uint32_t index) const noexcept;
  NameRecord& name(std::uint32_t index) noexcept;
  std::string_view name_at(std::uint32_t index) noexcept;

  Result<void> check(const std::vector<rule::BulkheadSettings>& bulkheads) const;
  void find_names();
  void find_resting(std::int64_t now);
  void remove(std::uint32_t index, std::int64_t now);
  Result<void> add(const Wanted& wanted, std::int64_t now);
  void let_go_of_the_removed();
  void keep_name(std::uint32_t index, std::uint32_t incarnation) noexcept;
  void make_room();
  Result<void> write(std::uint32_t index, const rule::BulkheadSettings& settings,
                     std::int64_t now);
  Result<void> fit(Extent (&extents)[kExtents], Pool pool, std::uint32_t wanted,
                   std::int64_t now);
  std::uint32_t drained_to(const Extent (&extents)[kExtents], Pool pool,
                           std::uint32_t wanted) const noexcept;
  Result<void> grow(Extent (&extents)[kExtents], Pool pool, std::uint32_t count);
  bool take(Extent (&extents)[kExtents], Run run);
  Error scattered(Pool pool) const;
  void shrink(Extent (&extents)[kExtents], Pool pool, std::uint32_t to, std::int64_t now);
  Gaps& gaps(Pool pool);
  std::vector<Gap> its_own(Pool pool) const;
  void clear(Run run) noexcept;
  bool is_its_own(const Resting& resting) const noexcept;
  std::uint32_t room(Pool pool) const noexcept;

  View view_;
  std::uint8_t* image_ = nullptr;
  std::int64_t now_ = 0;
  std::vector<rule::BulkheadSettings> settings_;
  std::vector<Resting> resting_, resting_next_;
  std::vector<RestingIndex> resting_index_, resting_index_next_;
  std::uint32_t writing_ = 0;                ///< the bulkhead at hand
  // Of this apply():
  EntryNames names_;
  std::vector<bool> index_rests_;            ///< by bulkhead
  std::optional<Gaps> gaps_[2];              ///< by Pool; what rests is in none
  std::unordered_multimap<std::uint32_t, std::size_t> resting_of_;   ///< of resting_next_
  std::vector<PlaceRef> given_up_;
};

}  // namespace cutwater::shm
