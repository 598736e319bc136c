// SPDX-License-Identifier: Apache-2.0
// The rows of READ, made from a mapped segment: what the daemon answers and what the tools read
// from the memory of a dead one are the same maps, because both come from here.
//
//   status    pid uptime_ns takeovers clock clock_ns generation superseded config_hash slots
//             in_debt claims limits clients rows stripes_used stripes damage contention
//             late_publish reclaimed_rows no_place events remember_keys
//   counters  limit allowed refused tokens no_place degraded undone waited contention
//             shadow_refused banned charged uncharged credited drained unlimited overridden
//   limits    limit kind mode windows on_full max_wait_ns max_waiting max_debt thread_lease
//             overrides patterns show_keys, and of the first window rate_count rate_period_ns
//             burst; windows: [{count, period_ns or calendar and zone, burst}, ...], none when
//             there is no bucket
//   limit     both of one limit as one row; with a key also `key`, and `answer`: a map of
//             reason allowed remaining retry_after_ns reset_after_ns window hint shadow would?
//             extrapolated overflow degraded by (limit, override) unlimited
//   clients   row generation kind state pid uid name attached_ns
//   events    number clock_ns unix_ms (by the wall clock of now) kind object epoch text, and of
//             breakers and bulkheads breaker or bulkhead, from to reason, row, words
// The daemon adds what only it knows (server/reader.hpp).
//
// Never writes a byte. Process safety: beside any daemon and clients, also while they write.
// Thread safety: one thread. Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "shm/view.hpp"
#include "wire/value.hpp"

namespace cutwater::rows {

using Rows = std::vector<wire::Value>;

/// How full the bucket table is: counted by whoever has the time to look through it.
struct TableFill {
  std::uint64_t in_debt = 0;   ///< slots whose key has used tokens
  std::uint64_t claims = 0;    ///< slots a first ask is about to use
};

wire::Value status_row(const shm::View& view, const TableFill& fill);
Rows counter_rows(const shm::View& view);
Rows limit_rows(const shm::View& view);
Rows client_rows(const shm::View& view);

/// Keys in debt of each limit by name: looks through the whole table, about 10 ns a slot.
std::map<std::string, std::uint64_t> debts_by_limit(const shm::View& view);

/// One limit, and what it would answer to a key now. UnknownName lists the nearest names.
Result<wire::Value> limit_row(const shm::View& view, std::string_view name,
                              std::optional<std::string_view> key, std::uint64_t cost);

struct EventRows {
  Rows rows;
  std::uint64_t next = 0;  ///< number to ask from the next time
  std::uint64_t lost = 0;
};
EventRows event_rows(const shm::View& view, std::uint64_t from, std::uint32_t max);

/// `no limit 'logn'; did you mean 'login'?`, or all names when there are few; of a name that a
/// pattern among the known stands for, which one answers. `kind`: limit, breaker or bulkhead.
/// `is_full`: whether all max-instances of such a pattern are in use; without it nobody can say.
Error unknown_name(std::string_view kind, std::string_view name,
                   const std::vector<std::string>& known,
                   const std::function<bool(std::string_view)>& is_full = {});
inline Error unknown_limit(std::string_view name, const std::vector<std::string>& known) {
  return unknown_name("limit", name, known);
}

}  // namespace cutwater::rows
