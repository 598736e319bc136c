// SPDX-License-Identifier: Apache-2.0
// What a session may still give back: the receipts of the answers it remembers, under request and
// item. CANCEL and REFUND spend them.
//
// A receipt is spent once (L7); one that is too late is not spent. Requests are answered in the
// order of their ids, so the ring is sorted. Bound: kMaxReceipts; the oldest is forgotten, and so
// are those of requests whose answer is forgotten (forget()). The ring grows as it is used: a
// session that never acquires holds nothing.
// Thread safety: one thread.
#pragma once
#include <cstdint>
#include <vector>

#include <cutwater/decision.hpp>

#include "shm/bucket.hpp"

namespace cutwater::server {

class Receipts {
 public:
  static constexpr std::size_t kMaxReceipts = 1024;

  struct Entry {
    std::uint32_t request = 0;
    std::uint16_t item = 0;
    bool spent = false;
    shm::LimitRef limit;               ///< for counting
    DecisionData data{Unfilled{}};
  };

  /// A charge was made. Calls come in the order of (request, item).
  void add(std::uint32_t request, std::uint16_t item, shm::LimitRef limit,
           const DecisionData& data);
  /// Forgets everything up to this request.
  void forget(std::uint32_t request) noexcept;

  /// nullptr: nothing was charged there, or it is forgotten.
  Entry* find(std::uint32_t request, std::uint16_t item) noexcept;
  /// Calls `each` with every receipt of the request, last item first.
  template <class Each>
  void for_each_of(std::uint32_t request, Each&& each) {
    const std::size_t first = lower_bound(request, 0);
    std::size_t end = first;
    while (end < size_ && at(end).request == request) ++end;
    while (end > first) each(at(--end));
  }

  std::size_t size() const noexcept { return size_; }

 private:
  Entry& at(std::size_t i) noexcept { return ring_[(begin_ + i) % ring_.size()]; }
  std::size_t lower_bound(std::uint32_t request, std::uint16_t item) noexcept;
  void grow();

  std::vector<Entry> ring_;
  std::size_t begin_ = 0, size_ = 0;
};

}  // namespace cutwater::server
