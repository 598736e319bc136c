// SPDX-License-Identifier: Apache-2.0
#include "decider.hpp"

#include <algorithm>

#include "answer_fields.hpp"
#include "memory.hpp"
#include "rows/segment_rows.hpp"

namespace cutwater::server {

namespace {

constexpr std::int64_t kRetryHintNs = 100'000'000;
/// Nearest names are looked for among so many limits, and for so many items of a request: the
/// others get the code alone. A peer that asks for what is not there costs no more than that.
constexpr std::uint32_t kMaxCompared = 1024;
constexpr std::size_t kMaxTold = 2;

wire::Returned returned(wire::ItemError code) { return {static_cast<std::uint16_t>(code), 0}; }

void clear(wire::DecisionAnswer& out) {
  out.reason = wire::kReasonAllowed;
  out.remaining = out.retry_after_ns = out.reset_after_ns = out.wait_ns = 0;
  out.window = 0;
  out.flags = out.would = 0;
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
  stripe_ = shm::claim_stripe(memory_.view(), memory_.stripe_owner());
}

const wire::AcquireAnswer& Decider::acquire(const wire::Acquire& asked, Asker asker) {
  acquired_.decisions.resize(asked.items.size());
  Found found;
  told_ = 0;
  const std::int64_t max_wait_ns = wait_of(asked.max_wait_ns);
  for (std::size_t i = 0; i < asked.items.size(); ++i) {
    shm::AdmitAsk ask;
    if (!prepare(asked.items[i], found, ask, acquired_.decisions[i])) continue;
    ask.max_wait_ns = max_wait_ns;
    decide(asked.items[i], ask, static_cast<std::uint16_t>(i), asker, acquired_.decisions[i]);
  }
  return acquired_;
}

void Decider::decide(const wire::Item& item, const shm::AdmitAsk& ask, std::uint16_t index,
                     Asker asker, wire::DecisionAnswer& out) {
  const shm::View& view = memory_.view();
  const bool after_the_fact = (item.flags & wire::kItemAfterTheFact) != 0;
  std::uint64_t charged = item.cost;
  DecisionData data{Unfilled{}};
  const shm::Outcome outcome = after_the_fact ? shm::charge_after(view, ask, charged, data)
                                              : shm::admit(view, ask, data);
  if (outcome != shm::Outcome::Answered) {
    data = gone(view);
  } else if (item.cost != 0) {
    leave_behind({ask.limit, item.key, charged}, index, data, asker);
  }
  fill(data, out);
}

/// What a decision leaves behind: counts, its receipt, a word to the witness.
void Decider::leave_behind(const Charge& charge, std::uint16_t index, const DecisionData& data,
                           Asker asker) {
  count(charge.limit.index, charge.cost, data);
  if (asker.receipts != nullptr && data.receipt != Receipt::None) {
    asker.receipts->add(asker.request, index, charge.limit, data);
  }
  if (witness_ != nullptr) {
    witness_->decided(charge.limit, charge.key, data.reason == Reason::Allowed);
  }
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
    fill(data, out);
  }
  return peeked_;
}

/// False: `out` is the item's error.
bool Decider::prepare(const wire::Item& item, Found& found, shm::AdmitAsk& ask,
                      wire::DecisionAnswer& out) {
  if (item.limit) found = {names_.find(memory_.view(), *item.limit), *item.limit};
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

void Decider::fill(const DecisionData& data, wire::DecisionAnswer& out) const {
  fill_answer(data, out);
  const bool shadow = (data.flags & Decision::kShadow) != 0;
  out.would = shadow ? static_cast<std::uint16_t>(data.would) : std::uint16_t{0};
}

void Decider::count(std::uint32_t limit, std::uint64_t cost, const DecisionData& data) const {
  using shm::LimitCounter;
  if (data.reason == Reason::Allowed) {
    stripe_.add(limit, LimitCounter::Allowed, 1);
    stripe_.add(limit, LimitCounter::Tokens, cost);
  } else {
    stripe_.add(limit, LimitCounter::Refused, 1);
  }
  if ((data.flags & Decision::kOverflow) != 0) stripe_.add(limit, LimitCounter::NoPlace, 1);
  if ((data.flags & Decision::kDegraded) != 0) stripe_.add(limit, LimitCounter::Degraded, 1);
}

const wire::AcquireAnswer& Decider::expired(const wire::Acquire& asked) {
  acquired_.decisions.resize(asked.items.size());
  for (wire::DecisionAnswer& out : acquired_.decisions) {
    clear(out);
    out.reason = wire::kReasonExpired;
  }
  return acquired_;
}

const wire::EnterAnswer& Decider::expired(const wire::Enter&) {
  entered_.admission = {};
  entered_.admission.reason = wire::kReasonExpired;
  return entered_;
}

// ---- giving back -------------------------------------------------------------------------------

wire::CancelAnswer Decider::cancel(const wire::Cancel& asked, Receipts& receipts) {
  wire::CancelAnswer out;
  receipts.for_each_of(asked.request, [&](Receipts::Entry& entry) {
    if (entry.spent) return;
    const wire::Returned one = give_back(entry, wire::kMaxCost);
    out.returned.tokens += one.tokens;
    if (one.code != 0) out.returned.code = one.code;
  });
  return out;
}

wire::RefundAnswer Decider::refund(const wire::Refund& asked, Receipts& receipts) {
  wire::RefundAnswer out;
  out.items.reserve(asked.items.size());
  for (const wire::RefundItem& item : asked.items) {
    Receipts::Entry* entry = receipts.find(item.request, item.item);
    if (entry == nullptr) out.items.push_back(returned(wire::ItemError::NotRemembered));
    else if (entry->spent) out.items.push_back(returned(wire::ItemError::Stale));
    else out.items.push_back(give_back(*entry, item.n.value_or(wire::kMaxCost)));
  }
  return out;
}

wire::Returned Decider::give_back(Receipts::Entry& entry, std::uint64_t tokens) {
  const std::uint64_t given = shm::give_back(memory_.view(), entry.data, tokens);
  if (given == 0) return returned(wire::ItemError::TooLate);
  entry.spent = true;
  stripe_.add(entry.limit.index, shm::LimitCounter::Undone, given);
  return {0, given};
}

}  // namespace cutwater::server
