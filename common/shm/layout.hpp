// SPDX-License-Identifier: Apache-2.0
// Every byte of the segment is declared here and nowhere else.
// LAYOUT.md tells the same in prose, with who writes what and the numbered invariants that tests
// cite. Fixed-width, standard-layout, no pointers (offsets and indexes), padding named and zero. A
// change of any offset raises kAbiMajor.
//
// Three files on tmpfs (design 4.1):
//   rules written by the daemon only, mapped read-only by clients: header, control page, two whole
//     rule images
//   state everything a decision reads and writes: stepped clock, buckets, overflow words, process
//     rows
//   stats  counters and events; never an input of a decision
// Each file: page 0 = FileHeader (immutable once `ready`), page 1 = control, then 64-byte aligned
// regions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/cas16.hpp"
#include "shm/layout_image.hpp"

namespace cutwater::shm {

inline constexpr std::uint64_t kMagic = 0x3152455441575543ULL;   // "CUWATER1" as bytes
inline constexpr std::uint16_t kAbiMajor = 5;
inline constexpr std::uint16_t kAbiMinor = 0;
inline constexpr std::uint64_t kFeaturesKnown = 0;  // feat_required bits this build understands
inline constexpr std::uint64_t kFeatureTsc = 1;     // feat_optional: clients may read time by TSC
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kBucketAlign = std::size_t{2} << 20;  // huge pages want 2 MiB
inline constexpr std::int64_t kHorizonNs = std::int64_t{1}
                                           << 59;  // 18.2 years: stamps beyond are refused
inline constexpr std::int64_t kEpochLeadNs = 1'000'000'000;        // segment time starts at 1 s

enum class FileKind : std::uint32_t { Rules = 0, State = 1, Stats = 2 };
enum class ClockKind : std::uint32_t { Boottime = 0, Stepped = 1 };

/// Kinds of regions. Numbers are stable. What those of breakers and bulkheads hold:
/// shm/breaker/layout.hpp, shm/bulkhead/layout.hpp.
enum class RegionKind : std::uint32_t {
  None = 0,
  Image = 1,         ///< rules: two images; stride = bytes of one
  ImageLimits = 2,   ///< rules, offset inside an image: LimitConfig[]
  ImageRules = 3,    ///< rules, offset inside an image: RuleRecord[] by rule id; id 0 is never used
  ImageNames = 4,    ///< rules, offset inside an image: NameRecord[] by limit index
  Bucket = 5,        ///< state: Word16[]; count = slots, flags = k (groups = k * G0)
  Limit = 6,         ///< state: LimitState[]
  Rows = 7,          ///< state: ProcessRow[]; row 0 invalid, row 1 the daemon
  ImageOverrides = 8,  ///< rules, offset inside an image: OverrideRecord[], a power of two of them
  ImageSets = 9,       ///< rules, offset inside an image: SetRecord[]; 0 none, 1 and 2 fixed
  ImagePatterns = 10,  ///< rules, offset inside an image: PatternRecord[]
  ImageCalendars = 11, ///< rules, offset inside an image: CalendarRecord[]
  ImageBreakers = 12,      ///< rules, offset inside an image: BreakerConfig[]
  ImageBreakerNames = 13,  ///< rules, offset inside an image: NameRecord[] by breaker index
  Breaker = 14,            ///< state: BreakerHead[]
  BreakerMemory = 15,      ///< state: lines of 64 bytes: rings, probe cells, user records
  Stripes = 16,      ///< stats: count stripes of stride bytes: StripeOwner + LimitCounters[limits]
                     ///< + BreakerCounters[breakers] + BulkheadCounters[bulkheads]
  Events = 17,       ///< stats: EventRecord[]
  Tops = 18,         ///< stats: TopRecord[], flags = how many of them each limit has
  ImageBreakerClasses = 19,  ///< rules, offset inside an image: BreakerClasses[]
  ImageBulkheads = 20,     ///< rules, offset inside an image: BulkheadConfig[]
  ImageBulkheadNames = 21, ///< rules, offset inside an image: NameRecord[] by bulkhead index
  Bulkhead = 22,           ///< state: BulkheadHead[]
  BulkheadCells = 23,      ///< state: u64[], a place each
  BulkheadStamps = 24,     ///< state: u64[], one beside each cell
  Waiters = 25,            ///< state: WaiterRecord[]
  Trips = 30,              ///< stats: TripRecord[] (shm/breaker/trip_layout.hpp)
  BreakerStories = 31,     ///< stats: BreakerStory[] by breaker index
  KeyNames = 32,           ///< stats: KeyName[], one beside each slot; none without remember-keys
};

struct Region {
  std::uint32_t kind;      ///< RegionKind
  std::uint32_t stride;    ///< bytes of one element
  std::uint64_t offset;    ///< from the start of the file (of an image for Image*), 64-byte aligned
  std::uint64_t count;     ///< elements
  std::uint64_t flags;
};
inline constexpr std::size_t kRegions = 16;

struct FileHeader {
  std::uint64_t magic;
  std::uint16_t abi_major;
  std::uint16_t abi_minor;
  std::uint32_t header_length;       ///< sizeof(FileHeader)
  std::uint64_t features_required;
  std::uint64_t features_optional;
  std::uint8_t uuid[16];             ///< the same in all three files
  std::uint8_t boot_id[16];          ///< /proc/sys/kernel/random/boot_id
  std::int64_t epoch_ns;             ///< CLOCK_BOOTTIME at creation - 1 s; 0 for a stepped clock
  std::uint32_t clock;               ///< ClockKind
  std::uint32_t page_kind;           ///< 0 ordinary pages, 1 huge pages asked for
  std::uint64_t time_namespace;      ///< inode of /proc/self/ns/time, 0 unknown
  std::uint64_t total_length;        ///< of this file
  std::uint32_t file;                ///< FileKind
  std::uint8_t pad_a[28];
  Region region[kRegions];           ///< at 128
  std::uint32_t crc32c;              ///< at 640: of bytes 0..639
  std::uint32_t ready;               ///< stored last, release: kReady
  std::uint8_t pad_b[56];
  std::uint8_t secret[192];          ///< at 704: rules only, master secret of the key hash
  std::uint8_t pad_c[kPage - 896];
};
inline constexpr std::uint32_t kReady = 0x59444552;   // "REDY"
static_assert(sizeof(FileHeader) == kPage && std::is_standard_layout_v<FileHeader>);
static_assert(offsetof(FileHeader, epoch_ns) == 64 && offsetof(FileHeader, region) == 128);
static_assert(offsetof(FileHeader, crc32c) == 640 && offsetof(FileHeader, secret) == 704);

/// Page 1 of `rules`. `current` = generation:62 | superseded:1 (bit 1) | image:1 (bit 0), on a line
/// of its own.
struct RulesControl {
  std::uint64_t current;
  std::uint8_t pad_a[56];
  std::uint32_t changed;             ///< futex word, bumped after `current`
  std::uint32_t daemon_pid;
  std::uint64_t daemon_start_time;   ///< clock ticks since boot, field 22 of /proc/PID/stat
  std::uint32_t takeovers;           ///< daemons that adopted this memory
  std::uint32_t pad_b;
  std::uint64_t beat_ns;  ///< segment time of the daemon's last tick; for people only, never judged
  std::uint8_t successor[16];        ///< uuid of the memory that superseded this one
  std::uint8_t pad_c[kPage - 112];
};
static_assert(sizeof(RulesControl) == kPage && offsetof(RulesControl, changed) == 64);
static_assert(offsetof(RulesControl, successor) == 96);
inline constexpr std::uint64_t kCurrentImageBit = 1, kCurrentSupersededBit = 2;
inline constexpr unsigned kCurrentGenerationShift = 2;

/// Page 1 of `state`.
struct StateControl {
  std::int64_t stepped_ns;  ///< the stepped clock; moved by its creator only, never backwards
  std::uint32_t stepped_futex;       ///< bumped at each step, for sleepers
  std::uint8_t pad[kPage - 12];
};
static_assert(sizeof(StateControl) == kPage);

// ---- buckets -----------------------------------------------------------------------------------

// Slot = Word16 {tag, tat}. tag = fingerprint:46 | alt:1 | tentative:1 | rule id:16; tag 0 = never
// used. In a claim (tentative = 1) hi = deadline:40 (2^20 ns) | nonce:24.
inline constexpr unsigned kFingerprintBits = 46;
inline constexpr unsigned kFingerprintShift = 18;
inline constexpr std::uint64_t kTagAlt = std::uint64_t{1} << 17;
inline constexpr std::uint64_t kTagTentative = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kTagRuleMask = 0xffff;
inline constexpr std::size_t kGroupSlots = 16;     ///< 4 lines
inline constexpr std::size_t kLineSlots = 4;
inline constexpr unsigned kClaimTickShift = 20;    ///< one deadline tick is 2^20 ns
inline constexpr unsigned kClaimNonceBits = 24;

/// Per limit, in `state`. overflow[w] = {rule id, tat}: keys of this limit without a place share it
/// (on-full: share).
struct LimitState {
  std::uint64_t bans_until;
  std::uint64_t pad_a;
  Word16 overflow[kMaxWindows];
  std::uint8_t pad_b[16];
};
static_assert(sizeof(LimitState) == 128 && offsetof(LimitState, overflow) == 16);

// ---- rows ---------------------------------------------------------------------------------------

enum class RowKind : std::uint8_t { None = 0, Daemon = 1, Process = 2, Connection = 3, Remote = 4 };
enum class RowState : std::uint8_t { Free = 0, Live = 1, Orphan = 2, Dead = 3 };

/// Written by the daemon only; a client reads its own and others' liveness.
struct ProcessRow {
  std::uint64_t word;                ///< generation:32 | kind:8 | state:8 | 0:16
  std::uint32_t pid;
  std::uint32_t uid;
  std::uint64_t start_time;
  std::uint64_t pid_namespace;
  std::int64_t attached_ns;
  std::uint64_t connection;
  char name[48];                     ///< what the client said of itself; cut, always ends with 0
  std::int64_t due_ns;               ///< ORPHAN: CLOCK_BOOTTIME of its giving back, 0 = none is set
  std::uint8_t pad[24];
};
static_assert(sizeof(ProcessRow) == 128 && offsetof(ProcessRow, name) == 48);
inline constexpr std::uint32_t kDaemonRow = 1;
inline constexpr std::uint32_t kFirstClientRow = 2;

// ---- statistics --------------------------------------------------------------------------------

struct StripeOwner {
  Word16 owner;  ///< lo = row:32 | row generation:32, hi = thread id; {0,0} = free
  std::uint8_t pad[48];
};
static_assert(sizeof(StripeOwner) == 64);
inline constexpr std::uint32_t kSharedStripe =
    0;  ///< atomic adds; threads without a stripe, forked children

enum class LimitCounter : std::uint8_t {
  Allowed = 0,
  Refused = 1,
  Tokens = 2,          ///< of allowed asks
  NoPlace = 3,
  Degraded = 4,
  Undone = 5,          ///< tokens given back by receipt
  Waited = 6,
  Contention = 7,
  ShadowRefused = 8,   ///< allowed, and would have been refused were the limit not in shadow
  Banned = 9,          ///< refused by a ban or as blocked; also in Refused
  Charged = 10,        ///< tokens charged after the fact
  Uncharged = 11,      ///< ... and those that went beyond max-debt
  Credited = 12,       ///< tokens an operator gave
  Drained = 13,        ///< tokens an operator took
  Unlimited = 14,      ///< allowed without a bucket; also in Allowed
  Overridden = 15,     ///< asks that an override decided
};
inline constexpr std::size_t kLimitCounters = 16;
struct LimitCounters {
  std::uint64_t value[kLimitCounters];
};
static_assert(sizeof(LimitCounters) == 128);

/// One key of a limit's list of the most refused and most asking ones: a sketch, never an input of
/// a decision. Any process writes; a torn record is told by its checksum and skipped.
struct TopRecord {
  std::uint64_t key_hash;            ///< of the key under the limit's secret; 0 = free
  std::uint64_t asked;
  std::uint64_t refused;
  std::uint64_t over;                ///< at most so much of the two may belong to earlier keys
  std::uint32_t check;               ///< CRC32C of all other bytes
  std::uint8_t length;               ///< of text; 0 unless show-keys: shown
  char text[27];                     ///< cut
};
static_assert(sizeof(TopRecord) == 64);

/// The readable name of the key whose entry lies in the slot of the same number, where
/// `instance.remember-keys` is on. For people, never an input of a decision. Who writes and who
/// believes it: shm/limit/key_name.hpp.
struct KeyName {
  std::uint64_t tag;                 ///< of the entry it was written for; 0 = none, or half written
  std::uint8_t length;               ///< 0..39: the whole key. kKeyNameCut: the first 31 bytes of a
                                     ///< longer one, and behind them 8 bytes of seal
  char text[39];
};
static_assert(sizeof(KeyName) == 48 && offsetof(KeyName, text) == 9);
inline constexpr std::size_t kKeyNameWhole = sizeof KeyName::text;   ///< bytes of a key kept whole
inline constexpr std::size_t kKeyNameShown = kKeyNameWhole - sizeof(std::uint64_t);
inline constexpr std::uint8_t kKeyNameCut = 255;

enum class EventKind : std::uint8_t {
  None = 0,
  DaemonStarted = 1,
  DaemonTookOver = 2,
  DaemonStopped = 3,
  ConfigReloaded = 4,
  ConfigRefused = 5,
  ClientAttached = 6,
  ClientGone = 7,
  ClientRefused = 8,
  LimitReset = 9,
  TableFull = 10,
  Damage = 11,
  BreakerMoved = 12,         ///< object = breaker, epoch, from, to, reason: one for each transition
  BreakerWouldOpen = 13,     ///< METRICS_ONLY: once per visit and reason
  BreakerProbeExpired = 14,  ///< a probe past its deadline, its owner alive; row
  BreakerReclaimed = 15,     ///< a probe of a dead owner; row
  BreakerLocalFault = 16,    ///< one process opened for itself; row
  BreakerFlapping = 17,      ///< four or more openings within ten minutes
  PlaceReclaimed = 20,       ///< a place of a dead owner, object = bulkhead; row
  PlaceRevoked = 21,         ///< a place held longer than max-hold; row
  ManualAct = 24,            ///< object: limit index; the text says what and which limit
  RightsChanged = 25,        ///< object: uid; its sessions were ended
  SlowReader = 26,           ///< object: uid; it did not take its answers
};

struct EventRecord {
  std::uint64_t number;              ///< event number + 1, stored last (release); 0 = being written
  std::int64_t t_ns;                 ///< segment time
  std::uint32_t object;              ///< limit index, row, ... by kind
  std::uint32_t epoch;               ///< (kind, object, epoch) names an event once
  std::uint8_t kind;                 ///< EventKind
  std::uint8_t from;
  std::uint8_t to;
  std::uint8_t reason;
  std::uint16_t row;
  std::uint16_t pad;
  std::uint8_t payload[28];
  std::uint32_t check;               ///< CRC32C of bytes 8..59 and the number
};
static_assert(sizeof(EventRecord) == 64 && offsetof(EventRecord, payload) == 32);

/// Page 1 of `stats`.
struct StatsControl {
  std::uint64_t next_event;          ///< number of the next event; fetch_add
  std::uint64_t damage;  ///< entries found beyond reach and repaired, indexes out of range
  std::uint64_t contention;          ///< loops that ran out of attempts
  std::uint64_t late_publish;        ///< publications that came after their own moment
  std::uint64_t reclaimed_rows;
  std::uint64_t next_trip;           ///< number of the next trip; fetch_add
  std::uint8_t pad[kPage - 48];
};
static_assert(sizeof(StatsControl) == kPage);

}  // namespace cutwater::shm
