// SPDX-License-Identifier: Apache-2.0
// The rows of a bulkhead. As of a breaker, what is not written comes from the preset.
#include "config/schema_table.hpp"

namespace cutwater::config {
namespace {

using B = rule::BulkheadSettings;
using T = const Target&;
using V = const Parsed&;

template <auto Field>
void put(T t, V v) {
  auto& field = t.bulkhead->*Field;
  field = static_cast<std::remove_reference_t<decltype(field)>>(v.number);
}

template <auto Field>
std::uint64_t get(T t) {
  return static_cast<std::uint64_t>(t.bulkhead->*Field);
}

void store_nothing(T, V) {}   // preset, base-config, abstract: the reader's own business

// clang-format off
const Key kRows[] = {
  {.block = kBulkheadBlock, .name = "preset", .kind = Kind::Choice,
   .words = "resilience4j microprofile spring",
   .help = "Where everything comes from that is not written. Default: resilience4j: 25 calls and "
           "no wait. microprofile: 10. spring: waits for ever, and the number must be written.",
   .store = store_nothing},
  {.block = kBulkheadBlock, .name = "base-config", .kind = Kind::Text,
   .max = rule::kMaxNameLength,
   .help = "A block of this section whose settings come first; at most 8 behind each other.",
   .store = store_nothing},
  {.block = kBulkheadBlock, .name = "abstract", .kind = Kind::Bool,
   .help = "true: only a base for others, no bulkhead.", .store = store_nothing},
  {.block = kBulkheadBlock, .name = "max-concurrent-calls", .kind = Kind::Count,
   .max = rule::kMaxConcurrentCalls,
   .help = "Calls at once over all processes of the host; 0 refuses everything.",
   .store = put<&B::max_concurrent>, .load = get<&B::max_concurrent>},
  {.block = kBulkheadBlock, .name = "max-wait-duration", .kind = Kind::Wait,
   .max = rule::kMaxBulkheadWaitNs, .words = "forever",
   .help = "Longest time in line for a place; 0: refused at once. A call's deadline always wins.",
   .store = put<&B::max_wait_ns>, .load = get<&B::max_wait_ns>},
  {.block = kBulkheadBlock, .name = "max-waiting", .kind = Kind::Count,
   .max = rule::kMaxBulkheadWaiting, .help = "Calls in line at once.",
   .store = put<&B::max_waiting>, .load = get<&B::max_waiting>},
  {.block = kBulkheadBlock, .name = "max-hold", .kind = Kind::OffDuration,
   .min = rule::kMinHoldNs, .max = rule::kMaxHoldNs, .words = "off",
   .help = "A place held longer is taken back, and the call that held it may still run.",
   .store = put<&B::max_hold_ns>, .load = get<&B::max_hold_ns>},
  {.block = kBulkheadBlock, .name = "enabled", .kind = Kind::Bool,
   .help = "false: lets everything through.", .store = put<&B::enabled>, .load = get<&B::enabled>},
  {.block = kBulkheadBlock, .name = "max-instances", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxInstances,
   .help = "Of a pattern: how many bulkheads it may make; beyond, one shared by the rest.",
   .store = put<&B::max_instances>, .load = get<&B::max_instances>},
  {.block = kBulkheadBlock, .name = "idle", .kind = Kind::Duration, .min = 1'000'000,
   .max = rule::kMaxIdleNs, .help = "Of a pattern: age at which an unused one may make room.",
   .store = put<&B::idle_ns>, .load = get<&B::idle_ns>},
  {.block = kBulkheadBlock, .name = "note", .kind = Kind::Text, .max = rule::kMaxNoteLength,
   .help = "One line for people.", .store = [](T t, V v) { t.bulkhead->note = v.text; }},
};
// clang-format on

}  // namespace

std::span<const Key> bulkhead_rows() { return kRows; }

}  // namespace cutwater::config
