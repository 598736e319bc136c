// SPDX-License-Identifier: Apache-2.0
#include "rows/bulkhead_rows.hpp"

#include <algorithm>

#include "rows/breaker_rows.hpp"
#include "rule/bulkhead_explain.hpp"
#include "shm/breaker/story.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/bulkhead/holders.hpp"
#include "shm/process_table.hpp"

namespace cutwater::rows {
namespace {

using shm::BulkheadInfo;

/// What a refusal says when nobody knows how long places are held.
constexpr std::int64_t kUnknownHoldNs = 1'000'000'000;

/// After so long a place comes back, as far as anybody knows: what a refusal says.
std::int64_t hold_of(const BulkheadInfo& info) {
  return info.median_ns > 0 ? info.median_ns : kUnknownHoldNs;
}

/// By BulkheadCounter; the sums of times stand in `held` and `waited`.
constexpr const char* kCounterWords[] = {
    "granted", "refused_full", "refused_expired", "refused_degraded", "stale",    "reclaimed",
    "revoked", "waited",       "handed_over",     "overshot",         "returned", "gave_up",
    nullptr,   nullptr,        "passed_off",       "beyond_instances"};

void add_answer(wire::Value& row, const BulkheadInfo& info) {
  const bool allowed = !info.enabled || (info.in_use < info.limit && info.waiting == 0);
  row.set("allowed", allowed);
  row.set("answer", allowed ? "allowed" : "full");
  row.set("retry_after_ns", allowed ? std::uint64_t{0} : static_cast<std::uint64_t>(hold_of(info)));
  row.set("hint", !allowed);
}

void add_oldest(wire::Value& row, const shm::View& view, const BulkheadInfo& info) {
  if (info.oldest_ns <= 0) return;
  row.set("oldest_ns", static_cast<std::uint64_t>(info.oldest_ns));
  if (info.oldest_row == 0) return;
  row.set("oldest_row", info.oldest_row);
  shm::RowInfo holder;
  if (shm::read_row(view, info.oldest_row, holder) && holder.pid != 0) {
    row.set("oldest_pid", holder.pid);
  }
}

/// Who is inside and in line, the words for it, and whose the next place is.
void add_holders(wire::Value& row, const shm::View& view, std::uint32_t index,
                 const BulkheadInfo& info) {
  shm::BulkheadHolders holders;
  static_cast<void>(shm::read_bulkhead_holders(view, index, holders));  // gone meanwhile: nobody
  rule::BulkheadAround around;
  wire::Value::Array list;
  for (const shm::BulkheadHolder& one : holders.all) {
    rule::BulkheadShare& share = around.shares.emplace_back();
    share.row = one.row;
    share.places = one.places;
    share.waiting = one.waiting;
    share.oldest_ns = one.oldest_ns;
    share.gone = one.gone;
    shm::RowInfo process;
    if (!one.gone && shm::read_row(view, one.row, process)) share.pid = process.pid;
    if (list.size() == kMaxHolders) continue;
    wire::Value holder = wire::Value::map({{"row", one.row},
                                           {"places", one.places},
                                           {"waiting", one.waiting},
                                           {"gone", one.gone}});
    if (share.pid != 0) holder.set("pid", share.pid);
    if (one.oldest_ns > 0) holder.set("oldest_ns", static_cast<std::uint64_t>(one.oldest_ns));
    list.push_back(std::move(holder));
  }
  const std::size_t left_out = holders.all.size() - list.size();
  row.set("holders", std::move(list));
  if (left_out > 0) row.set("holders_left_out", left_out);
  if (holders.next_row != 0) row.set("next_row", holders.next_row);

  around.enabled = info.enabled;
  around.pattern = info.kind == shm::kPatternEntry;
  around.max_waiting = info.max_waiting;
  around.max_wait_ns = info.max_wait_ns;
  around.max_hold_ns = info.max_hold_ns;
  around.median_ns = info.median_ns;
  around.retry_after_ns = hold_of(info);
  around.next_row = holders.next_row;
  around.next_left_ns = holders.next_left_ns;
  rule::BulkheadStory story;
  story.name = info.name;
  story.in_use = info.in_use;
  story.limit = info.limit;
  story.waiting = info.waiting;
  story.oldest_ns = info.oldest_ns;
  wire::Value::Array words;
  for (std::string& line : rule::explain_lines(story, around)) words.emplace_back(std::move(line));
  row.set("explain", std::move(words));
}

void add_times(wire::Value& row, const char* word, const std::uint32_t (&cells)[216],
               std::uint64_t sum_us) {
  wire::Value durations = durations_row(shm::figures_of(cells, sum_us));
  if (!durations.is_nil()) row.set(word, std::move(durations));
}

wire::Value row_of(const shm::View& view, const BulkheadInfo& info, const shm::BulkheadSums& sums) {
  wire::Value row;
  row.set("bulkhead", std::string(info.name));
  row.set("enabled", info.enabled);
  row.set("limit", info.limit);
  row.set("in_use", info.in_use);
  row.set("over", info.over);
  row.set("waiting", info.waiting);
  row.set("max_waiting", info.max_waiting);
  add_answer(row, info);
  add_oldest(row, view, info);
  add_times(row, "held", sums.held, sums.of(shm::BulkheadCounter::HeldUs));
  add_times(row, "waited", sums.waited, sums.of(shm::BulkheadCounter::WaitedUs));
  return row;
}

}  // namespace

Rows bulkhead_rows(const shm::View& view, Which which) {
  Rows rows;
  for (const Named& one : bulkheads_by_name(view, which)) {
    wire::Value row = bulkhead_row_of(view, one);
    if (!row.is_nil()) rows.push_back(std::move(row));
  }
  return rows;
}

wire::Value bulkhead_row_of(const shm::View& view, const Named& one) {
  BulkheadInfo info;
  const bool there = shm::read_bulkhead(view, one.index, info) &&
                     info.incarnation == one.incarnation;
  if (!there) return {};
  return row_of(view, info, shm::sum_bulkhead_counters(view, one.index));
}

Result<wire::Value> bulkhead_row(const shm::View& view, std::string_view name) {
  const shm::BulkheadRef ref = shm::find_bulkhead(view, name);
  BulkheadInfo info;
  if (ref.index == shm::kNoLine || !shm::read_bulkhead(view, ref.index, info)) {
    return unknown_name("bulkhead", name, names_of(bulkheads_by_name(view)),
                        [&](std::string_view p) { return bulkhead_pattern_is_full(view, p); });
  }
  const shm::BulkheadSums sums = shm::sum_bulkhead_counters(view, ref.index);
  wire::Value row = row_of(view, info, sums);
  row.set("max_wait_ns", info.max_wait_ns);
  row.set("max_hold_ns", info.max_hold_ns);
  add_holders(row, view, ref.index, info);
  wire::Value counters(wire::Value::Map{});
  for (std::size_t i = 0; i < std::size(kCounterWords); ++i) {
    if (kCounterWords[i] != nullptr) counters.set(kCounterWords[i], sums.value[i]);
  }
  row.set("counters", std::move(counters));
  return row;
}

}  // namespace cutwater::rows
