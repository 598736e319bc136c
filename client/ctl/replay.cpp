// SPDX-License-Identifier: Apache-2.0
#include "ctl/replay.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <cutwater/client.hpp>

#include "ctl/table.hpp"
#include "ctl/text.hpp"
#include "shm/layout.hpp"
#include "src/core.hpp"

namespace cutwater::ctl {
namespace {

/// Adds up per client, up to a bound.
class ClientSums {
 public:
  explicit ClientSums(std::size_t bound) : bound_(bound) {}

  void add(std::string_view client, bool allowed, bool allowed_against) {
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
    found->second.refused_against += allowed_against ? 0 : 1;
  }

  std::uint64_t clients() const noexcept { return sums_.size(); }
  std::uint64_t beyond() const noexcept { return beyond_; }
  std::vector<ClientSum> all() const {
    std::vector<ClientSum> all;
    all.reserve(sums_.size());
    for (const auto& [name, sum] : sums_) all.push_back(sum);
    return all;
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

std::vector<ClientSum> most_changed_of(std::vector<ClientSum> clients, std::size_t count) {
  const auto change = [](const ClientSum& sum) {
    return sum.refused > sum.refused_against ? sum.refused - sum.refused_against
                                             : sum.refused_against - sum.refused;
  };
  std::erase_if(clients, [&](const ClientSum& sum) { return change(sum) == 0; });
  const auto before = [&](const ClientSum& a, const ClientSum& b) {
    return change(a) != change(b) ? change(a) > change(b) : a.client < b.client;
  };
  const auto middle =
      clients.begin() + static_cast<std::ptrdiff_t>(std::min(count, clients.size()));
  std::partial_sort(clients.begin(), middle, clients.end(), before);
  clients.erase(middle, clients.end());
  return clients;
}

namespace {

/// One configuration's limit in a segment of its own, on the replay's clock.
struct Decider {
  Client client;
  Limit limit;

  static Result<Decider> make(const config::Config& config, const std::string& name,
                              const SteppedClock& clock, std::int64_t unix_ns) {
    auto client = Client::Core::in_memory(config, clock, unix_ns);
    if (!client) return client.error();
    auto limit = client->limit(name);
    if (!limit) return limit.error();
    return Decider{std::move(*client), *limit};
  }
};

void take_sums(ReplayResult& result, const ClientSums& sums) {
  result.clients = sums.clients();
  result.clients_unknown = sums.beyond();
  std::vector<ClientSum> all = sums.all();
  if (result.compared) {
    for (const ClientSum& sum : all) {
      result.better_off += sum.refused_against < sum.refused ? 1 : 0;
      result.worse_off += sum.refused_against > sum.refused ? 1 : 0;
    }
    result.most_changed = most_changed_of(all, kTopClients);
  }
  result.most_refused = most_refused_of(std::move(all), kTopClients);
}

}  // namespace

Result<ReplayResult> replay(AccessLog& log, const ReplayAsk& ask, const Progress& progress) {
  SteppedClock clock;
  LogEntry entry;
  bool more = log.next(entry);
  // Days and months are those of the log.
  const std::int64_t first_ns = more ? entry.stamp_ns : 0;
  auto decider = Decider::make(*ask.config, ask.limit, clock, first_ns);
  if (!decider) return decider.error();
  std::optional<Decider> against;
  if (ask.against != nullptr) {
    auto made = Decider::make(*ask.against, ask.limit, clock, first_ns);
    if (!made) return made.error();
    against.emplace(std::move(*made));
  }

  // In memory a change of rules is never pending at the start, and every bucket is as `initial`
  // says.
  const Nanos start = clock.now();
  ReplayResult result;
  result.limit = ask.limit;
  result.compared = against.has_value();
  ClientSums sums(ask.max_clients);
  unsigned told = 0;
  for (; more; more = log.next(entry)) {
    if (result.requests == 0) result.first_ns = result.last_ns = entry.stamp_ns;
    if (entry.stamp_ns - result.first_ns >= shm::kHorizonNs / 2) {
      log.reject("time lies more than 9 years behind the first line's");
      continue;
    }
    if (entry.stamp_ns < result.last_ns) ++result.out_of_order;
    result.last_ns = std::max(result.last_ns, entry.stamp_ns);
    clock.set(start + Nanos{result.last_ns - result.first_ns});

    const Decision decision = decider->limit.try_acquire(entry.client);
    ++result.requests;
    ++(decision.allowed() ? result.admitted : result.refused);
    result.overflow += decision.overflow() ? 1 : 0;
    bool allowed_against = false;
    if (against) {
      allowed_against = against->limit.try_acquire(entry.client).allowed();
      ++(allowed_against ? result.admitted_against : result.refused_against);
    }
    sums.add(entry.client, decision.allowed(), allowed_against);
    if (log.size() > 0) {
      const auto permille =
          static_cast<unsigned>(std::min<std::uint64_t>(log.bytes() * 1000 / log.size(), 1000));
      if (permille != told) progress(told = permille);
    }
  }
  if (!log.failed().empty()) return Error{Errc::System, log.failed()};
  result.skipped = log.skipped();
  result.faults = log.faults();
  take_sums(result, sums);
  return result;
}

namespace {

wire::Value comparison_of(const ReplayResult& result) {
  wire::Value::Array changed;
  for (const ClientSum& sum : result.most_changed) {
    changed.push_back(wire::Value::map({{"client", wire::Value::binary(sum.client)},
                                        {"requests", sum.requests},
                                        {"refused", sum.refused},
                                        {"refused_against", sum.refused_against}}));
  }
  return wire::Value::map({{"admitted", result.admitted_against},
                           {"refused", result.refused_against},
                           {"better_off", result.better_off},
                           {"worse_off", result.worse_off},
                           {"most_changed", std::move(changed)}});
}

std::string comparison_text(const ReplayResult& result, bool colour) {
  Table sums({{""}, {"ADMITTED", Table::Align::Right}, {"REFUSED", Table::Align::Right}});
  sums.add({"as it is", std::to_string(result.admitted), std::to_string(result.refused)});
  sums.add({"against", std::to_string(result.admitted_against),
            std::to_string(result.refused_against)});
  std::string out = '\n' + sums.text(colour) + '\n' + std::to_string(result.better_off) +
                    " clients would be refused less, " + std::to_string(result.worse_off) +
                    " more\n";
  if (result.most_changed.empty()) return out;
  Table table({{"MOST CHANGED"},
               {"REFUSED", Table::Align::Right},
               {"AGAINST", Table::Align::Right},
               {"OF", Table::Align::Right}});
  for (const ClientSum& sum : result.most_changed) {
    table.add({escape_short(sum.client), std::to_string(sum.refused),
               std::to_string(sum.refused_against), std::to_string(sum.requests)});
  }
  return out + '\n' + table.text(colour);
}

}  // namespace

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
  if (result.compared) out.set("against", comparison_of(result));
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
  if (!result.most_refused.empty()) out += '\n' + most_refused_text(result.most_refused, colour);
  return result.compared ? out + comparison_text(result, colour) : out;
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
