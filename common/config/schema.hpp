// SPDX-License-Identifier: Apache-2.0
// The one declarative table of every key of the file. Checking, defaults, overrides from outside,
// reload, `show` and `--help-config` all run along its rows; a key that is not here does not exist.
// Row invariants (tests/unit/config/schema_test.cpp): names are kebab-case and unique in their
// block, the default parses as a value of the row, and every row stores somewhere. Thread safety:
// constant data and pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace cutwater::config {

/// How the value of a key is read; value.cpp has one parser for each.
enum class Kind : std::uint8_t {
  Name,        ///< parse_name()
  Choice,      ///< one of `words`
  LockMemory,  ///< auto, true or false
  OnFull,      ///< parse_what_if()
  Count,       ///< parse_count() within min..max
  Lease,       ///< off, or a count within min..max
  Duration,    ///< parse_duration() within min..max ns
  Rate,        ///< parse_rate(), or its map forms
  Mode,        ///< parse_mode()
  Place,       ///< an absolute path of at most max bytes, or one of `words`
  Target,      ///< stderr or file:PATH
  Text,        ///< one line of at most max bytes
  Group,       ///< one group, name or number
  Users,       ///< list of users, names or numbers, or "*"
  Groups,      ///< list of groups, names or numbers, or "*"
  Bool,        ///< parse_bool()
  Enabled,     ///< parse_bool(), or a list of what stays on
  True,        ///< the word true: it is written to say what something is
  Size,        ///< parse_size() within min..max
  Zone,        ///< the name of a time zone of this host
  Moment,      ///< parse_moment()
  Block,       ///< an inner block of plain rows, `words` names it
  Calendar,    ///< an inner block that says what a limit is
  Windows,     ///< a list of windows
  Keys,        ///< a map of keys and what each gets
  Percent,     ///< parse_percent(), or one of `words`
  Decimal,     ///< parse_decimal() within min..max ppm: a ratio or a factor
  Wait,        ///< a duration within min..max ns, or the one word: for ever
  OffDuration, ///< one of `words` for 0, or a duration within min..max ns
  WindowSize,  ///< calls, or a duration
  State,       ///< a state of a breaker
  Decision,    ///< rate, all-succeed, { rate-over: M } or { successes: k }
  Ramp,        ///< off, auto or { steps: [25, 50, 100], over: 5s }
  Classes,     ///< a list of classes of outcomes
};

/// When a reload takes a changed key over.
enum class Reload : std::uint8_t {
  Live,       ///< L: at once
  Start,      ///< S: only at start; the reload is refused as a whole
  Capacity,   ///< C: lower, or up to what was reserved at start
};

/// A value after parsing. `text` is its canonical spelling, the same for every way to write it.
struct Parsed {
  std::string text;
  std::uint64_t number = 0;             ///< count, ns, index of a choice, mode, id
  std::uint64_t period_ns = 0;          ///< Rate: `number` per this
  bool known = true;                    ///< Group: false when a default does not exist here
  bool everybody = false;               ///< Users, Groups: "*" was among them
  std::vector<std::uint32_t> ids;       ///< Users, Groups; Ramp: its steps
  std::vector<std::string> words;       ///< Classes
};

/// Where a row stores. Set are those its block needs: `limit` below limits.*, `over` below its
/// keys, `window` for what tells of one window.
struct Target {
  Config& config;
  rule::LimitSettings* limit = nullptr;
  rule::OverrideSettings* over = nullptr;
  rule::WindowSettings* window = nullptr;
  rule::BreakerSettings* breaker = nullptr;
  rule::BulkheadSettings* bulkhead = nullptr;
};

struct Key {
  std::string_view block = {};      ///< "instance", "listen.unix", "limits.*", ...
  std::string_view name = {};       ///< kebab-case
  Kind kind = Kind::Text;
  std::uint64_t min = 0;       ///< in the unit of the value
  std::uint64_t max = 0;
  std::string_view words = {};      ///< Choice, Place: separated by spaces
  std::string_view fallback = {};   ///< the default as one would write it; empty: see `help`
  Reload reload = Reload::Live;
  std::string_view help = {};       ///< one sentence or two
  void (*store)(const Target& target, const Parsed& value) = nullptr;
  std::string_view trap_word = {};   ///< a word that is often tried here,
  std::string_view trap_text = {};   ///< and what is said about it
  rule::LimitKind says = rule::LimitKind::Bucket;   ///< of a row with `shape`
  bool shape = false;                ///< says what a limit or key is: exactly one is written
  /// Rows whose default depends on a preset: what stands in the settings, as a number of the row's
  /// kind or as text.
  std::uint64_t (*load)(const Target& target) = nullptr;
  std::string (*print)(const Target& target) = nullptr;
  std::string_view same_as = {};     ///< the key of the same block that says the same in our words
  std::string_view presets = {};     ///< taken under these presets only; empty: under all
};

/// Where the keys of a limit stand, and those of what stands in it.
inline constexpr std::string_view kLimitBlock = "limits.*";
inline constexpr std::string_view kWindowBlock = "limits.*.windows[]";
inline constexpr std::string_view kCalendarBlock = "limits.*.calendar";
inline constexpr std::string_view kKeyBlock = "limits.*.keys.*";
inline constexpr std::string_view kIpPrefixBlock = "limits.*.ip-prefix";
/// Where the keys of a breaker and of a bulkhead stand.
inline constexpr std::string_view kBreakerBlock = "breakers.*";
inline constexpr std::string_view kBulkheadBlock = "bulkheads.*";

/// Sections whose blocks have names of the operator's choice: limits, breakers, bulkheads.
std::span<const std::string_view> named_sections();

/// The section of a block below a name ("limits" for "limits.*.calendar"), or empty.
std::string_view section_of(std::string_view block);

/// A block as the operator would write it: "limits.NAME.calendar".
std::string title_of(std::string_view block);

/// Does a value of this kind fit one scalar, so that it can be set from outside?
bool is_scalar(Kind kind);

/// Every key, block after block, in the order in which help and show print them.
std::span<const Key> schema();

/// The rows of one block; empty when it has none of its own.
std::span<const Key> keys_of(std::string_view block);

/// The blocks that have keys of their own, in table order: "instance", "listen", "listen.unix", ...
std::vector<std::string_view> blocks();

/// What may stand directly in a block (""= the top): names of keys and of inner blocks.
std::vector<std::string_view> children_of(std::string_view block);

/// The row of a key, or null. `name` in kebab-case.
const Key* find_key(std::string_view block, std::string_view name);

/// The text of a number that a row's load() gave: "30s", "off", "50%".
std::string text_of(const Key& key, std::uint64_t number);

/// "1..65535", "0..1h", "auto, true or false": what a row accepts, for help and messages.
std::string range_text(const Key& key);

}  // namespace cutwater::config
