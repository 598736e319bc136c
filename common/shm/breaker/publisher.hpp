// SPDX-License-Identifier: Apache-2.0
// BreakerPublisher: the breakers' part of the next rule image, and the places it needs.
//
// Belongs to the Publisher (shm/publisher.hpp), which calls apply() on its private image, makes the
// image current, then calls committed(). apply() writes shared memory only where nobody looks yet:
// rings and cells out of the breaker memory that no image in force names, and the heads of breakers
// that do not exist yet. What a reload keeps (rule S15):
//   - a COUNT window that grows gets a new ring with the outcomes the old one still counted; never
//     more than the old N. One that shrinks goes on in its ring with the newest N. Outcomes that
//     are recorded while the image changes are carried over after it did.
//   - another kind, span or number of slots: an empty window of the same epoch.
//   - thresholds hold from the next outcome on; a wait under way keeps its deadline.
//   - another P or half-open-decision while HALF_OPEN: OPEN with deadline now, so that no epoch has
//     two rules.
// A freed place rests for an hour, since somebody may have been stopped in the middle of using it.
// What rests is not in the memory: the next daemon may give it away at once. Whoever was stopped
// there over the reload and the restart then writes one word of another breaker: at worst that one
// opens, or closes, once without reason, until its next move. Epochs and incarnations of an index
// go on over restarts, so a call is never taken for one of the index's next owner.
// Killed at any instruction: `current` names the old image with its old places, or the new one with
// places that were whole before. Killed before committed(): outcomes of that moment may be missing.
// Thread safety: one thread. Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/breaker_settings.hpp"
#include "shm/breaker/ring.hpp"
#include "shm/entry_names.hpp"
#include "shm/gaps.hpp"
#include "shm/pattern_idle.hpp"
#include "shm/pattern_publish.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// A freed index or place rests this long before it is used again.
inline constexpr std::int64_t kBreakerRestNs = 3600LL * 1'000'000'000;

struct BreakerChanges {
  std::uint32_t added = 0, removed = 0, changed = 0, unchanged = 0;
};

/// Bytes of breaker memory these settings need: what `capacity.breaker-memory` must be at least.
std::uint64_t breaker_memory_needed(const std::vector<rule::BreakerSettings>& breakers);

class BreakerPublisher {
 public:
  explicit BreakerPublisher(const View& view) : view_(view) {}

  /// Makes `image` (private, image_length bytes, as in force) name exactly these breakers.
  /// InvalidArgument: a setting out of range, a name twice, or more than was reserved, naming the
  /// number to set. Busy: places still rest.
  Result<BreakerChanges> apply(std::uint8_t* image,
                               const std::vector<rule::BreakerSettings>& breakers,
                               std::int64_t now);
  /// The image of the last apply() is current.
  void committed(const std::vector<rule::BreakerSettings>& breakers);

  /// Places of patterns that the next apply() takes from their names, where they still rest then:
  /// their incarnation goes on, state, window and users begin anew. Outcomes of the old name that
  /// come in that very moment may be counted before the state begins anew a second time.
  void give_up(std::vector<PlaceRef> places) { given_up_ = std::move(places); }

  /// The settings in force, as published.
  const std::vector<rule::BreakerSettings>& breakers() const noexcept { return settings_; }

 private:
  struct Lines { std::uint32_t first, count; };
  struct Resting { Lines lines; std::int64_t until; };
  struct RestingIndex { std::uint32_t index; std::int64_t until; };
  using Wanted = WantedEntry<rule::BreakerSettings>;
  struct Moved { std::uint32_t index; RingView from; std::uint64_t copied; };

  BreakerConfig& config(std::uint32_t index) noexcept;
  NameRecord& name(std::uint32_t index) noexcept;
  void write_classes(std::uint32_t index, const rule::BreakerSettings& settings) noexcept;
  std::string_view name_at(std::uint32_t index) noexcept;

  Result<void> check(const std::vector<rule::BreakerSettings>& breakers) const;
  void find_names(std::int64_t now);
  void remove(std::uint32_t index, std::int64_t now);
  Result<void> add(const Wanted& wanted, std::int64_t now);
  Result<bool> change(std::uint32_t index, const rule::BreakerSettings& settings,
                      std::int64_t now);
  Result<void> place_ring(BreakerConfig& c, const rule::BreakerNumbers& n, std::uint32_t epoch,
                          std::int64_t now);
  Result<void> place_span(BreakerConfig& c, const rule::BreakerNumbers& n, std::uint32_t epoch,
                          std::int64_t now);
  Result<void> place_probes(BreakerConfig& c, const rule::BreakerNumbers& n, std::uint32_t epoch);
  /// First fit among lines no config names and that do not rest; Busy or InvalidArgument else.
  Result<void> place_hanging(BreakerConfig& c, const rule::BreakerNumbers& n,
                             std::uint32_t epoch);
  Result<std::uint32_t> take_lines(std::uint32_t count);
  Gaps free_lines();
  void rest(Lines lines, std::int64_t now);
  enum class From : std::uint8_t { Resting, Any };
  void make_room(const std::vector<rule::BreakerSettings>& breakers);
  bool begin_anew(std::uint32_t index, From from) noexcept;
  RingView ring_view(std::uint32_t line, std::uint64_t mask) const noexcept;
  void begin_story(BreakerHead& head, std::uint32_t epoch) noexcept;
  void begin_head(std::uint32_t index, const rule::BreakerSettings& settings) noexcept;

  View view_;
  std::uint8_t* image_ = nullptr;
  std::int64_t now_ = 0;
  std::vector<rule::BreakerSettings> settings_;
  std::vector<Resting> resting_, resting_next_;
  std::vector<RestingIndex> resting_index_, resting_index_next_;
  EntryNames names_;                         ///< of this apply()
  std::optional<Gaps> gaps_;                 ///< of this apply(): lines
  std::vector<Moved> moved_;
  std::vector<std::uint32_t> rejudged_;      ///< breakers whose half-open rule changed
  std::vector<PlaceRef> given_up_;
  std::vector<std::uint32_t> reused_;        ///< of them, by this apply()
};

}  // namespace cutwater::shm
