// SPDX-License-Identifier: Apache-2.0
#include "shm/publisher.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <cstring>
#include <set>

#include "base/crc32c.hpp"
#include "base/sync_point.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/limit/rule_writer.hpp"
#include "shm/segment.hpp"

namespace cutwater::shm {
namespace {

constexpr int kPublishTries = 3;

/// unix ns - segment ns, as the two clocks stand now. On a stepped clock the first moment of the
/// segment is the first of 1970.
std::int64_t wall_offset_of(const SegmentClock& clock) noexcept {
  if (clock.is_stepped()) return -kEpochLeadNs;
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  return std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec - clock.now();
}

}  // namespace

Publisher::Publisher(const View& view)
    : view_(view), shadow_(view.image_length / 8), wall_offset_ns_(wall_offset_of(view.clock)) {
  const std::uint64_t current = view_.current();
  std::memcpy(shadow_.data(), view_.image[current & kCurrentImageBit], view_.image_length);
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id)
    sweeping_ |= rule(id).kind != 0;
  // A publication of the former owner may not have taken effect yet.
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    if (rule(id).kind != 0) ready_at_ = std::max(ready_at_, rule(id).base_t);
  }
}

ImageHead& Publisher::head() noexcept { return *reinterpret_cast<ImageHead*>(shadow_.data()); }
LimitConfig& Publisher::config(std::uint32_t index) noexcept {
  return reinterpret_cast<LimitConfig*>(reinterpret_cast<std::uint8_t*>(shadow_.data()) +
                                        view_.image_limits_offset)[index];
}
RuleRecord& Publisher::rule(std::uint32_t id) noexcept {
  return reinterpret_cast<RuleRecord*>(reinterpret_cast<std::uint8_t*>(shadow_.data()) +
                                       view_.image_rules_offset)[id];
}
NameRecord& Publisher::name(std::uint32_t index) noexcept {
  return reinterpret_cast<NameRecord*>(reinterpret_cast<std::uint8_t*>(shadow_.data()) +
                                       view_.image_names_offset)[index];
}

OverrideRecord& Publisher::override_record(std::uint32_t index) noexcept {
  return reinterpret_cast<OverrideRecord*>(reinterpret_cast<std::uint8_t*>(shadow_.data()) +
                                           view_.image_overrides_offset)[index];
}
SetRecord& Publisher::set(std::uint32_t index) noexcept {
  return reinterpret_cast<SetRecord*>(reinterpret_cast<std::uint8_t*>(shadow_.data()) +
                                      view_.image_sets_offset)[index];
}
PatternRecord& Publisher::pattern(std::uint32_t index) noexcept {
  return reinterpret_cast<PatternRecord*>(reinterpret_cast<std::uint8_t*>(shadow_.data()) +
                                          view_.image_patterns_offset)[index];
}
CalendarRecord& Publisher::calendar(std::uint32_t index) const noexcept {
  auto* bytes = reinterpret_cast<std::uint8_t*>(const_cast<std::uint64_t*>(shadow_.data()));
  return reinterpret_cast<CalendarRecord*>(bytes + view_.image_calendars_offset)[index];
}

Result<PublishReport> Publisher::publish(const std::vector<rule::LimitSettings>& limits,
                                         std::uint64_t config_hash) {
  if (auto fine = check(limits); !fine) return fine.error();
  std::int64_t now = view_.clock.now();
  if (now < ready_at_)
    return Error{Errc::Busy, "the last change takes effect in a moment; try again then"};
  const std::vector<std::uint64_t> before = shadow_;
  const auto resting_before = std::pair{resting_limits_, resting_rules_};
  Round round;
  PublishReport& report = round.report;
  for (int attempt = 0; attempt < kPublishTries; ++attempt) {
    shadow_ = before;
    std::tie(resting_limits_, resting_rules_) = resting_before;
    round = {};
    round.now = now = view_.clock.now();
    const std::int64_t ahead = !guarded(Guard::PublishAhead) ? 0
                               : view_.clock.is_stepped()    ? 1
                                                             : kPublishAheadNs;
    round.base_t = now + ahead;
    if (auto done = apply(limits, round); !done) {
      shadow_ = before;
      std::tie(resting_limits_, resting_rules_) = resting_before;
      return done.error();
    }
    if (auto done = apply_guards(now); !done) {
      shadow_ = before;
      std::tie(resting_limits_, resting_rules_) = resting_before;
      return done.error();
    }
    head().config_hash = config_hash;
    if (shadow_ == before) {
      if (&settings_ != &limits) settings_ = limits;
      guards_committed();
      config_hash_ = config_hash;
      report.generation = head().generation;
      return report;
    }
    head().generation += 1;
    write_idle_image();
    // Written too slowly: base_t comes too close. Once more with a new one.
    if (view_.clock.is_stepped() || view_.clock.now() - now <= kPublishSlackNs) break;
  }
  const std::uint64_t current = view_.current();
  CUTWATER_SYNC_POINT("publish.before_current");
  const int idle = guarded(Guard::WriteIdleImage) ? static_cast<int>(~current & kCurrentImageBit)
                                                  : static_cast<int>(current & kCurrentImageBit);
  make_current(idle, head().generation);
  guards_committed();
  report.generation = head().generation;
  if (report.effective_ns != 0) {
    ready_at_ = report.effective_ns;
    report.late = !view_.clock.is_stepped() && report.effective_ns > round.now &&
                  view_.clock.now() > report.effective_ns;
    if (report.late) __atomic_fetch_add(&view_.stats_control->late_publish, 1, __ATOMIC_RELAXED);
    if (view_.clock.is_stepped()) step_clock(view_, report.effective_ns);
  }
  // Entries of a rule that is gone count as full. Cleared now, they never meet the next owner of
  // its id, by whose clock they could be in debt for years.
  if (round.dropped) restart_sweep();
  if (&settings_ != &limits) settings_ = limits;
  config_hash_ = config_hash;
  return report;
}

Result<void> Publisher::apply_guards(std::int64_t now) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(shadow_.data());
  if (wanted_) {
    if (auto done = breakers_.apply(bytes, *wanted_, now); !done) return done.error();
  }
  if (wanted_bulkheads_) return bulkheads_.apply(bytes, *wanted_bulkheads_, now);
  return {};
}

void Publisher::guards_committed() {
  if (wanted_) breakers_.committed(*wanted_);
  if (wanted_bulkheads_) bulkheads_.committed(*wanted_bulkheads_);
}

Result<PublishReport> Publisher::make_room(UnusedPlaces places) {
  breakers_.give_up(std::move(places.breakers));
  bulkheads_.give_up(std::move(places.bulkheads));
  auto report = renew();
  breakers_.give_up({});
  bulkheads_.give_up({});
  return report;
}

Result<void> Publisher::check(const std::vector<rule::LimitSettings>& limits) const {
  if (limits.size() > view_.limit_count) {
    return Error{Errc::InvalidArgument,
                 std::to_string(limits.size()) + " limits, but memory was reserved for " +
                     std::to_string(view_.limit_count) +
                     "; set capacity.limits to at least that number and restart"};
  }
  std::uint64_t overrides = 0, patterns = 0;
  std::set<std::string_view> names;
  for (const rule::LimitSettings& settings : limits) {
    if (auto fine = rule::check(settings); !fine) return fine;
    if (!names.insert(settings.name).second) {
      return Error{Errc::InvalidArgument, "limit '" + settings.name + "' is given twice; keep one"};
    }
    for (const rule::OverrideSettings& over : settings.overrides) {
      ++(over.pattern ? patterns : overrides);
    }
  }
  if (overrides > view_.override_capacity) {
    return Error{Errc::InvalidArgument,
                 std::to_string(overrides) + " overrides, but memory was reserved for " +
                     std::to_string(view_.override_capacity) +
                     "; set capacity.overrides to at least that number and restart"};
  }
  if (patterns > view_.pattern_count || (patterns != 0 && view_.override_capacity == 0)) {
    return Error{Errc::InvalidArgument,
                 std::to_string(patterns) + " key patterns, but memory was reserved for " +
                     std::to_string(view_.override_capacity == 0 ? 0 : view_.pattern_count) +
                     "; set capacity.overrides to at least " + std::to_string(16 * patterns) +
                     " and restart"};
  }
  return {};
}

void Publisher::write_idle_image() {
  ImageHead& h = head();
  h.length = static_cast<std::uint32_t>(view_.image_length);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(shadow_.data());
  h.crc32c = crc32c(bytes + sizeof(ImageHead), view_.image_length - sizeof(ImageHead));
  const std::uint64_t current = view_.current();
  const auto idle =
      guarded(Guard::WriteIdleImage) ? ~current & kCurrentImageBit : current & kCurrentImageBit;
  auto* image = reinterpret_cast<std::uint64_t*>(const_cast<std::uint8_t*>(view_.image[idle]));
  // Back to front, so that the head comes last. release: whoever reads a word of this image reads,
  // afterwards, the `current` that made the other image current, and starts over; pairs with the
  // acquire in read_once().
  for (std::size_t i = shadow_.size(); i-- > 0;) {
    if (__atomic_load_n(image + i, __ATOMIC_RELAXED) == shadow_[i]) continue;
    __atomic_store_n(image + i, shadow_[i], __ATOMIC_RELEASE);
    CUTWATER_SYNC_POINT("publish.word");
  }
}

void Publisher::make_current(int image, std::uint64_t generation) noexcept {
  RulesControl& control = *view_.rules_control;
  // release: pairs with the acquire of View::current(), so the image it names is whole.
  __atomic_store_n(&control.current,
                   generation << kCurrentGenerationShift | static_cast<std::uint64_t>(image),
                   __ATOMIC_RELEASE);
  __atomic_fetch_add(&control.changed, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &control.changed, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Publisher::publish_again() {
  // `current` may be what was written over: the private copy's number goes on.
  const int idle = static_cast<int>(~view_.current() & kCurrentImageBit);
  head().generation = std::max(head().generation, view_.current() >> kCurrentGenerationShift) + 1;
  write_idle_image();
  make_current(idle, head().generation);
}

void Publisher::announce_takeover() {
  __atomic_fetch_add(&view_.rules_control->takeovers, 1, __ATOMIC_RELAXED);
  announce();
}

void Publisher::announce() {
  // The image stays; its head keeps the number it was published under, `current` goes on counting.
  const std::uint64_t current = view_.current();
  const std::uint64_t generation = (current >> kCurrentGenerationShift) + 1;
  head().generation = std::max(head().generation, generation);
  make_current(static_cast<int>(current & kCurrentImageBit), generation);
}

}  // namespace cutwater::shm
