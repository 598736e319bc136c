// SPDX-License-Identifier: Apache-2.0
#include "shm/publisher.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <set>

#include "base/crc32c.hpp"
#include "base/sync_point.hpp"
#include "shm/rule_reader.hpp"
#include "shm/rule_writer.hpp"
#include "shm/segment.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr int kPublishTries = 3;

bool resting(std::uint32_t number, std::int64_t now, const auto& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const auto& r) { return r.number == number && r.until > now; });
}

}  // namespace

Publisher::Publisher(const View& view) : view_(view), shadow_(view.image_length / 8) {
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

Result<PublishReport> Publisher::publish(const std::vector<rule::LimitSettings>& limits,
                                         std::uint64_t config_hash) {
  if (auto fine = check(limits); !fine) return fine.error();
  std::int64_t now = view_.clock.now();
  if (now < ready_at_)
    return Error{Errc::Busy, "the last change takes effect in a moment; try again then"};
  const std::vector<std::uint64_t> before = shadow_;
  const auto resting_before = std::pair{resting_limits_, resting_rules_};
  PublishReport report;
  for (int attempt = 0; attempt < kPublishTries; ++attempt) {
    shadow_ = before;
    std::tie(resting_limits_, resting_rules_) = resting_before;
    report = {};
    now = view_.clock.now();
    const std::int64_t ahead = !guarded(Guard::PublishAhead) ? 0
                               : view_.clock.is_stepped()    ? 1
                                                             : kPublishAheadNs;
    if (auto done = apply(limits, now, now + ahead, report); !done) {
      shadow_ = before;
      std::tie(resting_limits_, resting_rules_) = resting_before;
      return done.error();
    }
    if (wanted_) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(shadow_.data());
      if (auto done = breakers_.apply(bytes, *wanted_, now); !done) {
        shadow_ = before;
        std::tie(resting_limits_, resting_rules_) = resting_before;
        return done.error();
      }
    }
    head().config_hash = config_hash;
    if (shadow_ == before) {
      settings_ = limits;
      if (wanted_) breakers_.committed(*wanted_);
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
  if (wanted_) breakers_.committed(*wanted_);
  report.generation = head().generation;
  if (report.effective_ns != 0) {
    ready_at_ = report.effective_ns;
    report.late = !view_.clock.is_stepped() && view_.clock.now() > report.effective_ns;
    if (report.late) __atomic_fetch_add(&view_.stats_control->late_publish, 1, __ATOMIC_RELAXED);
    if (view_.clock.is_stepped()) step_clock(view_, report.effective_ns);
  }
  if (report.removed != 0) {
    // Entries of a rule that is gone count as full. Cleared now, they never meet the next owner
    // of its id, by whose clock they could be in debt for years.
    sweeping_ = true;
    next_slot_ = 0;
  }
  settings_ = limits;
  return report;
}

Result<void> Publisher::check(const std::vector<rule::LimitSettings>& limits) const {
  if (limits.size() > view_.limit_count) {
    return Error{Errc::InvalidArgument,
                 std::to_string(limits.size()) + " limits, but memory was reserved for " +
                     std::to_string(view_.limit_count) +
                     "; set capacity.limits to at least that number and restart"};
  }
  std::set<std::string_view> names;
  for (const rule::LimitSettings& settings : limits) {
    if (auto fine = rule::check(settings); !fine) return fine;
    if (!names.insert(settings.name).second) {
      return Error{Errc::InvalidArgument, "limit '" + settings.name + "' is given twice; keep one"};
    }
  }
  return {};
}

Result<void> Publisher::apply(const std::vector<rule::LimitSettings>& limits, std::int64_t now,
                              std::int64_t base_t, PublishReport& report) {
  std::set<std::string_view> wanted;
  for (const rule::LimitSettings& settings : limits) wanted.insert(settings.name);
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows == 0) continue;
    if (wanted.count({name(i).text, name(i).length}) != 0) continue;
    remove_limit(i, now);
    ++report.removed;
  }
  for (const rule::LimitSettings& settings : limits) {
    const std::uint32_t index = index_of(settings.name);
    if (index == kNone) {
      if (auto added = add_limit(settings, now); !added) return added;
      ++report.added;
      continue;
    }
    LimitConfig& c = config(index);
    const LimitConfig was = c;
    c.on_full = static_cast<std::uint8_t>(settings.on_full);
    c.max_waiting = settings.max_waiting;
    c.max_wait_ns = settings.max_wait_ns;
    c.thread_lease = settings.thread_lease;
    auto changed = change_limit(index, settings, now, base_t);
    if (!changed) return changed.error();
    if (*changed) report.effective_ns = base_t;
    const bool differs = *changed || std::memcmp(&was, &c, sizeof was) != 0;
    ++(differs ? report.changed : report.unchanged);
  }
  ImageHead& h = head();
  h.limits = h.rules = 0;
  for (std::uint32_t i = 0; i < view_.limit_count; ++i)
    if (config(i).windows != 0) h.limits = i + 1;
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id)
    if (rule(id).kind != 0) h.rules = id + 1;
  return {};
}

Result<void> Publisher::add_limit(const rule::LimitSettings& settings, std::int64_t now) {
  const std::uint32_t index = free_limit(settings.name, now);
  const std::uint32_t id = free_rule(now);
  if (index == kNone || id == kNone) {
    return Error{Errc::Busy,
                 "limits that were removed keep their place for an hour and none is left for '" +
                     settings.name + "'; raise capacity.limits (now " +
                     std::to_string(view_.limit_count) + ") and restart"};
  }
  // Nobody reads the overflow word of an index without a limit; what a former limit owed there is
  // not this one's debt.
  Word16* overflow = view_.limits[index].overflow;
  for (std::size_t w = 0; w < kMaxWindows; ++w) {
    Word16 old = load16(overflow + w);
    while (!(old == Word16{}) && !cas16(overflow + w, old, {})) {}
  }
  LimitConfig& c = config(index);
  const std::uint32_t incarnation = c.incarnation + 1;
  c = {};
  c.incarnation = incarnation;
  c.windows = 1;
  c.rule[0] = static_cast<std::uint16_t>(id);
  c.on_full = static_cast<std::uint8_t>(settings.on_full);
  c.max_waiting = settings.max_waiting;
  c.max_wait_ns = settings.max_wait_ns;
  c.thread_lease = settings.thread_lease;
  NameRecord& n = name(index);
  n = {};
  n.length = static_cast<std::uint8_t>(settings.name.size());
  std::memcpy(n.text, settings.name.data(), settings.name.size());
  const bool empty = settings.initial == rule::Initial::Empty || floors_empty_;
  rule(id) = fresh_rule(settings, index, now, empty);
  return {};
}

Result<bool> Publisher::change_limit(std::uint32_t index, const rule::LimitSettings& settings,
                                     std::int64_t now, std::int64_t base_t) {
  const std::uint16_t old_id = config(index).rule[0];
  const RuleRecord old = rule(old_id);
  if (same_numbers(old, settings)) return false;
  if (old.pred != 0) {
    // The factor of a conversion counts from this rule's base_n, which a second change would move.
    return Error{Errc::Busy, "entries of an earlier change of limit '" + settings.name +
                                 "' are still being converted; try again in a moment"};
  }
  if (fits_scale(old, settings)) {
    rule(old_id) = keep_used(old, settings, base_t);
    return true;
  }
  if (sweeping_) {
    return Error{Errc::Busy,
                 "entries of former rules are still being cleared; try again in a moment"};
  }
  const std::uint32_t id = free_rule(now);
  if (id == kNone) {
    return Error{Errc::Busy,
                 "no rule id is free for limit '" + settings.name +
                     "': freed ones rest for an hour; raise capacity.limits and restart, or wait"};
  }
  rule(id) = successor(old, old_id, settings, base_t);
  rule(old_id) = predecessor(old, base_t);
  config(index).rule[0] = static_cast<std::uint16_t>(id);
  return true;
}

void Publisher::remove_limit(std::uint32_t index, std::int64_t now) {
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    if (rule(id).kind == 0 || rule(id).limit != index) continue;
    rule(id) = {};
    resting_rules_.push_back({id, now + kRuleRestNs});
  }
  config(index).windows = 0;
  config(index).incarnation += 1;                        // handles of the old name are told at once
  resting_limits_.push_back({index, now + kRuleRestNs});
}

std::uint32_t Publisher::index_of(std::string_view wanted) noexcept {
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows != 0 && std::string_view{name(i).text, name(i).length} == wanted)
      return i;
  }
  return kNone;
}

std::uint32_t Publisher::free_limit(std::string_view wanted, std::int64_t now) noexcept {
  // A name that comes back gets its old place at once: nobody else could be confused by it.
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows == 0 && name(i).length != 0 &&
        std::string_view{name(i).text, name(i).length} == wanted) {
      return i;
    }
  }
  // One that nobody ever had comes first: counters are never zeroed, a used index goes on counting.
  std::uint32_t used = kNone;
  for (std::uint32_t i = 0; i < view_.limit_count; ++i) {
    if (config(i).windows != 0 || resting(i, now, resting_limits_)) continue;
    if (config(i).incarnation == 0) return i;
    if (used == kNone) used = i;
  }
  return used;
}

std::uint32_t Publisher::free_rule(std::int64_t now) noexcept {
  for (std::uint32_t id = kFirstRuleId; id < view_.rule_count; ++id) {
    if (rule(id).kind == 0 && !resting(id, now, resting_rules_)) return id;
  }
  return kNone;
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
