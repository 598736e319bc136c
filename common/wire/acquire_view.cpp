// SPDX-License-Identifier: Apache-2.0
#include "wire/acquire_view.hpp"

#include <algorithm>

#include "wire/fill.hpp"
#include "wire/scan.hpp"

namespace cutwater::wire {
namespace {

constexpr std::size_t kMessageFields = 3;
constexpr std::size_t kItemFields = 2, kItemFieldsMost = 4;
constexpr std::size_t kDecisionFields = 7;
// Head, two 16 bit numbers, four of 64 bits, one of 8, flags of 10 bits, and what is not usual: a
// 16 bit one, two of 64.
static_assert(1 + 3 + 4 * Fill::kMaxNumber + 2 + 3 + 3 + 2 * Fill::kMaxNumber <=
              kMaxDecisionBytes);

bool read_item(Scan& scan, ItemView& out) {
  const std::size_t fields = scan.array();
  if (fields < kItemFields || fields > kItemFieldsMost) return false;
  out.limit = {};
  if (!scan.nil()) {
    out.limit = scan.text();
    if (!is_name(out.limit)) return false;
  }
  out.key = scan.binary();
  out.cost = fields > kItemFields ? scan.number() : 1;
  const std::uint64_t flags = fields == kItemFieldsMost ? scan.number() : 0;
  out.flags = static_cast<std::uint8_t>(flags);
  return !scan.failed() && out.cost <= kMaxCost && flags <= kKnownItemFlags;
}

/// How many of the fields that may be left out are written.
std::size_t fields_behind(const DecisionAnswer& d) noexcept {
  if (d.clock_ns != 0) return 3;
  if (d.charged != kChargedAsAsked) return 2;
  return d.would != 0 ? 1 : 0;
}

}  // namespace

bool read_acquire(std::string_view payload, std::vector<ItemView>& items, AcquireView& out) {
  Scan scan(payload);
  if (scan.array() != kMessageFields) return false;
  out.ttl_ns = scan.number();
  out.max_wait_ns = scan.number();
  const std::size_t count = scan.array();
  if (scan.failed() || count == 0 || count > kMaxItems) return false;
  if (items.size() < count) items.resize(kMaxItems);
  for (std::size_t i = 0; i < count; ++i) {
    if (!read_item(scan, items[i])) return false;
  }
  out.items = {items.data(), count};
  return scan.done() && !items[0].limit.empty();
}

AcquireView view_of(const Acquire& message, std::vector<ItemView>& items) {
  items.resize(std::max(items.size(), message.items.size()));
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    items[i] = view_of(message.items[i]);
  }
  return {message.ttl_ns, message.max_wait_ns, {items.data(), message.items.size()}};
}

void put_decisions(std::string& out, std::span<const DecisionAnswer> decisions) {
  const std::size_t begin = out.size();
  out.resize(begin + 2 * Fill::kMaxHead + decisions.size() * kMaxDecisionBytes);
  Fill fill(out.data() + begin);
  fill.array(1);
  fill.array(decisions.size());
  for (const DecisionAnswer& d : decisions) {
    const std::size_t more = fields_behind(d);
    fill.array(kDecisionFields + more);
    fill.number(d.reason);
    fill.number(d.remaining);
    fill.number(d.retry_after_ns);
    fill.number(d.reset_after_ns);
    fill.number(d.wait_ns);
    fill.number(d.window);
    fill.number(d.flags & kKnownAnswerFlags);
    if (more > 0) fill.number(d.would);
    if (more > 1) fill.number(d.charged);
    if (more > 2) fill.number(d.clock_ns);
  }
  out.resize(static_cast<std::size_t>(fill.at() - out.data()));
}

}  // namespace cutwater::wire
