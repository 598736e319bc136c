// SPDX-License-Identifier: Apache-2.0
// replay: what a limit would have done to an access log. No daemon, no shared files: the real rules
// and the real code in a private segment (Client::in_memory) whose clock stands at the stamps of
// the log, made non-decreasing: a line stamped earlier than one before it counts as asked at that
// later moment. Each request asks the limit for one permit with its client as key. With a second
// configuration each request asks both, each in a segment of its own on the same clock: what would
// change, and for whom. Calendar windows begin where the log's dates say. Bounds:
// kMaxReplayClients clients are told apart; requests of further ones are decided and counted in the
// sums all the same. A line more than 9 years behind the first is counted as unreadable.
// Thread safety: one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cutwater/result.hpp>

#include "config/config.hpp"
#include "ctl/access_log.hpp"
#include "wire/value.hpp"

namespace cutwater::ctl {

inline constexpr std::size_t kMaxReplayClients = 4'000'000;
inline constexpr std::size_t kTopClients = 10;

struct ReplayAsk {
  const config::Config* config = nullptr;   ///< whose limit decides
  const config::Config* against = nullptr;  ///< decides the same requests beside it; may be nullptr
  std::string limit;
  std::size_t max_clients = kMaxReplayClients;
};

struct ClientSum {
  std::string client;
  std::uint64_t requests = 0, refused = 0;
  std::uint64_t refused_against = 0;  ///< by the other configuration
};

struct ReplayResult {
  std::string limit;
  std::uint64_t requests = 0, admitted = 0, refused = 0, skipped = 0, overflow = 0;
  std::uint64_t clients = 0;               ///< told apart
  std::uint64_t clients_unknown = 0;       ///< requests of clients beyond the bound
  std::int64_t first_ns = 0, last_ns = 0;  ///< stamps since 1970, non-decreasing
  std::uint64_t out_of_order = 0;          ///< lines stamped earlier than one before
  std::vector<ClientSum> most_refused;     ///< at most kTopClients, most first, then by name
  bool compared = false;                   ///< the next four are known
  std::uint64_t admitted_against = 0, refused_against = 0;
  std::uint64_t better_off = 0, worse_off = 0;  ///< clients refused less, or more, by the other
  std::vector<ClientSum> most_changed;     ///< at most kTopClients, the largest difference first
  std::vector<LogFault> faults;
};

/// Called with permille of the log read, when it changed.
using Progress = std::function<void(unsigned permille)>;

/// InvalidConfig (every error), UnknownName (nearest names), System (the log broke off).
Result<ReplayResult> replay(AccessLog& log, const ReplayAsk& ask, const Progress& progress);

/// For -o json: requests, admitted, refused, clients, skipped and what else is known.
wire::Value document_of(const ReplayResult& result);
std::string table_of(const ReplayResult& result, bool colour);

/// The clients with most refusals, most first; ties by name. Those without refusals are left out.
std::vector<ClientSum> most_refused_of(std::vector<ClientSum> clients, std::size_t count);

/// Those whose refusals differ most between the two configurations, the largest difference first;
/// ties by name.
std::vector<ClientSum> most_changed_of(std::vector<ClientSum> clients, std::size_t count);

/// Them as a table.
std::string most_refused_text(const std::vector<ClientSum>& clients, bool colour);

}  // namespace cutwater::ctl
