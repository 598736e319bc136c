// SPDX-License-Identifier: Apache-2.0
#include "wire/answer_memory.hpp"

#include <algorithm>

namespace cutwater::wire {
namespace {

std::uint16_t code_of(ItemError error) { return static_cast<std::uint16_t>(error); }

}  // namespace

bool is_remembered(MessageType request) noexcept {
  switch (request) {
    case MessageType::Acquire:
    case MessageType::Cancel:
    case MessageType::Refund:
    case MessageType::Enter:
    case MessageType::Outcome:
    case MessageType::Present:
    case MessageType::Steer: return true;
    default: return false;
  }
}

AnswerMemory::Seen AnswerMemory::seen(std::uint32_t request) const noexcept {
  if (running_.contains(request)) return Seen::Running;
  if (kept_.contains(request)) return Seen::Answered;
  return request <= floor_ ? Seen::Forgotten : Seen::Never;
}

std::optional<MessageType> AnswerMemory::running_type(std::uint32_t request) const noexcept {
  const auto running = running_.find(request);
  return running == running_.end() ? std::nullopt : std::optional(running->second.type);
}

std::optional<AnswerMemory::Answer> AnswerMemory::answer_of(
    std::uint32_t request) const noexcept {
  const auto kept = kept_.find(request);
  if (kept == kept_.end()) return std::nullopt;
  return Answer{kept->second.executed.type, kept->second.executed.payload};
}

void AnswerMemory::use(std::uint32_t request) noexcept {
  last_request_ = std::max(last_request_, request);
}

void AnswerMemory::not_executed(std::uint32_t request) noexcept {
  const auto running = running_.find(request);
  if (running == running_.end()) return;
  if (running->second.parked) --parked_;
  running_.erase(running);
}

void AnswerMemory::park(std::uint32_t request) noexcept {
  const auto running = running_.find(request);
  if (running == running_.end() || running->second.parked) return;
  running->second.parked = true;
  ++parked_;
}

void AnswerMemory::remember(std::uint32_t request, Executed executed) {
  use(request);
  if (kept_.contains(request)) return;
  executed.items = std::max<std::size_t>(executed.items, 1);
  items_ += executed.items;
  bytes_ += bytes_of(executed);
  Kepts::node_type node = make_room();
  const std::size_t takeable = std::max(executed.items, executed.receipts.size());
  if (node.empty()) {
    const auto kept = kept_.emplace(request, Kept{std::move(executed), {}}).first;
    kept->second.taken.assign(takeable, false);
  } else {
    node.key() = request;
    node.mapped().executed = std::move(executed);
    node.mapped().taken.assign(takeable, false);
    kept_.insert(std::move(node));
  }
  order_.push_back(request);
  not_executed(request);  // it runs no more
  if (items_ > kRememberedItems || bytes_ > kRememberedBytes) make_room();  // it is too much itself
}

/// Forgets what was answered first, until the bounds hold or nothing is left. The last one's place.
AnswerMemory::Kepts::node_type AnswerMemory::make_room() {
  Kepts::node_type node;
  while (!order_.empty() && (items_ > kRememberedItems || bytes_ > kRememberedBytes)) {
    node = kept_.extract(order_.front());
    order_.pop_front();
    Executed& oldest = node.mapped().executed;
    items_ -= oldest.items;
    bytes_ -= bytes_of(oldest);
    floor_ = std::max(floor_, node.key());
    spare_ = std::move(oldest);
  }
  return node;
}

AnswerMemory::Executed AnswerMemory::take_spare() noexcept {
  Executed out = std::move(spare_);
  out.payload.clear();
  out.receipts.clear();
  return out;
}

TakenReceipt AnswerMemory::take(std::uint32_t request, std::size_t item) {
  const auto kept = kept_.find(request);
  if (kept == kept_.end() || item >= kept->second.executed.items) {
    return {code_of(ItemError::NotRemembered), {}, {}};
  }
  if (kept->second.taken[item]) return {code_of(ItemError::Stale), {}, {}};
  TakenReceipt out{0, std::string(kept->second.executed.receipts.at(item)), {}};
  kept->second.taken[item] = true;
  return out;
}

AnswerMemory::TakenAll AnswerMemory::take_all(std::uint32_t request) {
  TakenAll out;
  const auto kept = kept_.find(request);
  if (kept == kept_.end()) return out;
  out.found = true;
  const Receipts& receipts = kept->second.executed.receipts;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (!kept->second.taken[i]) out.receipts.emplace_back(receipts.at(i));
  }
  kept->second.taken.assign(kept->second.taken.size(), true);
  return out;
}

void AnswerMemory::put_back(std::uint32_t request, std::size_t item) noexcept {
  const auto kept = kept_.find(request);
  if (kept == kept_.end() || item >= kept->second.taken.size()) return;
  kept->second.taken[item] = false;
}

}  // namespace cutwater::wire
