// SPDX-License-Identifier: Apache-2.0
// ENTER: which way it goes, and several limits at once, all or none.
#include <algorithm>

#include "ask/answer_fields.hpp"
#include "ask/decider.hpp"
#include "ask/receipt_bytes.hpp"
#include "memory.hpp"

namespace cutwater::server {

namespace {

wire::Admission error(wire::ItemError code, std::string text) {
  return wire::Admission::error(code, std::move(text));
}

}  // namespace

const wire::EnterAnswer* Decider::enter(const wire::Enter& asked, Holder& holder,
                                        wire::Receipts* receipts,
                                        std::unique_ptr<WaitingEnter>& waits) {
  wire::Admission& out = entered_.admission;
  out = {};
  told_ = 0;
  if (!asked.bulkhead && asked.items.empty() && asked.breaker) {
    shm::EnterAsk ask;
    if (!find_parts(asked, ask, out)) return &entered_;
    enter_breaker(asked, ask.breaker, holder, out);
    keep_tickets(asked, receipts);
  } else if (asked.bulkhead || asked.breaker) {
    waits = std::make_unique<WaitingEnter>(asked);
    const wire::EnterAnswer* const answer = begin(*waits, holder, receipts);
    if (answer != nullptr) waits.reset();
    return answer;
  } else if (!asked.items.empty()) {
    enter_limits(asked, receipts, out);
  }
  return &entered_;
}

bool Decider::find_limits(const wire::Enter& asked,
                          std::array<shm::AdmitAsk, shm::kMaxAdmitItems>& asks,
                          wire::Admission& out) {
  Found found;
  for (std::size_t i = 0; i < std::min(asked.items.size(), asks.size()); ++i) {
    wire::DecisionAnswer fault;
    if (asked.items[i].flags != 0) {
      out = error(wire::ItemError::InvalidArgument,
                  fmt::format("items[{}].flags: what is charged after the fact is no part of an "
                              "all-or-none ask; use ACQUIRE", i));
      return false;
    }
    if (!prepare(asked.items[i], found, asks[i], fault)) {
      out = error(static_cast<wire::ItemError>(fault.reason), std::move(fault.text));
      out.index = static_cast<std::uint8_t>(i);
      return false;
    }
  }
  return true;
}

void Decider::enter_limits(const wire::Enter& asked, wire::Receipts* receipts,
                           wire::Admission& out) {
  std::array<shm::AdmitAsk, shm::kMaxAdmitItems> asks;
  const std::size_t items = std::min(asked.items.size(), asks.size());
  if (!find_limits(asked, asks, out)) return;
  const bool one = items == 1;   // a lone limit may give a place in line
  if (one) asks[0].max_wait_ns = wait_of(asked.max_wait_ns);
  all_.decisive = all_.gone = 0;
  const shm::View& view = memory_.view();
  const shm::Outcome outcome = one ? shm::admit(view, asks[0], all_.item[0])
                                   : shm::admit_all(view, {asks.data(), items}, all_);
  const DecisionData& verdict = one ? all_.item[0] : all_.verdict;
  if (outcome != shm::Outcome::Answered) {
    fill_answer(gone(view), out);
    out.part = wire::Part::Limit;
    out.index = all_.gone;
    return;
  }
  fill_answer(verdict, out);
  const bool stepped = view.clock.is_stepped();
  if (stepped) out.clock_ns = wire_ns(verdict.t);
  out.each.resize(items);
  out.index = all_.decisive;             // allowed: of the tightest
  if (!out.allowed()) out.part = wire::Part::Limit;
  for (std::size_t i = 0; i < items; ++i) {
    const wire::Item& item = asked.items[i];
    const DecisionData& data = all_.item[i];
    fill_decision(data, item.cost, stepped, out.each[i]);
    if (receipts != nullptr) receipts->add(to_bytes(life_, asks[i].limit, data));
    // An item that would have granted is no decision of its limit when another one refused.
    const bool counts = out.allowed() || data.reason != Reason::Allowed;
    if (item.cost != 0 && counts) leave_behind(asks[i], item.cost, data);
  }
}

}  // namespace cutwater::server
