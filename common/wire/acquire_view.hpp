// SPDX-License-Identifier: Apache-2.0
// ACQUIRE read and answered without a copy: texts stay where they lie in the frame, and the answer
// is written behind its frame's header. The same bytes and the same rules as Acquire and
// AcquireAnswer of ask_message.hpp; tests compare them. Allocates nothing once its buffers are
// warm. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/ask_message.hpp"
#include "wire/receipts.hpp"

namespace cutwater::wire {

/// As Item. Points into the frame, or into the Item it was made from.
struct ItemView {
  std::string_view limit;  ///< empty: that of the item before
  std::string_view key;
  std::uint64_t cost = 1;
  std::uint8_t flags = 0;
};

struct AcquireView {
  std::uint64_t ttl_ns = 0, max_wait_ns = 0;
  std::span<const ItemView> items;
};

/// Reads an ACQUIRE; `items` is where the view's items are put. False: it is not one, or written in
/// a way that only decode<Acquire>() reads, which then also says what is wrong with it.
bool read_acquire(std::string_view payload, std::vector<ItemView>& items, AcquireView& out);

inline ItemView view_of(const Item& item) noexcept {
  return {item.limit ? std::string_view(*item.limit) : std::string_view{}, item.key, item.cost,
          item.flags};
}
/// The same view of a message that was read already.
AcquireView view_of(const Acquire& message, std::vector<ItemView>& items);

/// Appends the payload of an answer whose decisions are none of them item errors.
void put_decisions(std::string& out, std::span<const DecisionAnswer> decisions);

/// Who decides ACQUIREs at once, while the session reads them (ServerSession::set_acquires()). One
/// for all sessions of a thread.
class AcquireServer {
 public:
  /// One answer for each item, valid until the next call. `receipts`: to be given one for each
  /// item, empty where nothing was charged; nullptr when nothing is remembered.
  virtual const AcquireAnswer& acquire_now(const AcquireView& asked, Receipts* receipts) = 0;
  /// Where the session puts the items it reads.
  std::vector<ItemView>& items() noexcept { return items_; }

 protected:
  ~AcquireServer() = default;

 private:
  std::vector<ItemView> items_;
};

}  // namespace cutwater::wire
