// SPDX-License-Identifier: Apache-2.0
// Who holds which row, and why the daemon believes it alive. A machine: events and times go in,
// actions come out; sockets, pidfds and /proc stay with the caller.
//
//   LIVE    --BYE-->                                            reap
//   LIVE    --its process ended (pidfd)-->                      reap
//   LIVE    --connection ended without BYE, has a pidfd-->      ORPHAN   (others see it alive)
//   LIVE    --connection ended without BYE, has none-->         reap
//   ORPHAN  --its process offers itself again-->                LIVE
//   ORPHAN  --its process ended-->                              reap
//   ORPHAN  --5 s later: our memory is not in its maps-->       reap
//   ORPHAN  --the maps cannot be read, or it is there-->        kept; looked at again 5 s later
//   a row whose memory moved: kept while its process lives, whatever that maps, until it is offered
//   ADOPTED without a pidfd, not offered again within 5 s-->    reap
// Rows of sessions that only ask:
//   LIVE    --its end of the connection closed without BYE-->                    ORPHAN, due in 5 s
//   LIVE    --our end closed: the daemon stops-->                                ORPHAN
//   ADOPTED --its process lives-->                                               ORPHAN
//   ADOPTED --nobody can tell-->                                                 ORPHAN, due in 5 s
//   ORPHAN  --its client came back in another session-->                         ORPHAN, due in 5 s
//   ORPHAN  --taken over by another connection-->                                LIVE
//   ORPHAN  --due-->                                                             reap
//   ORPHAN, not due  --5 s later: it holds nothing-->                            reap
//   ORPHAN, not due  --it holds something-->        kept while its process lives; looked at again
// When it is due stands in the row, so the next daemon does not begin those 5 s anew.
// A closed socket alone never kills a row whose process can be watched: a forked child may hold the
// last copy, or a living process may have lost its connection (guard ReapOnPidfdOnly).
// Bounds: as many entries as rows; at most kMaxLooks maps are asked for in one tick.
// Thread safety: one thread.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shm/process_table.hpp"

namespace cutwater::server {

/// Owner of a row, as far as it decides about its life.
struct RowHolder {
  shm::RowGrant row;
  std::uint32_t pid = 0;
  std::uint64_t start_time = 0;
  std::uint64_t connection = 0;        ///< 0 = none (adopted from a former daemon)
  bool watched = false;                ///< by pidfd; else by the end of its connection
  bool asks = false;                   ///< RowKind::Connection: its session maps nothing
};

struct RowAction {
  enum class Kind {
    Orphan,        ///< mark the row ORPHAN, not due
    Due,           ///< mark the row ORPHAN, due kOrphanGraceNs from now
    Live,          ///< mark the row LIVE again
    Reap,          ///< it is dead: give everything back
    LookAtMaps,    ///< read /proc/PID/maps and call looked()
    LookAtCells,   ///< look whether the row holds anything and call looked()
  };
  Kind kind = Kind::Reap;
  shm::RowGrant row;
  std::uint32_t pid = 0;
};
using RowActions = std::vector<RowAction>;

class RowBook {
 public:
  static constexpr std::uint64_t kOrphanGraceNs = 5'000'000'000;
  static constexpr std::size_t kMaxLooks = 8;

  void attached(const RowHolder& holder);
  /// A row found in an adopted memory. `watched`: a pidfd could be had, so its process lives.
  /// `left_ns`: how much of its grace is left, as the row says; nullopt: it is not due.
  RowActions adopted(const RowHolder& holder, std::uint64_t now_ns,
                     std::optional<std::uint64_t> left_ns = {});
  /// All rows of processes lie in another memory now. They come over with the next thing they
  /// decide, over new connections: until then they need not map it.
  void memory_moved();

  /// The row that a process which comes again (want = row) takes over: the one its session token
  /// names, else any without a connection that is its own; behind a move the one it names, whether
  /// or not its old connection has ended. nullopt: it needs a new one.
  std::optional<shm::RowGrant> offered(std::uint32_t pid, std::uint64_t start_time,
                                       std::optional<shm::RowGrant> token,
                                       std::uint64_t connection, RowActions& out);

  /// A session that only asks goes on over another connection. False: its row is gone.
  bool taken_over(shm::RowGrant row, std::uint64_t connection, RowActions& out);

  /// The client of an orphan that only asks is there again, in another session: what it does not
  /// present within its grace it has forgotten. Does nothing to any other row.
  RowActions came_back(shm::RowGrant row, std::uint64_t now_ns);

  /// `ours`: this daemon ends it, because it stops itself.
  RowActions connection_ended(std::uint64_t connection, bool said_bye, std::uint64_t now_ns,
                              bool ours = false);
  RowActions process_ended(std::uint32_t row);
  /// `row` as LookAtMaps named it: an answer that comes after the row was granted anew is nobody's.
  RowActions looked(shm::RowGrant row, bool gone, std::uint64_t now_ns);
  RowActions tick(std::uint64_t now_ns);

  std::size_t size() const noexcept { return entries_.size(); }
  const RowHolder* find(std::uint32_t row) const;
  bool is_orphan(std::uint32_t row) const;

 private:
  struct Entry {
    RowHolder holder;
    bool orphan = false;
    std::uint64_t look_ns = 0;         ///< orphans: when to look (again)
    bool due = false;                  ///< given back then, whatever lives
    bool moved = false;                ///< not offered since its memory moved
  };
  void bury(std::map<std::uint32_t, Entry>::iterator at, RowActions& out);

  std::map<std::uint32_t, Entry> entries_;   // by row index
  std::map<std::uint64_t, std::uint32_t> by_connection_;
};

}  // namespace cutwater::server
