// SPDX-License-Identifier: Apache-2.0
// Segment: the mapping of the three memory files, made, checked and undone here.
//
// Life of a segment: the daemon creates the files as `*.next` under its lock, reserves every page,
// writes the header, stores the ready word last and renames; clients receive descriptors, map,
// check and close them; only the daemon ever unlinks. A kill at any step leaves either no ready
// file or a whole one (C045, C049, C052). Checks at attach and adoption (spec memory 3.3): magic,
// ABI, feature bits, CRC, equal uuid, file kind, every region inside the file's real size in
// 128-bit arithmetic, boot id, time namespace. The region table is copied to private memory once
// (View); bounds are never read from shared memory again.
// Thread safety: create/map from one thread; view() from any.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <cutwater/result.hpp>

#include "shm/view.hpp"

namespace cutwater::shm {

/// How much the segment holds. All of it is reserved at creation (design 4.1). Ranges: spec config,
/// `capacity`.
struct Capacity {
  std::uint64_t keys = 262'144;  ///< places for keys in debt, 1024..2^30; 32 bytes each (two slots)
  std::uint32_t limits = 256;          ///< 1..65535
  std::uint32_t processes = 1024;      ///< 16..65533
  std::uint32_t stripes = 32;          ///< 1..4096
  std::uint32_t events = 4096;         ///< 1024..2^20
  std::uint32_t overrides = 4096;      ///< 0..2^20 keys of all limits with numbers of their own
  std::uint32_t tops = 64;             ///< 0..4096 keys of each limit in its list of the busiest
  std::uint32_t calendars = 64;        ///< 1..65535 different ones (unit and zone) of all limits
  std::uint32_t breakers = 64;         ///< 0..65535
  std::uint64_t breaker_memory = std::uint64_t{512} << 10;  ///< bytes: rings, probes, users
  std::uint32_t trips = 1024;          ///< 0..65536 last openings of breakers with their causes
  std::uint32_t bulkheads = 64;        ///< 0..65535
  std::uint32_t bulkhead_cells = 4096; ///< 0..2^20 places of all bulkheads; 16 bytes each
  std::uint32_t waiters = 1024;        ///< 0..2^18 calls in line at all bulkheads; 64 bytes each
  bool remember_keys = false;          ///< names of keys: 96 bytes more for each of `keys`
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

/// The capacity a segment made with `capacity` has: keys rounded up to whole groups. Compare this
/// with Segment::capacity() to see whether a memory found fits the configuration.
Capacity rounded(const Capacity& capacity) noexcept;
/// Rule ids reserved for `limits` limits: 4 each and the reserved ones, at most 65535.
std::uint32_t rule_capacity(std::uint32_t limits) noexcept;
/// Records of the override table for `overrides` keys: a power of two, at most half of it used.
std::uint32_t override_slots(std::uint32_t overrides) noexcept;
/// Sets of rules reserved for overrides: no more than there are overrides or rule ids.
std::uint32_t set_capacity(const Capacity& capacity) noexcept;
/// Key patterns reserved: one for each 16 overrides, but 16 of the first ones may be patterns.
std::uint32_t pattern_capacity(const Capacity& capacity) noexcept;
/// Bytes of one file.
std::uint64_t file_length(const Capacity& capacity, FileKind file) noexcept;
/// Bytes of all three files together.
std::uint64_t total_length(const Capacity& capacity) noexcept;

struct SegmentOptions {
  Capacity capacity;
  ClockKind clock = ClockKind::Boottime;
  bool tsc = false;                    ///< sets kFeatureTsc; the caller has checked tsc_usable()
  bool huge_pages = false;             ///< MADV_HUGEPAGE on the buckets
  std::int64_t stepped_start_ns = kEpochLeadNs;
};

/// The three descriptors, by FileKind. -1 = none. Never closed by Segment: their owner does.
using SegmentFiles = std::array<int, 3>;

enum class Access {
  Owner,       ///< everything read-write: the daemon, a private segment
  Client,      ///< rules read-only, state and stats read-write
  ReadOnly,    ///< everything read-only: the CLI, exporters
};

class Segment {
 public:
  /// A private, anonymous segment of this process (Client::in_memory, replay). Same layout, same
  /// code paths.
  static Result<Segment> create_private(const SegmentOptions& options);

  /// Makes the three files in the directory `directory_fd` (checked by shm/directory.hpp), reserves
  /// their pages, writes the headers, renames `*.next` into place, and maps them as Owner. The
  /// caller holds the lock. NoMemory names needed and available bytes; System has the kernel's
  /// message.
  static Result<Segment> create_files(int directory_fd, const SegmentOptions& options);

  /// Maps files that exist, after all checks. Damaged/LayoutMismatch/ClockMismatch name the check
  /// that failed. `check_boot`: refuse a memory of another boot (always, but for the offline
  /// verify).
  static Result<Segment> map(const SegmentFiles& files, Access access, bool check_boot = true);

  /// Opens `rules`, `state`, `stats` in the directory (no links followed) and maps them.
  /// Errc::NoDaemon when `rules` is not there: it is renamed last, so there is no whole memory
  /// then.
  static Result<Segment> open_files(int directory_fd, Access access, bool check_boot = true);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  /// Stays valid when the Segment is moved.
  const View& view() const noexcept { return view_; }
  Capacity capacity() const noexcept;
  /// The page in the mapping. For people and messages; bounds come from view() only.
  const FileHeader& header(FileKind file) const noexcept;

 private:
  struct Parts;
  explicit Segment(std::unique_ptr<Parts> parts, const View& view) noexcept;
  static Result<Segment> create(const SegmentFiles& files, const SegmentOptions& options);

  std::unique_ptr<Parts> parts_;         ///< the three mappings
  View view_;
};

/// Opens the three files of a directory as descriptors for a client: rules O_RDONLY, state and
/// stats O_RDWR (all O_RDONLY when `read_only`), close-on-exec. The caller closes them.
Result<SegmentFiles> open_descriptors(int directory_fd, bool read_only);

/// True when the directory holds a whole memory that was written before this machine started: of no
/// use, to be discarded (C033). False also when there is none or it is damaged in another way.
bool files_of_another_boot(int directory_fd);
/// Removes `rules`, `state`, `stats` (in this order) and what a killed creation left. Under the
/// lock.
Result<void> discard_files(int directory_fd);
/// Renames `rules`, `state`, `stats` to `*.bad`, over older ones, for somebody to look at. Under
/// the lock.
Result<void> set_aside_files(int directory_fd);

/// Moves the stepped clock forward to `to_ns` (fetch-max; a smaller value changes nothing), wakes
/// sleepers, returns the clock's value afterwards. Only the creator calls it.
std::int64_t step_clock(const View& view, std::int64_t to_ns) noexcept;

}  // namespace cutwater::shm
