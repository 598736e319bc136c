// SPDX-License-Identifier: Apache-2.0
// The rows of a limit, of its windows, its calendar, its keys and its ip-prefix.
#include "config/schema_table.hpp"

namespace cutwater::config {
namespace {

using T = const Target&;
using V = const Parsed&;

constexpr std::string_view kOnChange = "keep-used additive as-is proportional reset";

void store_rate(T t, V v) {
  *t.window = rule::rate_window(v.number, v.period_ns, v.number);
}

void store_spacing(T t, V v) { *t.window = rule::rate_window(1, v.number, 1); }

void store_burst(T t, V v) { t.window->burst = v.number; }

void store_nothing(T, V) {}   // the row itself says it

void store_on_change(T t, V v) {
  static constexpr rule::OnChange kMeaning[] = {
      rule::OnChange::KeepUsed, rule::OnChange::KeepUsed, rule::OnChange::AsIs,
      rule::OnChange::Proportional, rule::OnChange::Reset};   // in the order of kOnChange
  t.limit->on_change = kMeaning[v.number];
}

// clang-format off
const Key kRows[] = {
  {.block = kLimitBlock, .name = "rate", .kind = Kind::Rate,
   .help = "Permits per period for each key: 10/s, 100/m, 1000/15m, 100 per minute, "
           "{ count: 100, per: 1m }. A limit has this or one of the next five.",
   .store = store_rate, .shape = true},
  {.block = kLimitBlock, .name = "windows", .kind = Kind::Windows, .min = 1,
   .max = rule::kMaxWindows,
   .help = "Several rates at once, all or none: [100/s, { rate: 10000/h, burst: 2000 }]; also "
           "{ spacing } and { calendar }.",
   .shape = true},
  {.block = kLimitBlock, .name = "spacing", .kind = Kind::Duration, .min = rule::kMinPeriodNs,
   .max = rule::kMaxPeriodNs,
   .help = "Least time between two permits of a key: a rate of 1 per it.",
   .store = store_spacing, .shape = true},
  {.block = kLimitBlock, .name = "calendar", .kind = Kind::Calendar,
   .help = "So many permits between two edges of the calendar. Up to twice as many can pass around "
           "an edge: the old period's at its end and the new one's at its beginning.",
   .shape = true},
  {.block = kLimitBlock, .name = "unlimited", .kind = Kind::True,
   .help = "Everything passes and is counted.", .store = store_nothing,
   .says = rule::LimitKind::Unlimited, .shape = true},
  {.block = kLimitBlock, .name = "blocked", .kind = Kind::True,
   .help = "Everything is refused as banned, for ever.", .store = store_nothing,
   .says = rule::LimitKind::Blocked, .shape = true},
  {.block = kLimitBlock, .name = "burst", .kind = Kind::Count, .min = 1, .max = rule::kMaxBurst,
   .help = "Most permits at once, beside rate. Default: the count of the rate (100/m: 100).",
   .store = store_burst, .shape = true},
  {.block = kLimitBlock, .name = "initial", .kind = Kind::Choice, .words = "full empty",
   .fallback = "full", .help = "What a new key has; empty: filling since the limit was first set.",
   .store = [](T t, V v) { t.limit->initial = narrow<rule::Initial>(v); }},
  {.block = kLimitBlock, .name = "on-full", .kind = Kind::OnFull, .words = "share deny allow",
   .fallback = "share",
   .help = "When there is no place for a new key: share one overflow bucket, deny, or allow (then "
           "such keys are not limited).",
   .store = [](T t, V v) { t.limit->on_full = narrow<rule::OnFull>(v); }},
  {.block = kLimitBlock, .name = "on-change", .kind = Kind::Choice, .words = kOnChange,
   .fallback = "keep-used",
   .help = "What a changed rate or burst leaves to each key. keep-used: the permits used stay "
           "used. as-is: those available stay, cut to the new burst. proportional: those used, "
           "scaled by the new burst. reset: nothing, every key is full. additive is another word "
           "for keep-used.",
   .store = store_on_change},
  {.block = kLimitBlock, .name = "mode", .kind = Kind::Choice, .words = "enforce shadow",
   .fallback = "enforce", .help = "shadow decides and counts as if enforced, and refuses nobody.",
   .store = [](T t, V v) { t.limit->mode = narrow<rule::Mode>(v); }, .trap_word = "METRICS_ONLY",
   .trap_text = "that is a breaker's word; write shadow"},
  {.block = kLimitBlock, .name = "keys", .kind = Kind::Keys,
   .help = "What single keys get instead: a key, hex:BYTES, a list of parts, or a pattern with one "
           "* -> a rate, windows, unlimited, banned. A key beats a pattern; at most 16 patterns, "
           "looked through in order. exact: in front takes a key as it stands."},
  {.block = kLimitBlock, .name = "max-wait", .kind = Kind::Duration, .max = rule::kMaxWaitNs,
   .fallback = "1h", .help = "Longest wait any caller is given a place in line for.",
   .store = [](T t, V v) { t.limit->max_wait_ns = v.number; }},
  {.block = kLimitBlock, .name = "max-waiting", .kind = Kind::Count, .max = rule::kMaxWaiting,
   .fallback = "1024", .help = "Callers asleep at once, in each process.",
   .store = [](T t, V v) { t.limit->max_waiting = narrow<std::uint32_t>(v); }},
  {.block = kLimitBlock, .name = "max-debt", .kind = Kind::Count, .max = rule::kMaxDebt,
   .fallback = "0",
   .help = "Permits a key may owe by charges after the fact; beyond, they are not charged. 0: as "
           "many as the burst.",
   .store = [](T t, V v) { t.limit->max_debt = v.number; }},
  {.block = kLimitBlock, .name = "thread-lease", .kind = Kind::Lease, .min = 1,
   .max = rule::kMaxThreadLease, .words = "off", .fallback = "off",
   .help = "Permits a thread takes at once for very hot keys; at most a sixteenth of the burst.",
   .store = [](T t, V v) { t.limit->thread_lease = narrow<std::uint32_t>(v); }},
  {.block = kLimitBlock, .name = "ip-prefix", .kind = Kind::Block, .words = kIpPrefixBlock,
   .help = "Bits of an address that make a key, for clients that make keys of addresses."},
  {.block = kLimitBlock, .name = "show-keys", .kind = Kind::Choice, .words = "hashed shown hidden",
   .fallback = "hashed",
   .help = "How keys appear to people, in the tool, in events and among the tops. Never in "
           "metrics, never in the log at info.",
   .store = [](T t, V v) { t.limit->show_keys = narrow<rule::ShowKeys>(v); }},
  {.block = kLimitBlock, .name = "note", .kind = Kind::Text, .max = rule::kMaxNoteLength,
   .help = "One line for people, shown by limit get.",
   .store = [](T t, V v) { t.limit->note = v.text; }},

  {.block = kWindowBlock, .name = "rate", .kind = Kind::Rate, .help = "As of a limit.",
   .store = store_rate, .shape = true},
  {.block = kWindowBlock, .name = "spacing", .kind = Kind::Duration, .min = rule::kMinPeriodNs,
   .max = rule::kMaxPeriodNs, .help = "As of a limit.", .store = store_spacing, .shape = true},
  {.block = kWindowBlock, .name = "calendar", .kind = Kind::Calendar, .help = "As of a limit.",
   .shape = true},
  {.block = kWindowBlock, .name = "burst", .kind = Kind::Count, .min = 1, .max = rule::kMaxBurst,
   .help = "Beside rate. Default: its count.", .store = store_burst, .shape = true},

  {.block = kCalendarBlock, .name = "count", .kind = Kind::Count, .min = 1, .max = rule::kMaxBurst,
   .help = "Required. Permits of one period.",
   .store = [](T t, V v) { t.window->rate_count = t.window->burst = v.number; }},
  {.block = kCalendarBlock, .name = "per", .kind = Kind::Choice,
   .words = "minute hour day week month year", .help = "Required. A week begins on Monday.",
   .store = [](T t, V v) { t.window->unit = narrow<rule::CalendarUnit>(v); }},
  {.block = kCalendarBlock, .name = "zone", .kind = Kind::Zone, .fallback = "UTC",
   .help = "Time zone whose clock makes the edges, daylight saving and all.",
   .store = [](T t, V v) { t.window->zone = v.text; }},

  {.block = kKeyBlock, .name = "rate", .kind = Kind::Rate, .help = "As of a limit.",
   .store = store_rate, .shape = true},
  {.block = kKeyBlock, .name = "windows", .kind = Kind::Windows, .min = 1,
   .max = rule::kMaxWindows, .help = "As of a limit.", .shape = true},
  {.block = kKeyBlock, .name = "spacing", .kind = Kind::Duration, .min = rule::kMinPeriodNs,
   .max = rule::kMaxPeriodNs, .help = "As of a limit.", .store = store_spacing, .shape = true},
  {.block = kKeyBlock, .name = "calendar", .kind = Kind::Calendar, .help = "As of a limit.",
   .shape = true},
  {.block = kKeyBlock, .name = "unlimited", .kind = Kind::True,
   .help = "This key is not limited. Short: KEY: unlimited.", .store = store_nothing,
   .says = rule::LimitKind::Unlimited, .shape = true},
  {.block = kKeyBlock, .name = "banned", .kind = Kind::True,
   .help = "This key is refused. Short: KEY: banned.", .store = store_nothing,
   .says = rule::LimitKind::Blocked, .shape = true},
  {.block = kKeyBlock, .name = "burst", .kind = Kind::Count, .min = 1, .max = rule::kMaxBurst,
   .help = "Beside rate. Default: its count.", .store = store_burst, .shape = true},
  {.block = kKeyBlock, .name = "until", .kind = Kind::Moment,
   .help = "End of a ban, such as 2030-01-01T00:00:00Z. Default: none. Not for a pattern.",
   .store = [](T t, V v) { t.over->until_unix_s = v.number; }},
  {.block = kKeyBlock, .name = "note", .kind = Kind::Text, .max = rule::kMaxNoteLength,
   .help = "One line for people.", .store = [](T t, V v) { t.over->note = v.text; }},

  {.block = kIpPrefixBlock, .name = "v4", .kind = Kind::Count, .max = 32, .fallback = "32",
   .help = "Bits of an IPv4 address.",
   .store = [](T t, V v) { t.limit->ip_prefix_v4 = narrow<std::uint8_t>(v); }},
  {.block = kIpPrefixBlock, .name = "v6", .kind = Kind::Count, .max = 128, .fallback = "64",
   .help = "Bits of an IPv6 address.",
   .store = [](T t, V v) { t.limit->ip_prefix_v6 = narrow<std::uint8_t>(v); }},
};
// clang-format on

}  // namespace

std::span<const Key> limit_rows() { return kRows; }

}  // namespace cutwater::config
