// SPDX-License-Identifier: Apache-2.0
#include "ctl/replay.hpp"

#include <algorithm>
#include <unordered_map>

#include <cutwater/client.hpp>

#include "ctl/table.hpp"
#include "ctl/text.hpp"
#include "shm/layout.hpp"

namespace cutwater::ctl {
namespace {

/// Adds up per client, up to a bound.
class ClientSums {
 public:
  explicit ClientSums(std::size_t bound) : bound_(bound) {}

  void add(std::string_view client, bool allowed) {
    auto found = sums_.find(std::string(client));
    if (found == sums_.end()) {
      if (sums_.size() >= bound_) {
        ++beyond_;
        return;
      }
      found = sums_.emplace(client, ClientSum{std::string(client)}).first;
    }
    ++found->second.requests;
    found->second.refused += allowed ? 0 : 1;
  }

  std::uint64_t clients() const noexcept { return sums_.size(); }
  std::uint64_t beyond() const noexcept { return beyond_; }
  std::vector<ClientSum> most_refused() const {
    std::vector<ClientSum> all;
    for (const auto& [name, sum] : sums_) {
      if (sum.refused > 0) all.push_back(sum);
    }
    return most_refused_of(std::move(all), kTopClients);
  }

 private:
  std::size_t bound_;
  std::uint64_t beyond_ = 0;
  std::unordered_map<std::string, ClientSum> sums_;
};

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "" : " (" + permille_text(part * 1000 / whole) + ")";
}

}  // namespace

std::vector<ClientSum> most_refused_of(std::vector<ClientSum> clients, std::size_t count) {
  std::erase_if(clients, [](const ClientSum& sum) { return sum.refused == 0; });
  const auto before = [](const ClientSum& a, const ClientSum& b) {
    return a.refused != b.refused ? a.refused > b.refused : a.client < b.client;
  };
  const auto middle =
      clients.begin() + static_cast<std::ptrdiff_t>(std::min(count, clients.size()));
  std::partial_sort(clients.begin(), middle, clients.end(), before);
  clients.erase(middle, clients.end());
  return clients;
}

Result<ReplayResult> replay(AccessLog& log, const ReplayAsk& ask, const Progress& progress) {
  SteppedClock clock;
  auto client = Client::in_memory(ask.yaml, clock);
  if (!client) return client.error();
  auto limit = client->limit(ask.limit);
  if (!limit) return limit.error();

  // In memory a change of rules is never pending at the start, and every bucket is as `initial`
  // says.
  const Nanos start = clock.now();
  ReplayResult result;
  result.limit = ask.limit;
  ClientSums sums(ask.max_clients);
  LogEntry entry;
  unsigned told = 0;
  while (log.next(entry)) {
    if (result.requests == 0) result.first_ns = result.last_ns = entry.stamp_ns;
    if (entry.stamp_ns - result.first_ns >= shm::kHorizonNs / 2) {
      log.reject("time lies more than 9 years behind the first line's");
      continue;
    }
    if (entry.stamp_ns < result.last_ns) ++result.out_of_order;
    result.last_ns = std::max(result.last_ns, entry.stamp_ns);
    clock.set(start + Nanos{result.last_ns - result.first_ns});

    const Decision decision = limit->try_acquire(entry.client);
    ++result.requests;
    ++(decision.allowed() ? result.admitted : result.refused);
    result.overflow += decision.overflow() ? 1 : 0;
    sums.add(entry.client, decision.allowed());
    if (log.size() > 0) {
      const auto permille =
          static_cast<unsigned>(std::min<std::uint64_t>(log.bytes() * 1000 / log.size(), 1000));
      if (permille != told) progress(told = permille);
    }
  }
  if (!log.failed().empty()) return Error{Errc::System, log.failed()};
  result.skipped = log.skipped();
  result.faults = log.faults();
  result.clients = sums.clients();
  result.clients_unknown = sums.beyond();
  result.most_refused = sums.most_refused();
  return result;
}

wire::Value document_of(const ReplayResult& result) {
  wire::Value out;
  out.set("limit", result.limit);
  out.set("requests", result.requests);
  out.set("admitted", result.admitted);
  out.set("refused", result.refused);
  out.set("clients", result.clients);
  out.set("skipped", result.skipped);
  out.set("out_of_order", result.out_of_order);
  out.set("overflow", result.overflow);
  out.set("span_ns", result.last_ns - result.first_ns);
  out.set("requests_of_clients_not_told_apart", result.clients_unknown);
  wire::Value::Array top, faults;
  for (const ClientSum& sum : result.most_refused) {
    top.push_back(wire::Value::map({{"client", wire::Value::binary(sum.client)},
                                    {"requests", sum.requests},
                                    {"refused", sum.refused}}));
  }
  for (const LogFault& fault : result.faults) {
    faults.push_back(wire::Value::map({{"line", fault.line}, {"reason", fault.reason}}));
  }
  out.set("most_refused", std::move(top));
  out.set("skipped_lines", std::move(faults));
  return out;
}

std::string table_of(const ReplayResult& result, bool colour) {
  const auto line = [](const char* word, const std::string& text) {
    return std::string(word) +
           std::string(10 - std::min<std::size_t>(std::string_view(word).size(), 9), ' ') + text +
           '\n';
  };
  std::string out;
  out += line("limit", result.limit);
  out += line("requests", std::to_string(result.requests));
  out += line("admitted",
              std::to_string(result.admitted) + share_text(result.admitted, result.requests));
  out +=
      line("refused", std::to_string(result.refused) + share_text(result.refused, result.requests));
  out += line("clients", std::to_string(result.clients));
  out += line("skipped", std::to_string(result.skipped));
  if (result.out_of_order > 0) out += line("unsorted", std::to_string(result.out_of_order));
  out += line("span", duration_text(static_cast<std::uint64_t>(result.last_ns - result.first_ns)));
  if (result.overflow > 0) {
    out += line("overflow",
                std::to_string(result.overflow) + " decisions found no place; raise capacity.keys");
  }
  if (result.clients_unknown > 0) {
    out += line("beyond",
                std::to_string(result.clients_unknown) + " requests of clients not told apart");
  }
  if (result.most_refused.empty()) return out;
  return out + '\n' + most_refused_text(result.most_refused, colour);
}

std::string most_refused_text(const std::vector<ClientSum>& clients, bool colour) {
  Table table({{"MOST REFUSED", Table::Align::Left},
               {"REFUSED", Table::Align::Right},
               {"OF", Table::Align::Right}});
  for (const ClientSum& sum : clients) {
    table.add(
        {escape_short(sum.client), std::to_string(sum.refused), std::to_string(sum.requests)});
  }
  return table.text(colour);
}

}  // namespace cutwater::ctl
