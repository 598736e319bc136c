// SPDX-License-Identifier: Apache-2.0
#include "ask/receipt_bytes.hpp"

#include <cstring>

namespace cutwater::server {

namespace {

struct Head {
  std::uint32_t life;
  std::uint32_t limit, incarnation;
  std::uint32_t tokens;
  std::uint8_t f, charges;
  std::uint16_t pad;
};

/// Receipts of one decision as bytes, where they are made.
class Bytes {
 public:
  Bytes(std::uint32_t life, shm::LimitRef limit, const DecisionData& data) noexcept {
    if (data.receipt != Receipt::One && data.receipt != Receipt::Several) return;
    const bool several = data.receipt == Receipt::Several;
    const std::uint8_t charges = several ? data.charges : std::uint8_t{1};
    append(Head{life, limit.index, limit.incarnation, data.tokens, data.f, charges, 0});
    append(ChargeReceipt{data.slot, data.tag, data.level, data.cost});
    for (std::size_t i = 1; i < charges; ++i) append(data.more[i - 1]);
  }
  std::string_view text() const noexcept { return {bytes_, size_}; }

 private:
  template <class Part>
  void append(const Part& part) noexcept {
    std::memcpy(bytes_ + size_, &part, sizeof part);
    size_ += sizeof part;
  }

  char bytes_[sizeof(Head) + kMaxCharges * sizeof(ChargeReceipt)];
  std::size_t size_ = 0;
};

}  // namespace

std::string to_bytes(std::uint32_t life, shm::LimitRef limit, const DecisionData& data) {
  return std::string(Bytes(life, limit, data).text());
}

void add_receipt(std::uint32_t life, shm::LimitRef limit, const DecisionData& data,
                 wire::Receipts& receipts) {
  receipts.add(Bytes(life, limit, data).text());
}

std::optional<KeptReceipt> receipt_of(std::string_view bytes) {
  Head head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  const bool fits = head.charges >= 1 && head.charges <= kMaxCharges &&
                    bytes.size() == sizeof head + head.charges * sizeof(ChargeReceipt);
  if (!fits) return std::nullopt;
  KeptReceipt out;
  out.life = head.life;
  out.limit = {head.limit, head.incarnation};
  out.data.reason = Reason::Allowed;
  out.data.receipt = head.charges == 1 ? Receipt::One : Receipt::Several;
  out.data.charges = head.charges;
  out.data.tokens = head.tokens;
  out.data.f = head.f;
  const char* at = bytes.data() + sizeof head;
  ChargeReceipt first;
  std::memcpy(&first, at, sizeof first);
  out.data.slot = first.slot;
  out.data.tag = first.tag;
  out.data.level = first.level;
  out.data.cost = first.cost;
  std::memcpy(out.data.more, at + sizeof first, (head.charges - 1U) * sizeof(ChargeReceipt));
  return out;
}

}  // namespace cutwater::server
