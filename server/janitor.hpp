// SPDX-License-Identifier: Apache-2.0
// What the daemon does without being asked, ten times a second, each time a bounded piece:
// gives back what the dead held, sweeps buckets of rules that are gone, counts how full the table
// is, says when keys find no place, compares the rules with their checksum, notices names that
// somebody removed, makes room at patterns whose places are all taken, writes new calendar edges
// before the known ones run out and when the wall clock was set, and beats. (On a stepped clock
// edges stay as they were published: the last period repeats, as in memory.)
//
// Reaping: a pidfd that fires is acted on at once; orphans are looked for in /proc/PID/maps after
// 5 s, by a thread of its own: maps of a process that hangs in the kernel can hold their reader.
// Bounds per tick: kSlotsPerTick slots swept and as many counted, kLimitsPerTick limits looked at,
// RowBook::kMaxLooks maps, kBreakersPerTick breakers' durations, HoldMedians::kAtOnce bulkheads'
// times. What a dead row held goes in pieces too (server/reaper.hpp).
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <asio.hpp>

#include "log.hpp"
#include "memory.hpp"
#include "peer.hpp"
#include "process_watch.hpp"
#include "reaper.hpp"
#include "row_book.hpp"
#include "rows/segment_rows.hpp"
#include "shm/bulkhead/median.hpp"
#include "shm/pattern_idle.hpp"

namespace cutwater::server {

class Janitor {
 public:
  static constexpr std::uint64_t kSlotsPerTick = 65536;
  static constexpr std::uint64_t kSlotsCountedAtOnce = std::uint64_t{1} << 20;
  static constexpr std::uint32_t kLimitsPerTick = 64;
  static constexpr std::uint32_t kBreakersPerTick = 128;
  /// Keys of one limit without a place are said so often at most.
  static constexpr std::uint64_t kSayNoPlaceNs = 60'000'000'000;
  static constexpr std::uint32_t kTicksPerSecond = 10;
  static constexpr std::uint32_t kTicksPerMinute = 600;
  /// The wall clock was set when it moved this far against the segment's clock.
  static constexpr std::int64_t kClockSetNs = 50'000'000;

  Janitor(asio::io_context& loop, Memory& memory, Log& log);

  /// Rows a former daemon left: the living stay as they are, the others are given back. So too in
  /// a memory that was moved: what the living hold was copied, and they take their row over when
  /// they attach anew; who has not after RowBook::kOrphanGraceNs does not map it and is given back.
  struct Adopted { std::uint32_t kept = 0, reaped = 0; };
  Adopted adopt_rows(std::uint64_t now_ns);

  /// A row for a process that maps the memory. `token`: the row its former session had.
  struct Attach {
    const PeerProcess* peer = nullptr;
    shm::UniqueFd pidfd;
    std::uint64_t connection = 0;
    std::string name;
    std::optional<shm::RowGrant> token;
    bool comes_again = false;          ///< want = row
    bool asks = false;                 ///< it does not map the memory
    bool returns = true;               ///< asks: its session can be taken over
  };
  Result<shm::RowGrant> attach(Attach attach);
  /// A session that only asks goes on over another connection. False: its row is gone.
  bool taken_over(shm::RowGrant row, std::uint64_t connection);
  /// `ours`: the daemon stops. Then the row of a session that asks is not due.
  void connection_ended(std::uint64_t connection, bool said_bye, std::uint64_t now_ns,
                        bool ours = false);
  /// RowBook::came_back().
  void came_back(shm::RowGrant row, std::uint64_t now_ns);

  void tick(std::uint64_t now_ns);
  /// After each publication: what the checksum of the rules must be from now on.
  void rules_published();

  const RowBook& book() const noexcept { return book_; }
  /// From the last complete count of the table; a small table is counted anew, at most once a tick.
  const rows::TableFill& fill();
  bool names_lost() const noexcept { return names_lost_; }
  /// The memory was moved to other files: processes map the old ones, so their rows are given back;
  /// they get new ones when they attach anew.
  void memory_replaced();
  std::uint64_t repairs() const noexcept { return repairs_; }

 private:
  void carry_out(const RowActions& actions);
  void reap_row(shm::RowGrant row);
  void reap_on();
  void look_at_maps(const RowAction& action);
  void reap_row_of(shm::RowGrant row);
  void look_at_breakers();
  void look_at_bulkheads();
  void settle_bulkheads();
  void make_room();
  void look_at_durations();
  void look_at_calendars();
  void look_at_names();
  void look_at_stripes();
  void look_at_places(std::uint64_t now_ns);
  void compare_rules();
  void count_table(std::uint64_t slots);

  asio::io_context& loop_;
  Memory& memory_;
  Log& log_;
  RowBook book_;
  ProcessWatch watch_;
  Reaper reaper_;
  Memory::Identity state_identity_;
  std::uint64_t ticks_ = 0;
  std::uint64_t rules_current_ = 0;
  std::uint32_t rules_crc_ = 0;
  std::uint64_t repairs_ = 0;
  std::uint64_t next_counted_ = 0;
  std::uint64_t counted_at_tick_ = ~std::uint64_t{0};
  rows::TableFill counting_, fill_;
  struct NoPlace { std::uint64_t said = 0, due_ns = 0; };   ///< decisions said, next line
  std::vector<NoPlace> no_place_;                            ///< by limit
  std::uint32_t next_limit_ = 0;
  std::uint32_t next_breaker_ = 0;
  shm::HoldMedians hold_medians_;
  shm::IdlePlaces idle_places_;
  bool names_lost_ = false;
  bool renewal_owed_ = false;        ///< the wall clock was set, and nothing was published since
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::optional<asio::thread_pool> looker_;   // one thread, from the first look on; ends first
};

}  // namespace cutwater::server
