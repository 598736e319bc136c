// SPDX-License-Identifier: Apache-2.0
// Publisher: turns limit settings into the next rule image and
// makes it current with one store: reload is all or nothing.
//
// One per segment, in the process that owns it (the daemon, or an in-memory client). It writes the
// idle image completely, sets base_t = clock + 100 ms in changed rules, reads the clock again (more
// than 50 ms gone: once more), stores `current` (release), bumps `changed`, wakes. It does not
// publish again before base_t has passed (I1, I2). keep-used (spec memory 8.1): base_n =
// N_old(base_t), the new burst, the same rule id: debts in tokens stay and no bucket is visited. A
// rate that does not fit the scale gets a new rule id with the old one as predecessor; entries are
// converted in place by whoever charges them, and sweep() converts the rest, then frees the old id.
// Killed while writing: `current` still names the other image. Killed after the store: complete.
// Thread safety: one thread. Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/limit_settings.hpp"
#include "shm/breaker_publisher.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// How far ahead of the publication a change takes effect, and how late the store may come.
inline constexpr std::int64_t kPublishAheadNs = 100'000'000;
inline constexpr std::int64_t kPublishSlackNs = 50'000'000;
/// A freed rule id or limit index rests this long before it is used again.
inline constexpr std::int64_t kRuleRestNs = 3600LL * 1'000'000'000;

struct PublishReport {
  std::uint64_t generation = 0;
  std::int64_t effective_ns = 0;       ///< base_t of the changed rules; 0 when none changed
  std::uint32_t added = 0, removed = 0, changed = 0, unchanged = 0;
  bool late = false;                   ///< the store came after base_t (counted as late_publish)
};

class Publisher {
 public:
  /// Takes over what the segment holds: ids, incarnations, names of the current image. On a memory
  /// that was used before, run sweep() to its end before the first publish(): entries of rules that
  /// are gone are cleared first.
  explicit Publisher(const View& view);

  /// Publishes `limits` as the whole set of limits. Unchanged limits keep every byte of their
  /// rules. Busy: the last change has not taken effect yet, or a sweep has not finished; try again
  /// at ready_at(). InvalidArgument: more limits than reserved (names the number to set), or a
  /// setting out of range. On a stepped clock base_t = now + 1, and the clock is moved there.
  Result<PublishReport> publish(const std::vector<rule::LimitSettings>& limits,
                                std::uint64_t config_hash);

  /// The breakers that publish() makes part of the image from now on; see shm/breaker_publisher.hpp.
  /// Until it is told, those of the image found stay as they are.
  void set_breakers(std::vector<rule::BreakerSettings> breakers) { wanted_ = std::move(breakers); }
  const std::vector<rule::BreakerSettings>& breakers() const noexcept {
    return breakers_.breakers();
  }

  /// Segment time from which publish() is not Busy because of an earlier change.
  std::int64_t ready_at() const noexcept { return ready_at_; }

  /// Take-over by a new daemon: generation + 1, image unchanged, so clients offer their rows again.
  void announce_takeover();
  /// The same image under the next generation, so that everybody reads again what lies beside the
  /// rules: a limit got its first ban, or lost its last.
  void announce();

  /// The same image once more, from the private copy: when somebody scribbled over the one in
  /// force.
  void publish_again();

  /// Damage: gives every limit a floor F = N + B, so nobody gains a burst by lost memory
  /// (initial-after-damage: empty).
  void set_all_floors_empty(bool on) { floors_empty_ = on; }

  /// Converts or clears entries of replaced and removed rules, at most `slots` slots a call; true
  /// when the pass that was due is complete. Runs in the owner's loop.
  bool sweep(std::uint64_t slots);
  bool sweep_due() const noexcept { return sweeping_; }

  /// The settings in force, as published.
  const std::vector<rule::LimitSettings>& limits() const noexcept { return settings_; }

 private:
  struct Resting { std::uint32_t number; std::int64_t until; };

  ImageHead& head() noexcept;
  LimitConfig& config(std::uint32_t index) noexcept;
  RuleRecord& rule(std::uint32_t id) noexcept;
  NameRecord& name(std::uint32_t index) noexcept;

  Result<void> check(const std::vector<rule::LimitSettings>& limits) const;
  std::uint32_t index_of(std::string_view name) noexcept;
  /// A free number that does not rest; 0xffffffff when there is none.
  std::uint32_t free_limit(std::string_view wanted, std::int64_t now) noexcept;
  std::uint32_t free_rule(std::int64_t now) noexcept;
  Result<void> apply(const std::vector<rule::LimitSettings>& limits, std::int64_t now,
                     std::int64_t base_t, PublishReport& report);
  Result<void> add_limit(const rule::LimitSettings& settings, std::int64_t now);
  Result<bool> change_limit(std::uint32_t index, const rule::LimitSettings& settings,
                            std::int64_t now, std::int64_t base_t);
  void remove_limit(std::uint32_t index, std::int64_t now);
  void write_idle_image();
  void make_current(int image, std::uint64_t generation) noexcept;
  bool sweep_slot(Word16* slot, std::int64_t now) noexcept;
  void finish_sweep();

  View view_;
  std::vector<rule::LimitSettings> settings_;
  std::vector<std::uint64_t> shadow_;  ///< private copy of the image in force, or of the next one
  std::vector<Resting> resting_limits_, resting_rules_;
  std::uint64_t next_slot_ = 0;                ///< where the sweep goes on
  std::int64_t ready_at_ = 0;
  bool sweeping_ = false;
  bool floors_empty_ = false;
  BreakerPublisher breakers_{view_};
  std::optional<std::vector<rule::BreakerSettings>> wanted_;
};

}  // namespace cutwater::shm
