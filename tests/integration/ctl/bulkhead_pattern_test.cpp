// SPDX-License-Identifier: Apache-2.0
// Patterns of bulkheads with a daemon: instances made by whoever asks, mapped or over the socket;
// what the tool says of them; names that make room.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <cutwater/bulkhead.hpp>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

constexpr std::int64_t kHourNs = 3'600'000'000'000;

const std::string kYaml =
    "capacity: { keys: 1024 }\n"
    "bulkheads:\n"
    "  \"bank-*\": { max-concurrent-calls: 1, max-instances: 1, idle: 1h }\n";

Client asking(const Instance& instance) {
  auto client = Client::open(instance.place().address() + "?ask");
  EXPECT_TRUE(client.ok()) << client.error().text();
  return std::move(*client);
}

TEST(BulkheadPatternCommand, InstancesAndThePatternsOwnAreListedAndRead) {
  Instance instance(kYaml);
  Client client = instance.client();
  Bulkhead first = client.bulkhead("bank-a").value();
  Bulkhead rest = client.bulkhead("bank-zz").value();
  auto held = first.try_enter();
  ASSERT_TRUE(held);
  auto shared = rest.try_enter();
  ASSERT_TRUE(shared);
  EXPECT_FALSE(client.bulkhead("bank-yy").value().try_enter());   // the one place they share

  const ProgramRun list = instance.tool({"bulkhead", "list"});
  EXPECT_TRUE(has(list.out, "bank-* ")) << list.out;
  EXPECT_TRUE(has(list.out, "bank-a ")) << list.out;
  EXPECT_EQ(instance.tool({"bulkhead", "get", "bank-a"}).code, 1);
  const auto own = parse(instance.tool({"bulkhead", "get", "bank-*", "-o", "json"}).out);
  EXPECT_EQ(own["in_use"], 1);
  EXPECT_GE(own["counters"]["beyond_instances"], 2);
  const ProgramRun other = instance.tool({"bulkhead", "get", "bank-zz"});
  EXPECT_EQ(other.code, 6);
  EXPECT_TRUE(has(other.err, "calls by this name share 'bank-*'")) << other.err;
  const ProgramRun doctor = instance.tool({"doctor"});
  EXPECT_TRUE(has(doctor.out, "bank-*: ")) << doctor.out;
  EXPECT_TRUE(has(doctor.out, "max-instances")) << doctor.out;

  instance.daemon().kill(SIGKILL);                   // the same from the memory alone
  EXPECT_EQ(instance.tool({"bulkhead", "get", "bank-a"}).code, 1);
}

TEST(BulkheadPatternCommand, ACallerOverTheSocketGetsItsInstanceAsAMappedOneDoes) {
  Instance instance(kYaml);
  Client asks = asking(instance);
  Bulkhead first = asks.bulkhead("bank-a").value();
  auto held = first.try_enter();
  ASSERT_TRUE(held) << held.refusal().text();

  Client mapped = instance.client();
  EXPECT_FALSE(mapped.bulkhead("bank-a").value().try_enter());
  auto shared = mapped.bulkhead("bank-b").value().try_enter();
  EXPECT_TRUE(shared);
  EXPECT_FALSE(asks.bulkhead("bank-c").value().try_enter());
}

TEST(BulkheadPatternCommand, AnUnusedNameMakesRoomByTheDaemonsTick) {
  Instance instance(kYaml);
  Client client = instance.client();
  Bulkhead first = client.bulkhead("bank-a").value(), second = client.bulkhead("bank-b").value();
  { ASSERT_TRUE(first.try_enter()); }
  ASSERT_EQ(instance.tool({"bulkhead", "get", "bank-b"}).code, 6);

  // The daemon looks once a second of its own; the hour is the stepped clock's.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  bool made = false;
  while (!made && std::chrono::steady_clock::now() < give_up) {
    instance.step_by(kHourNs);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    { ASSERT_TRUE(second.try_enter()); }
    made = instance.tool({"bulkhead", "get", "bank-b"}).code == 0;
  }

  EXPECT_TRUE(made);
  EXPECT_EQ(instance.tool({"bulkhead", "get", "bank-a"}).code, 6);
  auto held = second.try_enter();
  EXPECT_TRUE(held);
  EXPECT_TRUE(first.try_enter());                    // now it is the one that shares
  EXPECT_EQ(instance.tool({"bulkhead", "get", "bank-b"}).code, 1);
}

}  // namespace
}  // namespace cutwater::ctl
