// SPDX-License-Identifier: Apache-2.0
// From the memory's event log to the EVENT rows of WATCH: what is new since the last look, at most
// kMaxPerLook a time. What is overwritten before it is looked at is lost to watchers as it is to
// everybody; numbers show the gap.
//
//   kind bit   events
//   transition breaker_moved: once each, though its writer was killed (wire/event_queue.hpp)
//   trip       breaker_would_open, breaker_local_fault, breaker_flapping
//   permit     breaker_probe_expired, breaker_reclaimed, place_reclaimed, place_revoked
//   manual     limit_reset, manual_act              config    config_*, daemon_*
//   client     client_*, rights_changed, slow_reader
//   overflow   table_full                           degraded  damage
// seq is the event's number + 1: a WATCH from 0 means from now. Rows are made once and shared by
// all watches. Never a caller's key: none is in the log.
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <vector>

#include "shm/event_log.hpp"
#include "wire/event_queue.hpp"

namespace cutwater::server {

class EventFeed {
 public:
  static constexpr std::uint32_t kMaxPerLook = 1024;

  /// What is appended from now on is new.
  explicit EventFeed(const shm::View& view);

  /// The next event's seq.
  std::uint64_t next_seq(const shm::View& view) const;
  /// What is new. Empty when nothing is.
  std::vector<wire::SharedEvent> look(const shm::View& view);
  /// Events from `seq` up to the newest one that look() gave out.
  std::vector<wire::SharedEvent> since(const shm::View& view, std::uint64_t seq) const;

 private:
  std::uint64_t next_ = 0;             // number of the first event not given out
};

/// One row. The name is that of the limit, breaker or bulkhead the event is about, or "". Of the
/// last two the data has the event in words, and of a transition from, to, reason.
wire::EventRow event_row(const shm::View& view, const shm::Event& event);

}  // namespace cutwater::server
