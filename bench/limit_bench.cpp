// SPDX-License-Identifier: Apache-2.0
// L1 string key, L2 resolved key, L3 refusal: one process, keys
// that stay in debt, counters included.
#include <cutwater/client.hpp>

#include <memory>

#include "harness.hpp"
#include "reference.hpp"

namespace cutwater::bench {
namespace {

constexpr std::size_t kOrder = 1 << 16;
constexpr std::uint64_t kOperations = 100'000;

const char kYaml[] =
    "limits:\n"
    "  grant:  { rate: 1/s, burst: 1000000000 }\n"
    "  refuse: { rate: 1/d, burst: 1 }\n";

struct Setup {
  explicit Setup(std::size_t keys)
      : names(keys), order(uniform_order(kOrder, keys)), gcra(keys),
        client(Client::in_memory(kYaml).value()),
        grant(client.limit("grant").value()), refuse(client.limit("refuse").value()) {
    for (std::size_t i = 0; i < keys; ++i) {
      keep(grant.try_acquire(names[i], 1'000'000).allowed());   // in debt: keeps its place
      keep(refuse.try_acquire(names[i]).allowed());
      resolved.push_back(grant.key(names[i]));
    }
  }
  std::uint32_t at(std::uint64_t i) const { return order[i & (kOrder - 1)]; }

  Keys names;
  std::vector<std::uint32_t> order;
  GcraArray gcra;
  Client client;
  Limit grant, refuse;
  std::vector<Key> resolved;
};

template <class Ask>
Case make_case(const char* name, Ask ask) {
  return {name, kOperations, [ask](std::uint64_t n) {
            std::uint64_t allowed = 0;
            for (std::uint64_t i = 0; i < n; ++i) allowed += ask(i) ? 1 : 0;
            keep(allowed);
          }};
}

// What a caller pays who reads every field of the answer.
bool read_all(const Decision& d) {
  keep(d.remaining());
  keep(d.retry_after());
  keep(d.reset_after());
  return d.allowed();
}

}  // namespace

std::vector<Figure> limit_figures(const Plan& plan) {
  auto k = std::make_shared<Setup>(1024);
  auto hot = std::make_shared<Setup>(64);
  const std::vector<Case> cases = {
      make_case("clock", [](std::uint64_t) { return read_boottime() != 0; }),
      make_case("gcra_array, 1k keys", [k](std::uint64_t i) { return k->gcra.take(k->at(i)); }),
      make_case("gcra_array, 64 keys",
                [hot](std::uint64_t i) { return hot->gcra.take(hot->at(i)); }),
      make_case(
          "string",
          [k](std::uint64_t i) { return k->grant.try_acquire(k->names[k->at(i)]).allowed(); }),
      make_case(
          "string, all fields",
          [k](std::uint64_t i) { return read_all(k->grant.try_acquire(k->names[k->at(i)])); }),
      make_case(
          "resolved",
          [hot](std::uint64_t i) { return hot->resolved[hot->at(i)].try_acquire().allowed(); }),
      make_case("resolved, 1k keys",
                [k](std::uint64_t i) { return k->resolved[k->at(i)].try_acquire().allowed(); }),
      make_case(
          "refusal",
          [k](std::uint64_t i) { return k->refuse.try_acquire(k->names[k->at(i)]).allowed(); }),
  };
  const std::vector<Times> t = Rounds(plan.rounds()).run(cases);
  const auto figure = [&](const char* id, const char* name, int of, int to, double must) {
    return Figure{id,         name, median(t[of].wall), median(t[of].cpu), ratio_of(t[of], t[to]),
                  t[to].name, must};
  };
  return {
      figure("", "clock read", 0, 1, 0),
      figure("", "gcra_array, 1k keys", 1, 1, 0),
      figure("L1", "try_acquire(string), 1k keys", 3, 1, 1.9),
      figure("L1f", "the same, all fields read", 4, 1, 0),
      figure("L2", "try_acquire(resolved key), 64 hot keys", 5, 2, 1.25),
      figure("L2k", "try_acquire(resolved key), 1k keys", 6, 1, 0),
      figure("L3", "refusal against grant", 7, 3, 1.0),
  };
}

}  // namespace cutwater::bench
