// SPDX-License-Identifier: Apache-2.0
// L4 many keys, one by one and in batches; L9 the naive design. Keys in debt, uniform, 24 bytes.
//
// The names lie in the order in which they are asked, and so do the indexes of gcra_array: whoever
// asks has just been sent the name. A million names in cold memory would measure the caller's.
#include <cutwater/client.hpp>

#include <array>
#include <memory>

#include "harness.hpp"
#include "reference.hpp"

namespace cutwater::bench {
namespace {

constexpr std::size_t kOrder = 1 << 20;
constexpr std::size_t kBatch = 64;

std::string yaml_for(std::size_t keys) {
  return "capacity: { keys: " + std::to_string(keys) + " }\n"
         "limits: { api: { rate: 1/s, burst: 1000000000 } }\n";
}

struct Setup {
  explicit Setup(std::size_t keys, bool with_naive)
      : order(uniform_order(kOrder, keys)), asked(order), gcra(keys),
        client(Client::in_memory(yaml_for(keys)).value()), limit(client.limit("api").value()) {
    if (with_naive) naive = std::make_unique<NaiveLimiter>(keys);
    const Keys names(keys);
    for (std::size_t i = 0; i < keys; ++i) {
      keep(limit.try_acquire(names[i], 1'000'000).allowed());
      if (naive) naive->add(names[i]);
    }
  }
  // Another stretch of the order in every round: what a case touched is not warm for the next.
  std::size_t at(std::uint64_t i) const { return (i + offset) & (kOrder - 1); }

  std::vector<std::uint32_t> order;
  Keys asked;
  GcraArray gcra;
  Client client;
  Limit limit;
  std::unique_ptr<NaiveLimiter> naive;
  std::uint64_t offset = 0;
};

template <class Ask>
Case make_case(std::shared_ptr<Setup> s, const char* name, std::uint64_t operations, Ask ask) {
  return {name, operations, [s, ask](std::uint64_t n) {
            std::uint64_t allowed = 0;
            s->offset += 33'331;
            for (std::uint64_t i = 0; i < n; ++i) allowed += ask(*s, i) ? 1 : 0;
            keep(allowed);
          }};
}

Case batch_case(std::shared_ptr<Setup> s, std::uint64_t operations) {
  return {"batch", operations, [s](std::uint64_t n) {
            std::array<std::string_view, kBatch> keys;
            std::array<Decision, kBatch> answers;
            s->offset += 33'331;
            for (std::uint64_t i = 0; i < n; i += kBatch) {
              for (std::size_t j = 0; j < kBatch; ++j) keys[j] = s->asked[s->at(i + j)];
              s->limit.acquire_batch(keys, answers);
              keep(answers[0].allowed());
            }
          }};
}

void figures_of(const Plan& plan, std::size_t keys, bool with_naive, std::vector<Figure>& out) {
  const std::uint64_t operations =
      plan.quick ? 40'000 - 40'000 % kBatch : 100'000 - 100'000 % kBatch;
  auto s = std::make_shared<Setup>(keys, with_naive);
  std::vector<Case> cases = {
      make_case(s, "gcra_array", operations,
                [](Setup& x, std::uint64_t i) { return x.gcra.take(x.order[x.at(i)]); }),
      make_case(s, "one by one", operations,
                [](Setup& x, std::uint64_t i) {
                  return x.limit.try_acquire(x.asked[x.at(i)]).allowed();
                }),
      batch_case(s, operations),
  };
  if (with_naive) {
    cases.push_back(make_case(s, "naive", operations / 4, [](Setup& x, std::uint64_t i) {
      return x.naive->take(x.asked[x.at(i)]);
    }));
  }
  const std::vector<Times> t = Rounds(plan.rounds()).run(cases);
  const std::string size = keys >= 1'000'000 ? std::to_string(keys / 1'000'000) + "M keys" : "keys";
  const std::string to = "gcra_array one by one, " + size;
  const auto figure = [&](const char* id, std::string name, int of, int against, double must) {
    return Figure{id, name + ", " + size, median(t[of].wall), median(t[of].cpu),
                  ratio_of(t[of], t[against]), to, must};
  };
  out.push_back(figure("", "gcra_array", 0, 0, 0));
  out.push_back(figure("L4", "one by one", 1, 0, 1.8));
  out.push_back(figure("L4b", "batches of 64", 2, 0, 0.4));
  if (with_naive) {
    out.push_back({"L9", "naive design against try_acquire(string), " + size, median(t[3].wall),
                   median(t[3].cpu), ratio_of(t[3], t[1]), "try_acquire(string)", 5, true});
  }
}

}  // namespace

std::vector<Figure> table_figures(const Plan& plan) {
  std::vector<Figure> figures;
  figures_of(plan, 1'000'000, true, figures);
  if (!plan.quick) figures_of(plan, 10'000'000, false, figures);
  return figures;
}

}  // namespace cutwater::bench
