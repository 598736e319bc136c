// SPDX-License-Identifier: Apache-2.0
// The configuration of one instance: what the operator's YAML text means after every check, and the
// calls that read it. The daemon, `cutwaterctl config check` and in-memory clients all read the
// same text through here.
//
//   auto outcome = config::load_file("cutwater.yaml", config::system_options(environ));
//   if (!outcome.config) { std::cerr << outcome.report(); return 4; }
//   for (const auto& limit : outcome.config->limits) ...
//
// Strict on purpose: an unknown, misspelt, doubled or contradictory key refuses the whole text, and
// every error is named in one pass, sorted by place. Nothing is required: an empty text is a valid
// instance without limits. Bounds: text 1 MiB, depth 32, 100000 nodes (an alias counts as often as
// it is used), kMaxFindings lines of errors.
//
// Errors: in LoadOutcome, never thrown. No call here changes anything outside its result. Thread
// safety: the functions keep no state; Config is a value. Not for the decision path: they allocate.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/breaker_settings.hpp"
#include "rule/bulkhead_settings.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::config {

inline constexpr std::size_t kMaxTextBytes = 1 << 20;
inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxNodes = 100'000;
inline constexpr std::size_t kMaxFindings = 1000;   ///< lines kept; a last one counts the others
inline constexpr std::uint32_t kMaxLimits = 65535;
inline constexpr std::uint64_t kMaxKeys = 1ULL << 30;

// ---------------------------------------------------------------- where a value came from

enum class Source : std::uint8_t { Default, File, Environment, CommandLine, Preset };

/// A place an operator can go to. In a file: line and column, both from 1, column counted in bytes.
struct Place {
  Source source = Source::Default;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string name;   ///< Environment: the variable; CommandLine: the path as given; Preset: its
                      ///< word; File: the block of a base-config it stands in, else empty

  friend bool operator==(const Place&, const Place&) = default;
};

/// One effective value: `limits.login.rate` -> `10/s`, in one canonical spelling per meaning.
struct Value {
  std::string path;
  std::string text;
  Place place;   ///< of the value
  Place key;     ///< of its key (equal to `place` when the value did not come from a file)
};

// ---------------------------------------------------------------- the settings

enum class Clock : std::uint8_t { Boottime, Tsc };
enum class LockMemory : std::uint8_t { Auto, Yes, No };
enum class HugePages : std::uint8_t { Auto, Always, Never };
enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warn, Error };
enum class LogFormat : std::uint8_t { Text, Json };

/// The word of the value in the file: "boottime", "info", ...
std::string_view name_of(Clock value) noexcept;
std::string_view name_of(LockMemory value) noexcept;
std::string_view name_of(HugePages value) noexcept;
std::string_view name_of(LogLevel value) noexcept;
std::string_view name_of(LogFormat value) noexcept;

struct Instance {
  std::string name = "main";
  std::string memory_directory = "auto";   ///< "auto" or an absolute path
  Clock clock = Clock::Boottime;
  LockMemory lock_memory = LockMemory::Auto;
  HugePages huge_pages = HugePages::Auto;
  rule::Initial initial_after_damage = rule::Initial::Empty;
  std::string state_directory = "auto";    ///< "auto", "off" or an absolute path
  bool remember_keys = false;
  bool watch_file = true;
  bool enabled = true;                     ///< false: every breaker and bulkhead below is not
  std::uint64_t drain_ns = 10 * rule::kNanosPerSecond;   ///< 0..10m
};

struct Listen {
  std::string unix_path = "auto";          ///< "auto", "off" or an absolute path, <= 107 bytes
  std::uint32_t unix_mode = 0660;          ///< permission bits of the socket
  std::optional<std::uint32_t> unix_group; ///< gid for the socket; none: it stays the daemon's
  std::uint32_t max_connections = 1024;
  std::uint32_t max_connections_per_peer = 256;
  std::uint32_t max_frame = 64 * 1024;     ///< bytes
  std::uint32_t credit_items = 1024;       ///< unanswered at once, of one connection
  std::uint32_t credit_bytes = 256 * 1024; ///< the same in bytes; at least max_frame
  std::uint32_t max_unsent = 1024 * 1024;  ///< bytes of answers a connection may leave untaken
  std::uint64_t hello_timeout_ns = 2 * rule::kNanosPerSecond;
  std::uint64_t idle_timeout_ns = 300 * rule::kNanosPerSecond;
};

/// Who connects, as the kernel says it (SO_PEERCRED and the supplementary groups).
struct Peer {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
};

/// One list `{ users: [...], groups: [...] }` with its names looked up.
struct Principals {
  bool everybody = false;                  ///< "*"
  std::vector<std::uint32_t> users;        ///< uids, in the order written
  std::vector<std::uint32_t> groups;       ///< gids, in the order written

  bool contains(const Peer& peer) const noexcept;
};

/// Rights of local peers. root and the daemon's user have every right. Who may map has the bytes
/// themselves, so map implies ask and look; nothing implies steer.
enum class Right : std::uint8_t {
  Map,     ///< gets the descriptors of the memory
  Ask,     ///< decides over the socket
  Look,    ///< reads: status, limits, events
  Steer,   ///< changes: reset, ban, reload
};

struct Access {
  Principals map;
  Principals ask;
  Principals look;
  Principals steer;
  std::uint32_t daemon_uid = 0;            ///< from LoadOptions

  bool allows(Right right, const Peer& peer) const noexcept;
};

/// What is reserved at start. Beyond = the documented refusal, never growth.
struct Capacity {
  std::uint32_t keys = 262144;             ///< places for keys in debt, 32 bytes each
  std::uint32_t limits = 256;
  std::uint32_t processes = 1024;
  std::uint32_t stripes = 32;
  std::uint32_t events = 4096;
  std::uint32_t overrides = 4096;          ///< keys with an override or a ban, 64 bytes each
  std::uint32_t tops = 64;                 ///< rows of each limit's sketch of top keys; 0: none
  // These four: where nothing is written, what the blocks need, at least so much (fit_capacity).
  std::uint32_t breakers = 80;             ///< a pattern counts as its max-instances and one
  std::uint64_t breaker_memory = 512 * 1024;   ///< bytes of windows, probes and users
  std::uint32_t bulkheads = 80;
  std::uint32_t bulkhead_cells = 4096;     ///< places of all bulkheads together
  std::uint32_t waiters = 1024;            ///< calls in line at all bulkheads together
  std::uint32_t trips = 1024;              ///< last openings with their causes

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

struct Log {
  LogLevel level = LogLevel::Info;
  LogFormat format = LogFormat::Text;
  std::string file;                        ///< absolute path, or empty: stderr
  std::uint32_t queue = 4096;              ///< lines that wait for the writer
};

struct Config {
  Instance instance;
  Listen listen;
  Access access;
  Capacity capacity;
  Log log;
  std::vector<rule::LimitSettings> limits; ///< in the order of the file
  std::vector<rule::BreakerSettings> breakers;   ///< and patterns, in the order of the file
  std::vector<rule::BulkheadSettings> bulkheads; ///< the same
  std::vector<Value> values;     ///< every effective value, schema order, named blocks last
  std::string file_name;                   ///< as given to load_text()
  std::uint64_t hash = 0;                  ///< hash_of() of these values

  /// The limit of that name, or null.
  const rule::LimitSettings* find_limit(std::string_view name) const noexcept;
  /// The effective value at a path such as "log.level", or null.
  const Value* find_value(std::string_view path) const noexcept;
};

// ---------------------------------------------------------------- loading

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
using Lookup = std::function<std::optional<std::uint32_t>(const std::string& name)>;

/// What comes from outside the text. The default is offline: no environment, no `--set`, every
/// `${NAME}` unset, names of users and groups accepted as written and not looked up (in-memory
/// clients need none).
struct LoadOptions {
  Pairs environment;   ///< CUTWATER_LOG__LEVEL -> debug; see overrides_from()
  Pairs settings;      ///< --set log.level=debug; wins over the environment, later over earlier
  Variables variable;  ///< what ${NAME} stands for; null: all unset
  Lookup user_id;      ///< null: names are not looked up
  Lookup group_id;     ///< null: names are not looked up
  std::uint32_t daemon_uid = 0;
};

/// Options of a daemon or of `config check`: variables and CUTWATER_ overrides from `environment`
/// (as of main()'s environ, may be null), names from the system's user database, the effective uid.
LoadOptions system_options(const char* const* environment);

/// The variables of `environment` that are meant as overrides: all that begin with CUTWATER_,
/// except CUTWATER_CONFIG, CUTWATER_ADDRESS, CUTWATER_IF_ABSENT and CUTWATER_ENABLED. Sorted by
/// name.
Pairs overrides_from(const char* const* environment);

/// Where a value comes from, as people read it: "default", "preset resilience4j",
/// "cutwater.yaml:9:11", "base-config shared, cutwater.yaml:4:5", "environment CUTWATER_X".
std::string origin_text(const Place& place, std::string_view file_name);

/// One error or note. line() is `FILE:LINE:COLUMN: PATH: TEXT`; an override says `environment
/// CUTWATER_X` or `command line --set PATH` in front instead.
struct Finding {
  std::string where;   ///< "cutwater.yaml:9:11"
  std::string path;    ///< "limits.login.rate"; empty for a fault of the whole text
  std::string text;    ///< "\"10\" has no period; write 10/s, 10/m, 10/h or 10/d"

  std::string line() const;
};

struct LoadOutcome {
  std::optional<Config> config;    ///< set exactly when there are no errors
  std::vector<Finding> errors;     ///< sorted by place
  std::vector<Finding> notes;      ///< never fail; sorted by place

  bool ok() const noexcept { return config.has_value(); }
  /// All errors, one a line, then "3 errors; " + `ending` as a last line. Empty when there are
  /// none.
  std::string report(std::string_view ending = "nothing was started") const;
};

/// Reads a text. `file_name` is only printed.
LoadOutcome load_text(std::string_view text, std::string file_name,
                      const LoadOptions& options = {});

/// Reads a file: regular, at most kMaxTextBytes; neither it nor its folder may be writable by
/// others (a sticky folder such as /tmp is accepted for a file of root or of the caller, a
/// read-only mount always). Symlinks are followed, both folders are looked at. What is wrong with
/// the file is one error without a line.
LoadOutcome load_file(const std::string& path, const LoadOptions& options = {});

/// The same as one Result: InvalidConfig whose text is report().
Result<Config> to_result(LoadOutcome outcome);

// ---------------------------------------------------------------- after loading

/// What forbids taking over `next` while `running` runs: changed keys that are read only at start,
/// and capacities above what was reserved. Empty: the reload may go ahead, whole. Sorted by place;
/// same form as load errors. `reserved` is the capacity the daemon started with (`running` may have
/// been lowered since).
std::vector<Finding> reload_errors(const Config& running, const Config& next,
                                   const Capacity& reserved);
std::vector<Finding> reload_errors(const Config& running, const Config& next);

/// The effective configuration, one `path: value` a line, each with its origin behind `#`.
std::string show(const Config& config);

/// 64-bit FNV-1a over the sorted `path: value` lines: equal for texts that mean the same, whatever
/// their spelling, order or origin; stable over versions that know the same keys.
std::uint64_t hash_of(const Config& config);

/// Every key of the file with type, range, default, when a change takes effect, and help:
/// `--help-config`.
std::string describe_keys();

}  // namespace cutwater::config
