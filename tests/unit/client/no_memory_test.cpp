// SPDX-License-Identifier: Apache-2.0
// A process without memory: whatever allocation of an ask over the socket fails, the ask ends with
// an answer. An exception that leaves a function that promises none would end the program.
#include <cstdlib>
#include <functional>
#include <new>

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

}  // namespace
}  // namespace cutwater::test
