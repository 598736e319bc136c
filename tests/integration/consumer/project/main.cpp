// SPDX-License-Identifier: Apache-2.0
// The first program of somebody who has only the installed library. Exit 0: it works.
#include <cutwater/client.hpp>
#include <cutwater/http.hpp>
#include <cutwater/keys.hpp>
#include <cutwater/testing.hpp>
#include <cutwater/version.hpp>

#include <chrono>
#include <iostream>
#include <string_view>

int main() {
  using namespace std::chrono_literals;
  cutwater::SteppedClock clock;
  auto client = cutwater::Client::in_memory("limits:\n  api: {rate: 1/s, burst: 2}\n", clock);
  if (!client) {
    std::cerr << client.error().text() << '\n';
    return 1;
  }
  auto api = client->limit("api").value();
  auto first = api.try_acquire("alice");
  auto second = api.key("alice").try_acquire();
  auto third = api.try_acquire("alice");
  std::cout << cutwater::kVersion << ' ' << first.remaining() << second.remaining() << ' '
            << cutwater::name_of(third.reason()) << ' ' << third.retry_after().count() << " ns\n";
  if (!first || !second || third.allowed() || third.retry_after() != 1s) return 2;

  const auto key = cutwater::key_of("acme", cutwater::ip_key("[2001:db8::1]:443").value());
  if (!key || !api.try_acquire(*key)) return 5;
  const cutwater::HttpAnswer answer = cutwater::http_answer(third);
  if (answer.status != 429 || answer.fields.at(0).value != "1") return 6;

  auto kit = cutwater::TestLimits::make("limits:\n  api: {rate: 1/s, burst: 2}\n");
  if (!kit || !kit->force("api", {.retry_after = 30s})) return 7;
  if (kit->client().limit("api").value().try_acquire("bob").retry_after() != 30s) return 8;
  if (kit->counts("api", "bob").refused != 1) return 9;

  auto own = cutwater::Client::in_memory("limits: { api: { rate: 1/s, burst: 2 } }\n"
                                         "breakers: { fraud: {} }\n"
                                         "bulkheads: { fraud: { max-concurrent-calls: 1 } }\n");
  if (!own) return 10;
  auto fraud = own->breaker("fraud").value();
  auto gate = own->bulkhead("fraud").value();
  auto limit = own->limit("api").value();
  {
    auto e = own->enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{limit, "alice"}}});
    if (!e || gate.try_enter() || gate.use().in_use != 1) return 11;
    e.call().succeeded();
  }
  if (!gate.run([] { return 7; }).ok()) return 12;

  const auto nobody = cutwater::Client::open("unix:/nowhere/cutwater.sock");
  if (nobody || cutwater::name_of(nobody.error().code()) != "no_daemon") return 3;

  // The library hands out errors, never exceptions, whatever a text says.
  return cutwater::Client::in_memory("limits: {api: [").ok() ? 4 : 0;
}
