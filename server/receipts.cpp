// SPDX-License-Identifier: Apache-2.0
#include "receipts.hpp"

#include <algorithm>

namespace cutwater::server {

namespace {
constexpr std::size_t kFirstReceipts = 16;
}

void Receipts::add(std::uint32_t request, std::uint16_t item, shm::LimitRef limit,
                   const DecisionData& data) {
  if (size_ == ring_.size() && size_ < kMaxReceipts) grow();
  if (size_ == ring_.size()) {
    begin_ = (begin_ + 1) % ring_.size();
    --size_;
  }
  Entry& entry = at(size_++);
  entry.request = request;
  entry.item = item;
  entry.spent = false;
  entry.limit = limit;
  entry.data = data;
}

void Receipts::forget(std::uint32_t request) noexcept {
  while (size_ > 0 && at(0).request <= request) {
    begin_ = (begin_ + 1) % ring_.size();
    --size_;
  }
}

Receipts::Entry* Receipts::find(std::uint32_t request, std::uint16_t item) noexcept {
  const std::size_t i = lower_bound(request, item);
  if (i == size_ || at(i).request != request || at(i).item != item) return nullptr;
  return &at(i);
}

std::size_t Receipts::lower_bound(std::uint32_t request, std::uint16_t item) noexcept {
  std::size_t low = 0, high = size_;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const Entry& entry = at(middle);
    const bool before =
        entry.request < request || (entry.request == request && entry.item < item);
    if (before) low = middle + 1;
    else high = middle;
  }
  return low;
}

void Receipts::grow() {
  std::vector<Entry> larger(std::min(std::max(2 * ring_.size(), kFirstReceipts), kMaxReceipts));
  for (std::size_t i = 0; i < size_; ++i) larger[i] = at(i);
  ring_ = std::move(larger);
  begin_ = 0;
}

}  // namespace cutwater::server
