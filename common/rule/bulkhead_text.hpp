// SPDX-License-Identifier: Apache-2.0
// What a bulkhead says in words when it refuses (K8). One place, so that the library, the daemon
// and the tool say the same. Pure; allocates.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cutwater::rule {

/// What is known of a bulkhead when it refuses; everything read from one moment.
struct BulkheadStory {
  std::string_view name;
  std::uint32_t in_use = 0;            ///< places held, those beyond the limit included
  std::uint32_t limit = 0;
  std::uint32_t waiting = 0;           ///< callers in line
  std::int64_t oldest_ns = 0;          ///< how long the oldest holds; 0 = unknown
  std::int64_t waited_ns = 0;          ///< how long the refused one stood in line; 0 = it did not
  std::int64_t cut_wait_ns = 0;        ///< it would have waited so long, and may not; 0 = not so
  std::string_view shared_by;          ///< the pattern whose own places these are; "": its own
  bool expired = false;                ///< its own deadline passed; else the bulkhead is full
};

/// "bulkhead 'fraudCheck' is full: 10 of 10 places are held, the oldest for 3.2 s; 2 wait in line;
/// retry after about 40 ms"; with a wait that was cut "...; nobody may wait for one: its
/// max-wait-duration is 0, and the 200 ms asked for do not change that; ...", or "...; its
/// max-wait-duration ended the wait, 5 s were asked for; ...". `retry_after_ns` < 0: not by itself.
std::string refusal_text(const BulkheadStory& story, std::int64_t retry_after_ns);
/// "10 of 10 places are held, the oldest for 3.2 s; 2 wait in line".
std::string use_text(const BulkheadStory& story);

}  // namespace cutwater::rule
