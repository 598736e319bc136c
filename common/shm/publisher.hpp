// SPDX-License-Identifier: Apache-2.0
// Publisher: turns limit settings into the next rule image and makes it current with one store:
// reload is all or nothing.
//
// One per segment, in the process that owns it (the daemon, or an in-memory client). It writes the
// idle image completely, sets base_t = clock + 100 ms in changed rules, reads the clock again (more
// than 50 ms gone: once more), stores `current` (release), bumps `changed`, wakes. It does not
// publish again before base_t has passed (I1, I2).
//
// What a change keeps: `on-change`, rule_writer.hpp. Windows are known by their place in the list:
// one that is added starts as `initial` says, from that moment; one that is removed takes its
// entries along. A limit that becomes unlimited or blocked keeps its rules, so debts go on
// shrinking meanwhile. Keys with an override are judged by rules of their own in the same windows,
// one set for each distinct list of windows; when an override comes, goes or changes, the key's
// debt stays as it is at the next grant. A rule an override no longer needs is kept until the sweep
// has moved its entries to the limit's own. Overrides, patterns, kind and mode take effect with the
// store, numbers of windows at base_t; but at once where the limit had overrides or patterns, was
// blocked, or loses a window, since what held a key back must not end before its numbers change.
// A rate that does not fit the scale gets a new rule id with the old one as predecessor; entries
// are converted in place by whoever charges them, and sweep() converts the rest, then frees the old
// id.
// Calendar edges are stamps; renew() writes them anew before they run out, and when the wall clock
// is set (set_wall_offset).
// Killed while writing: `current` still names the other image. Killed after the store: complete.
// Thread safety: one thread. Allocates; never on a decision path.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/limit_settings.hpp"
#include "shm/breaker/publisher.hpp"
#include "shm/bulkhead/publisher.hpp"
#include "shm/limit/calendar_writer.hpp"
#include "shm/limit/rule_writer.hpp"
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
  /// at ready_at(). InvalidArgument: more limits, overrides, patterns, calendars or rule ids than
  /// reserved (names the number to set), an unknown zone, or a setting out of range. On a stepped
  /// clock base_t = now + 1, and the clock is moved there.
  Result<PublishReport> publish(const std::vector<rule::LimitSettings>& limits,
                                std::uint64_t config_hash);

  /// The breakers that publish() makes part of the image from now on; shm/breaker/publisher.hpp.
  /// Until it is told, those of the image found stay as they are.
  void set_breakers(std::vector<rule::BreakerSettings> breakers) { wanted_ = std::move(breakers); }
  const std::vector<rule::BreakerSettings>& breakers() const noexcept {
    return breakers_.breakers();
  }

  /// The same for bulkheads; shm/bulkhead/publisher.hpp.
  void set_bulkheads(std::vector<rule::BulkheadSettings> bulkheads) {
    wanted_bulkheads_ = std::move(bulkheads);
  }
  const std::vector<rule::BulkheadSettings>& bulkheads() const noexcept {
    return bulkheads_.bulkheads();
  }
  /// True when renew() has a bulkhead to make smaller: its last place above the limit came back.
  bool settle_due() const noexcept {
    const auto* image = reinterpret_cast<const std::uint8_t*>(shadow_.data());
    return wanted_bulkheads_ && bulkheads_.settle_due(image);
  }

  /// The wall clock: unix ns = segment ns + offset. Default: read when the publisher is made; on a
  /// stepped clock the segment's first moment is 1970-01-01T00:00:00Z. Whoever learns that the wall
  /// clock was set says the new offset and calls renew().
  void set_wall_offset(std::int64_t offset_ns) { wall_offset_ns_ = offset_ns; }
  std::int64_t wall_offset() const noexcept { return wall_offset_ns_; }
  /// Where calendar periods come from; the zone files of the system unless a test says otherwise.
  void set_period_source(PeriodSource source) { periods_ = std::move(source); }
  /// Publishes the settings in force once more: new calendar edges, overrides that ended. Busy as
  /// publish(). Nothing to do: publishes nothing.
  Result<PublishReport> renew() { return publish(settings_, config_hash_); }
  /// renew(), and these places of patterns are free for other names, where they still rest. Busy:
  /// nothing was given up.
  Result<PublishReport> make_room(UnusedPlaces places);
  /// Segment time from which renew() has edges to write; kNeverNs without calendars.
  std::int64_t renew_at() const noexcept;

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
  /// One attempt to write the next image.
  struct Round {
    std::int64_t now = 0, base_t = 0;
    std::int64_t moment = 0;             ///< from which numbers of the limit at hand hold
    PublishReport report;
    bool dropped = false;                ///< entries of rules that are gone are to be swept
  };
  /// A set of override rules of the limit at hand.
  struct Draft {
    const std::vector<rule::WindowSettings>* windows;
    std::uint32_t set;
  };
  using Owed = std::array<std::uint64_t, kMaxWindows>;

  ImageHead& head() noexcept;
  LimitConfig& config(std::uint32_t index) noexcept;
  RuleRecord& rule(std::uint32_t id) noexcept;
  NameRecord& name(std::uint32_t index) noexcept;
  OverrideRecord& override_record(std::uint32_t index) noexcept;
  SetRecord& set(std::uint32_t index) noexcept;
  PatternRecord& pattern(std::uint32_t index) noexcept;
  CalendarRecord& calendar(std::uint32_t index) const noexcept;

  Result<void> check(const std::vector<rule::LimitSettings>& limits) const;
  std::uint32_t index_of(std::string_view name) noexcept;
  /// A free number that does not rest; 0xffffffff when there is none.
  std::uint32_t free_limit(std::string_view wanted, std::int64_t now) noexcept;
  std::uint32_t free_rule(std::int64_t now) noexcept;
  Result<std::uint16_t> new_rule(const rule::LimitSettings& settings, std::int64_t now);
  void free_rule_id(std::uint32_t id, std::int64_t now);

  // publisher_limits.cpp
  Result<void> apply(const std::vector<rule::LimitSettings>& limits, Round& round);
  Result<std::uint32_t> add_limit(const rule::LimitSettings& settings, std::int64_t now);
  Result<bool> write_limit(std::uint32_t index, const rule::LimitSettings& settings, bool added,
                           Round& round);
  Result<bool> write_windows(std::uint32_t index, const rule::LimitSettings& settings,
                             const Owed& owed, Round& round);
  Result<bool> change_rule(std::uint16_t& id, const RuleWish& wish,
                           const rule::LimitSettings& settings, rule::OnChange word, Round& round);
  Result<RuleWish> wish_for(const rule::LimitSettings& settings,
                            const rule::WindowSettings& window, std::uint64_t owed, Round& round);
  Owed owed_of(std::uint32_t index, const rule::LimitSettings& settings) noexcept;
  rule::Units units_of(const RuleRecord& record, std::int64_t t) const noexcept;
  bool same_calendar(const RuleRecord& record, const RuleWish& wish) const noexcept;
  void remove_limit(std::uint32_t index, std::int64_t now);

  // publisher_tables.cpp
  void begin_tables();
  Result<bool> write_overrides(std::uint32_t index, const rule::LimitSettings& settings,
                               const Owed& owed, bool added, Round& round);
  Result<std::uint32_t> set_of(std::uint32_t index, const rule::LimitSettings& settings,
                               const rule::OverrideSettings& over, const Owed& owed, bool added,
                               std::vector<Draft>& drafts, Round& round);
  Result<bool> reuse_set(std::uint32_t index, const rule::LimitSettings& settings,
                         const std::vector<rule::WindowSettings>& windows, const Owed& owed,
                         SetRecord& found, Round& round);
  Result<SetRecord> fresh_set(std::uint32_t index, const rule::LimitSettings& settings,
                              const std::vector<rule::WindowSettings>& windows, const Owed& owed,
                              bool added, Round& round);
  Result<void> add_pattern(std::uint32_t index, const rule::OverrideSettings& over,
                           std::uint32_t set, std::uint32_t until_s);
  Result<void> end_tables(Round& round);
  Result<void> place_overrides();
  Result<std::uint32_t> calendar_for(const rule::WindowSettings& window, Round& round);

  /// Breakers and bulkheads, into the private copy.
  Result<void> apply_guards(std::int64_t now);
  void guards_committed();
  void write_idle_image();
  void make_current(int image, std::uint64_t generation) noexcept;
  bool sweep_slot(Word16* slot, std::int64_t now, std::size_t window) noexcept;
  void restart_sweep() noexcept;
  void finish_sweep();

  View view_;
  std::vector<rule::LimitSettings> settings_;
  std::vector<std::uint64_t> shadow_;  ///< private copy of the image in force, or of the next one
  std::vector<Resting> resting_limits_, resting_rules_;
  std::unordered_map<std::string, std::uint32_t> index_;          ///< of this round
  std::vector<std::vector<std::uint16_t>> rules_of_;              ///< of this round, by limit
  std::vector<SetRecord> old_sets_, sets_;                        ///< of this round
  std::vector<OverrideRecord> overrides_;
  std::vector<PatternRecord> patterns_;
  PeriodSource periods_ = system_periods;
  std::uint64_t config_hash_ = 0;
  std::int64_t wall_offset_ns_ = 0;
  std::uint32_t free_from_ = kFirstRuleId;
  std::uint64_t next_slot_ = 0;                ///< where the sweep goes on
  std::int64_t ready_at_ = 0;
  bool sweeping_ = false;
  bool floors_empty_ = false;
  BreakerPublisher breakers_{view_};
  std::optional<std::vector<rule::BreakerSettings>> wanted_;
  BulkheadPublisher bulkheads_{view_};
  std::optional<std::vector<rule::BulkheadSettings>> wanted_bulkheads_;
};

}  // namespace cutwater::shm
