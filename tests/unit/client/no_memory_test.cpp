// SPDX-License-Identifier: Apache-2.0
// A process without memory: whatever allocation of an ask over the socket fails, the ask ends with
// an answer. An exception that leaves a function that promises none would end the program.
#include <cstdlib>
#include <functional>
#include <new>

#include <netinet/in.h>

#include <cutwater/keys.hpp>
#include <cutwater/outcome.hpp>

#include "base/clock.hpp"
#include "unit/client/ask_fixture.hpp"

namespace {

/// Allocations of this thread that still succeed; -1: all of them.
thread_local constinit long allocations_left = -1;
thread_local constinit bool was_refused = false;

void* allocate(std::size_t size) noexcept {
  if (allocations_left == 0) {
    was_refused = true;
    return nullptr;
  }
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size == 0 ? 1 : size);
}
void* allocate_or_throw(std::size_t size) {
  void* const got = allocate(size);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }

namespace cutwater::test {
namespace {

class NoMemory : public AskTest {
 protected:
  /// Runs `ask` over a connection that stands, or was just cut, with one allocation more each time
  /// until none of them failed.
  void sweep(Limit& api, bool cut, const std::function<void()>& ask) {
    constexpr long kMost = 500;
    for (long n = 0; n < kMost; ++n) {
      const std::int64_t end = boottime_ns() + 60'000'000'000;
      while (!api.try_acquire("k")) ASSERT_LT(boottime_ns(), end);
      if (cut) {
        daemon.stop();
        daemon.start();
      }
      was_refused = false;
      allocations_left = n;
      ask();
      allocations_left = -1;
      refused += was_refused;
      if (!was_refused) return;
    }
    FAIL() << "more than " << kMost << " allocations";
  }
  int refused = 0;
};

TEST_F(NoMemory, EveryAskOverTheSocketEnds) {
  const std::array<std::string_view, 3> keys{"a", "b", "c"};
  std::array<Decision, 3> out;
  {
    Client client = open(options(IfAbsent::Deny));
    Limit api = client.limit("api").value();
    Breaker fraud = client.breaker("fraud").value();
    const std::function<void()> asks[] = {
        [&] { (void)api.try_acquire("k").allowed(); },
        [&] { (void)api.peek("k").allowed(); },
        [&] { (void)api.acquire("k", {.max_wait = 1ms}).allowed(); },
        [&] { api.acquire_batch(keys, out); },
        [&] { (void)client.acquire_all({{api, "k"}, {api, "l"}}).allowed(); },
        [&] { (void)client.enter({.breaker = &fraud, .limits = {{api, "k"}}}).granted(); },
        [&] {
          auto call = fraud.try_enter();
          if (call) call->failed("timeout");
        },
        [&] { (void)fraud.state(); },
        [&] { (void)fraud.would_enter(); },
        [&] { (void)client.now(); },
    };
    for (const bool cut : {false, true}) {
      for (const auto& ask : asks) sweep(api, cut, ask);
    }
    allocations_left = 0;                            // so is goodbye
  }
  allocations_left = -1;
  EXPECT_GT(refused, 100);
}

/// What returns a Result has no exception for it: runs `call` with more allocations each time until
/// none failed; how often one failed. Where one failed it may still have ended as it does.
int failures(const std::function<Errc()>& call, Errc usual) {
  constexpr long kMost = 1'000'000;
  int refused = 0;
  for (long n = 0; n < kMost; n += 1 + n / 16) {
    was_refused = false;
    allocations_left = n;
    Errc code = Errc::Ok;
    try {
      code = call();
      allocations_left = -1;
    } catch (const std::exception& thrown) {
      allocations_left = -1;
      ADD_FAILURE() << thrown.what() << " left it at allocation " << n;
      return refused;
    }
    refused += was_refused;
    EXPECT_TRUE(code == usual || code == Errc::NoMemory || was_refused) << name_of(code);
    if (!was_refused) return refused;
  }
  ADD_FAILURE() << "more than " << kMost << " allocations";
  return refused;
}

TEST_F(NoMemory, WhatReturnsAResultSaysNoMemory) {
  constexpr const char* kYaml =
      "limits: { api: { rate: 10/s } }\nbreakers: { b: {} }\n"
      "bulkheads: { g: { max-concurrent-calls: 2 } }\n";
  const SteppedClock clock;
  Client memory = Client::in_memory(kYaml, clock).value();
  Limit api = memory.limit("api").value();
  Breaker b = memory.breaker("b").value();
  Decision looked = api.peek("k");
  Admission none;
  const std::string no_name(200, 'n');
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  const auto* const socket = reinterpret_cast<const sockaddr*>(&v6);
  const ClientOptions opening = options();
  const std::string place = daemon.address_to_ask();
  const std::pair<std::function<Errc()>, Errc> calls[] = {
      {[&] { return Client::open(place, opening).error().code(); }, Errc::Ok},
      {[&] { return Client::in_memory(kYaml).error().code(); }, Errc::Ok},
      {[&] { return Client::in_memory(kYaml, clock).error().code(); }, Errc::Ok},
      {[&] { return memory.reload(kYaml).error().code(); }, Errc::Ok},
      {[&] { return memory.limit("other-limit").error().code(); }, Errc::UnknownName},
      {[&] { return memory.breaker("other-breaker").error().code(); }, Errc::UnknownName},
      {[&] { return memory.bulkhead("other-bulkhead").error().code(); }, Errc::UnknownName},
      {[&] { return memory.bulkhead("g").error().code(); }, Errc::Ok},
      {[&] { return b.transition_to(BreakerStatus::Closed).error().code(); }, Errc::Ok},
      {[&] { return api.refund(looked).error().code(); }, Errc::InvalidArgument},
      {[&] { return memory.refund(none).error().code(); }, Errc::AlreadyUsed},
      {[&] { return key_of({"a-tenant", "and-somebody-of-it"}).error().code(); }, Errc::Ok},
      {[&] { return ip_key("2001:db8:1:2:3:4:5:6").error().code(); }, Errc::Ok},
      {[&] { return ip_key("nowhere").error().code(); }, Errc::InvalidArgument},
      {[&] { return ip_key(socket, sizeof v6).error().code(); }, Errc::Ok},
      {[&] { return outcomes().add(no_name, std::errc::timed_out).error().code(); },
       Errc::InvalidArgument},
  };
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    SCOPED_TRACE(testing::Message() << "call " << i);
    refused += failures(calls[i].first, calls[i].second);
  }

  EXPECT_GT(refused, 100);
  EXPECT_TRUE(api.try_acquire("k").allowed());
}

}  // namespace
}  // namespace cutwater::test
