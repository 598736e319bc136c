// SPDX-License-Identifier: Apache-2.0
// The process table: one row per attached process. Written by
// the daemon only, which keeps the truth privately; a row in shared memory tells the others whether
// an owner lives.
//
// Row word = generation:32 | kind:8 | state:8 | 0:16; generation + 1 at each grant, so a successor
// is never taken for its predecessor (C058). R1: only the daemon writes rows. R2: a row is granted
// again only after everything of its last life was freed, oldest first. Spec memory 12.
// Thread safety: RowTable from the daemon's one loop; row_of()/row_alive() from anybody.
#pragma once
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "shm/view.hpp"

namespace cutwater::shm {

struct RowWord {
  std::uint32_t generation = 0;
  RowKind kind = RowKind::None;
  RowState state = RowState::Free;
};
RowWord unpack_row(std::uint64_t word) noexcept;
std::uint64_t pack_row(RowWord row) noexcept;

/// Snapshot of a row for people; false when the index is out of range.
struct RowInfo {
  std::uint32_t index = 0;
  RowWord word;
  std::uint32_t pid = 0, uid = 0;
  std::uint64_t start_time = 0, pid_namespace = 0, connection = 0;
  std::int64_t attached_ns = 0;
  std::int64_t due_ns = 0;           ///< ORPHAN: CLOCK_BOOTTIME of its giving back, 0 = not set
  char name[48] = {};
};
bool read_row(const View& view, std::uint32_t index, RowInfo& out) noexcept;

/// True when the row lives (LIVE or ORPHAN) with this generation.
bool row_alive(const View& view, std::uint32_t index, std::uint32_t generation) noexcept;

struct RowGrant {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

class RowTable {
 public:
  /// `fresh`: all rows are made free, generations go on. Otherwise the rows found are kept as they
  /// are (adoption); a row in a state that does not exist becomes DEAD, to be reaped.
  RowTable(const View& view, bool fresh);

  struct Owner {
    RowKind kind = RowKind::Process;
    std::uint32_t pid = 0, uid = 0;
    std::uint64_t start_time = 0, pid_namespace = 0, connection = 0;
    std::string_view name;             ///< cut to 47 bytes; control characters replaced
  };
  /// Grants the row that has been free the longest. Busy when the table is full.
  /// RowKind::Daemon always gets row 1, also when a predecessor left it LIVE.
  Result<RowGrant> grant(const Owner& owner);
  // Each of these does nothing when the row is of another generation or not in the state it starts
  // from.
  /// LIVE -> ORPHAN: its connection ended, its process may live on. Others still see it alive.
  /// Of an ORPHAN only `due_ns` changes (RowInfo), which a later daemon goes by.
  void mark_orphan(RowGrant row, std::int64_t due_ns = 0);
  /// ORPHAN -> LIVE: it offered itself again.
  void mark_live(RowGrant row);
  /// LIVE or ORPHAN -> DEAD: from here on others see the owner as gone.
  void mark_dead(RowGrant row);
  /// DEAD -> FREE, after everything of the row was given back. Last step of a reap.
  void free(RowGrant row);
  /// Rows that are not free, daemon's row included.
  std::vector<RowInfo> in_use() const;
  std::uint32_t live_count() const;

 private:
  void set_state(RowGrant row, RowState from, RowState to);

  View view_;
  std::vector<std::uint64_t> truth_;   ///< row words as the daemon knows them
  std::deque<std::uint32_t> free_;     ///< oldest first
};

/// Field 22 of /proc/PID/stat: start time in clock ticks; 0 when it cannot be read.
std::uint64_t process_start_time(std::uint32_t pid) noexcept;
/// Inode of /proc/PID/ns/pid (pid 0 = self); 0 when unknown.
std::uint64_t pid_namespace_of(std::uint32_t pid) noexcept;
/// Inode of /proc/self/ns/time; 0 when the kernel has none.
std::uint64_t time_namespace_of_self() noexcept;

}  // namespace cutwater::shm
