// SPDX-License-Identifier: Apache-2.0
#include "ask/ticket.hpp"

#include <cstring>

#include "base/crc32c.hpp"
#include "shm/limit/key_hash.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::server {

namespace {

constexpr std::uint8_t kKindBits = 7, kBreakerBit = 8, kPlaceBit = 16, kWordBit = 32;
constexpr unsigned kStartBytes = 7, kCellBytes = 3;
constexpr std::uint32_t kGenerationMask = 0xffff;

class Writer {
 public:
  void put(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Parts {
 public:
  explicit Parts(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t take(unsigned bytes) noexcept {
    if (bytes_.size() < bytes) {
      good_ = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(bytes_[i])} << (8 * i);
    }
    bytes_.remove_prefix(bytes);
    return value;
  }
  std::uint32_t take32(unsigned bytes) noexcept { return static_cast<std::uint32_t>(take(bytes)); }
  bool whole() const noexcept { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

/// The first word of a held cell (a probe's, a tracked call's) follows from what the ticket says
/// anyway.
std::uint64_t first_word(const Ticket& ticket) noexcept {
  shm::ProbeCell cell;
  cell.row = ticket.row.index;
  cell.generation = ticket.row.generation;
  cell.epoch = ticket.call.epoch;
  cell.state = shm::ProbeState::Held;
  return shm::pack_probe(cell).lo;
}

/// The moment that ends in these bits, at or before `now_ns`; 0 stays 0.
std::int64_t complete(std::uint64_t low, std::int64_t now_ns) noexcept {
  if (low == 0) return 0;
  const std::uint64_t mask = (std::uint64_t{1} << (8 * kStartBytes)) - 1;
  const auto now = static_cast<std::uint64_t>(now_ns);
  return static_cast<std::int64_t>(now - ((now - low) & mask));
}

void put_call(Writer& out, const Ticket& ticket, std::uint32_t life) {
  out.put(ticket.breaker.index, 2);
  out.put(ticket.breaker.incarnation ^ life, 4);
  out.put(ticket.call.epoch, 4);
  out.put(ticket.call.cell, 1);
  if (ticket.has_cell()) out.put(ticket.call.ticket.hi, 8);
}

void take_call(Parts& in, Ticket& out, bool cell, std::uint32_t life) {
  out.breaker.index = in.take32(2);
  out.breaker.incarnation = in.take32(4) ^ life;
  out.call.epoch = in.take32(4);
  out.call.cell = static_cast<std::uint16_t>(in.take(1));
  out.call.start_ns = out.start_ns;
  if (cell) out.call.ticket = {first_word(out), in.take(8)};
}

}  // namespace

std::string to_ticket(const Ticket& ticket, std::uint32_t life) {
  Writer out;
  const auto kind = ticket.has_breaker ? static_cast<std::uint8_t>(ticket.call.kind) : 0;
  out.put(static_cast<std::uint8_t>(kind | (ticket.has_breaker ? kBreakerBit : 0) |
                                    (ticket.has_place ? kPlaceBit : 0) |
                                    (ticket.has_cell() ? kWordBit : 0)),
          1);
  out.put(ticket.row.index, 2);
  out.put(ticket.row.generation & kGenerationMask, 2);
  out.put(ticket.serial, 4);
  out.put(static_cast<std::uint64_t>(ticket.start_ns), kStartBytes);
  if (ticket.has_breaker) put_call(out, ticket, life);
  if (ticket.has_place) {
    out.put(ticket.bulkhead.index, 2);
    out.put(ticket.bulkhead.incarnation ^ life, 4);
    out.put(ticket.cell, kCellBytes);
    out.put(ticket.take, 4);
  }
  return out.take();
}

std::optional<Ticket> ticket_of(std::string_view bytes, std::uint32_t life, std::int64_t now_ns) {
  if (bytes.size() > wire::kMaxTicket) return std::nullopt;
  Parts in(bytes);
  Ticket out;
  const auto form = static_cast<std::uint8_t>(in.take(1));
  if (form >= 2 * kWordBit) return std::nullopt;
  out.row.index = in.take32(2);
  out.row.generation = in.take32(2);
  out.has_breaker = (form & kBreakerBit) != 0;
  out.has_place = (form & kPlaceBit) != 0;
  const bool cell = (form & kWordBit) != 0;
  const std::uint8_t kind = form & kKindBits;
  if (!out.has_breaker && !out.has_place) return std::nullopt;
  if (out.has_breaker == (kind == 0) || kind > static_cast<std::uint8_t>(shm::CallKind::OwnProbe)) {
    return std::nullopt;
  }
  out.call.kind = static_cast<shm::CallKind>(kind);
  if (cell ? !out.has_breaker : out.is_probe()) return std::nullopt;
  out.serial = in.take32(4);
  out.start_ns = complete(in.take(kStartBytes), now_ns);
  if (out.has_breaker) take_call(in, out, cell, life);
  if (out.has_place) {
    out.bulkhead.index = in.take32(2);
    out.bulkhead.incarnation = in.take32(4) ^ life;
    out.cell = in.take32(kCellBytes);
    out.take = in.take32(4);
  }
  if (!in.whole()) return std::nullopt;
  return out;
}

bool is_of(const Ticket& ticket, shm::RowGrant row) noexcept {
  return ticket.row.index == row.index &&
         (ticket.row.generation & kGenerationMask) == (row.generation & kGenerationMask);
}

std::uint32_t memory_mark(const shm::View& view) noexcept {
  return crc32c(view.secret, shm::kSecretBytes);
}

}  // namespace cutwater::server
