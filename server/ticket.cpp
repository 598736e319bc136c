// SPDX-License-Identifier: Apache-2.0
#include "ticket.hpp"

#include <cstring>

#include "wire/enter_message.hpp"

namespace cutwater::server {

namespace {

constexpr std::uint8_t kKindBits = 7, kBreakerBit = 8, kPlaceBit = 16, kWordsBit = 32;
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

/// The first word of a probe's cell follows from what the ticket says anyway.
std::uint64_t probe_word(const Ticket& ticket) noexcept {
  shm::ProbeCell cell;
  cell.row = ticket.row.index;
  cell.generation = ticket.row.generation;
  cell.epoch = ticket.call.epoch;
  cell.state = shm::ProbeState::Held;
  return shm::pack_probe(cell).lo;
}

/// Cells of calls that are no probes need both words.
bool needs_words(const Ticket& ticket) noexcept {
  return ticket.has_breaker && !ticket.is_probe() &&
         (ticket.call.ticket.lo != 0 || ticket.call.ticket.hi != 0);
}

/// The moment that ends in these bits, at or before `now_ns`; 0 stays 0.
std::int64_t complete(std::uint64_t low, std::int64_t now_ns) noexcept {
  if (low == 0) return 0;
  const std::uint64_t mask = (std::uint64_t{1} << (8 * kStartBytes)) - 1;
  const auto now = static_cast<std::uint64_t>(now_ns);
  return static_cast<std::int64_t>(now - ((now - low) & mask));
}

void put_call(Writer& out, const Ticket& ticket, bool words, std::uint32_t life) {
  out.put(ticket.breaker.index, 2);
  out.put(ticket.breaker.incarnation ^ life, 4);
  out.put(ticket.call.epoch, 4);
  out.put(ticket.call.cell, 1);
  out.put(static_cast<std::uint64_t>(ticket.call.start_ns), kStartBytes);
  if (words) out.put(ticket.call.ticket.lo, 8);
  if (words || ticket.is_probe()) out.put(ticket.call.ticket.hi, 8);
}

void take_call(Parts& in, Ticket& out, bool words, std::uint32_t life, std::int64_t now_ns) {
  out.breaker.index = in.take32(2);
  out.breaker.incarnation = in.take32(4) ^ life;
  out.call.epoch = in.take32(4);
  out.call.cell = static_cast<std::uint16_t>(in.take(1));
  out.call.start_ns = complete(in.take(kStartBytes), now_ns);
  out.call.ticket.lo = words ? in.take(8) : 0;
  out.call.ticket.hi = words || out.is_probe() ? in.take(8) : 0;
  if (out.is_probe()) out.call.ticket.lo = probe_word(out);
}

}  // namespace

std::string to_ticket(const Ticket& ticket, std::uint32_t life) {
  const bool words = needs_words(ticket) && !ticket.has_place;   // both would be too long
  Writer out;
  const auto kind = ticket.has_breaker ? static_cast<std::uint8_t>(ticket.call.kind) : 0;
  out.put(static_cast<std::uint8_t>(kind | (ticket.has_breaker ? kBreakerBit : 0) |
                                    (ticket.has_place ? kPlaceBit : 0) | (words ? kWordsBit : 0)),
          1);
  out.put(ticket.row.index, 2);
  out.put(ticket.row.generation & kGenerationMask, 2);
  if (ticket.has_breaker) put_call(out, ticket, words, life);
  if (ticket.has_place) {
    out.put(ticket.place.bulkhead, 2);
    out.put(ticket.place.incarnation ^ life, 4);
    out.put(ticket.place.cell, kCellBytes);
    out.put(ticket.place.word, 8);
  }
  if (ticket.has_serial()) out.put(ticket.serial, 4);
  return out.take();
}

std::optional<Ticket> ticket_of(std::string_view bytes, std::uint32_t life, std::int64_t now_ns) {
  if (bytes.size() > wire::kMaxTicket) return std::nullopt;
  Parts in(bytes);
  Ticket out;
  const auto form = static_cast<std::uint8_t>(in.take(1));
  if (form >= 2 * kWordsBit) return std::nullopt;
  out.row.index = in.take32(2);
  out.row.generation = in.take32(2);
  out.has_breaker = (form & kBreakerBit) != 0;
  out.has_place = (form & kPlaceBit) != 0;
  const bool words = (form & kWordsBit) != 0;
  const std::uint8_t kind = form & kKindBits;
  if (!out.has_breaker && !out.has_place) return std::nullopt;
  if (out.has_breaker == (kind == 0) || kind > static_cast<std::uint8_t>(shm::CallKind::OwnProbe)) {
    return std::nullopt;
  }
  out.call.kind = static_cast<shm::CallKind>(kind);
  if (words && (!out.has_breaker || out.has_place || out.is_probe())) return std::nullopt;
  if (out.has_breaker) take_call(in, out, words, life, now_ns);
  if (out.has_place) {
    out.place.bulkhead = in.take32(2);
    out.place.incarnation = in.take32(4) ^ life;
    out.place.cell = in.take32(kCellBytes);
    out.place.word = in.take(8);
  }
  if (out.has_serial()) out.serial = in.take32(4);
  if (!in.whole()) return std::nullopt;
  return out;
}

bool is_of(const Ticket& ticket, shm::RowGrant row) noexcept {
  return ticket.row.index == row.index &&
         (ticket.row.generation & kGenerationMask) == (row.generation & kGenerationMask);
}

std::uint32_t memory_mark(const shm::View& view) noexcept {
  std::uint32_t words[4];
  static_assert(sizeof words == 16);
  std::memcpy(words, view.uuid, sizeof words);
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

}  // namespace cutwater::server
