// SPDX-License-Identifier: Apache-2.0
#include "ask/decider.hpp"

#include <algorithm>

#include "ask/answer_fields.hpp"
#include "ask/receipt_bytes.hpp"
#include "memory.hpp"
#include "rows/segment_rows.hpp"
#include "shm/stripe_life.hpp"

namespace cutwater::server {

namespace {

constexpr std::int64_t kRetryHintNs = 100'000'000;
/// Nearest names are looked for among so many limits, and for so many items of a request: the
/// others get the code alone. A peer that asks for what is not there costs no more than that.
constexpr std::uint32_t kMaxCompared = 1024;
constexpr std::size_t kMaxTold = 2;

void clear(wire::DecisionAnswer& out) {
  out.reason = wire::kReasonAllowed;
  out.remaining = out.retry_after_ns = out.reset_after_ns = out.wait_ns = 0;
  out.window = 0;
  out.flags = out.would = 0;
  out.charged = wire::kChargedAsAsked;
  out.clock_ns = 0;
  out.text.clear();
}

void fail(wire::DecisionAnswer& out, wire::ItemError code, std::string_view text) {
  clear(out);
  out.reason = static_cast<std::uint16_t>(code);
  out.text = text;
}

}  // namespace

Decider::Decider(Memory& memory) : memory_(memory) { memory_replaced(); }

void Decider::memory_replaced() {
  names_ = {};
  holders_.memory_replaced();
  ++life_;
  mark_ = memory_mark(memory_.view());
  stripe_ = shm::claim_living_stripe(memory_.view(), memory_.stripe_owner());
}

const wire::AcquireAnswer& Decider::acquire(const wire::AcquireView& asked,
                                             wire::Receipts* receipts) {
  acquired_.decisions.resize(asked.items.size());
  Found found;
  told_ = 0;
  const std::int64_t max_wait_ns = wait_of(asked.max_wait_ns);
  for (std::size_t i = 0; i < asked.items.size(); ++i) {
    shm::AdmitAsk ask;
    if (prepare(asked.items[i], found, ask, acquired_.decisions[i])) {
      ask.max_wait_ns = max_wait_ns;
      decide(asked.items[i], ask, receipts, acquired_.decisions[i]);
    } else if (receipts != nullptr) {
      receipts->add({});
    }
  }
  return acquired_;
}

void Decider::decide(const wire::ItemView& item, const shm::AdmitAsk& ask, wire::Receipts* receipts,
                     wire::DecisionAnswer& out) {
  const shm::View& view = memory_.view();
  const bool after_the_fact = (item.flags & wire::kItemAfterTheFact) != 0;
  std::uint64_t charged = item.cost;
  DecisionData data{Unfilled{}};
  const shm::Outcome outcome = after_the_fact ? shm::charge_after(view, ask, charged, data)
                                              : shm::admit(view, ask, data);
  if (outcome != shm::Outcome::Answered) {
    data = gone(view);
  } else if (item.cost != 0 && after_the_fact) {
    shm::count_after(stripe_, ask.limit.index, item.cost, charged);
  } else if (item.cost != 0) {
    leave_behind(ask, item.cost, data);
  }
  if (receipts != nullptr) add_receipt(life_, ask.limit, data, *receipts);
  fill_decision(data, item.cost, view.clock.is_stepped(), out);
}

/// What a decision leaves behind: counts, and a word to the witness.
void Decider::leave_behind(const shm::AdmitAsk& ask, std::uint64_t cost,
                           const DecisionData& data) {
  shm::count_answer(stripe_, ask.limit.index, cost, data);
  if (witness_ != nullptr) witness_->decided(ask, data.reason == Reason::Allowed);
}

/// A mapped client's answer while a limit cannot be decided by its rule.
DecisionData Decider::gone(const shm::View& view) {
  DecisionData out;
  out.flags = Decision::kDegraded | Decision::kHint;
  out.computed = true;
  out.base_t = kRetryHintNs;
  out.t = view.clock.now();
  return out;
}

std::int64_t Decider::wait_of(std::uint64_t max_wait_ns) noexcept {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(max_wait_ns, rule::kMaxWaitNs));
}

const wire::PeekAnswer& Decider::peek(const wire::Peek& asked) {
  peeked_.decisions.resize(asked.items.size());
  Found found;
  told_ = 0;
  for (std::size_t i = 0; i < asked.items.size(); ++i) {
    wire::DecisionAnswer& out = peeked_.decisions[i];
    shm::AdmitAsk ask;
    if (!prepare(asked.items[i], found, ask, out)) continue;
    DecisionData data{Unfilled{}};
    const shm::View& view = memory_.view();
    if (shm::look(view, ask, data) != shm::Outcome::Answered) data = gone(view);
    fill_decision(data, 0, view.clock.is_stepped(), out);
  }
  return peeked_;
}

/// False: `out` is the item's error.
bool Decider::prepare(const wire::ItemView& item, Found& found, shm::AdmitAsk& ask,
                      wire::DecisionAnswer& out) {
  if (!item.limit.empty()) found = {names_.find(memory_.view(), item.limit), item.limit};
  if (found.limit == nullptr) {
    fail(out, wire::ItemError::UnknownName, unknown(found.name));
    return false;
  }
  if (item.key.size() > wire::kMaxKey) {
    fail(out, wire::ItemError::KeyTooLong,
         fmt::format("a key has at most {} bytes, this one {}", wire::kMaxKey, item.key.size()));
    return false;
  }
  ask.limit = found.limit->ref;
  ask.key = shm::key_of(*found.limit, item.key);
  ask.cost = item.cost;
  return true;
}

std::string Decider::unknown(std::string_view name) {
  const shm::View& view = memory_.view();
  if (told_++ >= kMaxTold || view.image_head(view.current()).limits > kMaxCompared) {
    return fmt::format("no limit '{}'", name);
  }
  const auto row = rows::limit_row(view, name, std::nullopt, 1);
  return row ? std::string("the limit was changed just now") : row.error().text();
}

wire::Returned Decider::give_back(std::string_view receipt, std::uint64_t tokens, Holder& holder) {
  if (receipt.empty()) return {};
  if (receipt.size() <= wire::kMaxTicket) {            // charges are longer
    const auto late = static_cast<std::uint16_t>(wire::ItemError::TooLate);
    return {cancel(receipt, holder) == 0 ? std::uint16_t{0} : late, 0};
  }
  auto kept = receipt_of(receipt);
  std::uint64_t given = 0;
  if (kept && kept->life == life_) given = shm::give_back(memory_.view(), kept->data, tokens);
  if (given == 0) return {static_cast<std::uint16_t>(wire::ItemError::TooLate), 0};
  stripe_.add(kept->limit.index, shm::LimitCounter::Undone, given);
  return {0, given};
}

}  // namespace cutwater::server
