// SPDX-License-Identifier: Apache-2.0
// Tickets as bytes, and which of a session's were used.
#include <gtest/gtest.h>

#include "ask/holder.hpp"
#include "ask/ticket.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::test {
namespace {

using server::Ticket;

Ticket whole_ticket() {
  Ticket out;
  out.row = {7, 0x1234};
  out.has_breaker = true;
  out.breaker = {9, 77};
  out.call.kind = shm::CallKind::Probe;
  out.call.epoch = 0xabcdef01;
  out.call.cell = 63;
  out.start_ns = out.call.start_ns = 3'000'000'000'000'123;
  out.serial = 0xdeadbeef;
  shm::ProbeCell cell;
  cell.row = 7;
  cell.generation = 0x234;
  cell.epoch = out.call.epoch;
  cell.state = shm::ProbeState::Held;
  cell.deadline_us = 123'456'789;
  cell.take = 99;
  out.call.ticket = shm::pack_probe(cell);
  out.set_place({65'535, 5}, {shm::pack_held({7, 0x1234}, 0x87654321), 0, (1U << 24) - 1});
  return out;
}

TEST(TicketBytes, HoldEverythingWithinTheBoundAndOtherBytesAreNone) {
  const Ticket ticket = whole_ticket();
  const std::string bytes = server::to_ticket(ticket, 42);
  EXPECT_EQ(bytes.size(), wire::kMaxTicket);

  const auto kept = server::ticket_of(bytes, 42, ticket.call.start_ns + 5);

  ASSERT_TRUE(kept);
  EXPECT_TRUE(server::is_of(*kept, ticket.row));
  EXPECT_FALSE(server::is_of(*kept, {8, 0x1234}));
  EXPECT_FALSE(server::is_of(*kept, {7, 0x1235}));
  EXPECT_EQ(kept->breaker.index, 9U);
  EXPECT_EQ(kept->breaker.incarnation, 77U);
  EXPECT_EQ(kept->call.epoch, ticket.call.epoch);
  EXPECT_EQ(kept->call.cell, 63U);
  EXPECT_EQ(kept->call.start_ns, ticket.call.start_ns);
  EXPECT_TRUE(kept->call.ticket == ticket.call.ticket);
  EXPECT_EQ(kept->serial, 0xdeadbeefU);
  EXPECT_EQ(kept->bulkhead.index, 65'535U);
  EXPECT_EQ(kept->bulkhead.incarnation, 5U);
  EXPECT_EQ(kept->place().cell, (1U << 24) - 1);
  EXPECT_EQ(kept->place().cell_value, shm::pack_held({7, 0x1234}, 0x87654321));
  EXPECT_EQ(kept->place().start_ns, ticket.start_ns);
  EXPECT_NE(server::ticket_of(bytes, 43, ticket.call.start_ns)->breaker.incarnation, 77U)
      << "of another memory it names another breaker";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(server::ticket_of(std::string_view(bytes).substr(0, size), 42, 0)) << size;
  }
  EXPECT_FALSE(server::ticket_of(bytes + "x", 42, 0));
  for (int form = 0; form < 256; ++form) {
    std::string other = bytes;
    other[0] = static_cast<char>(form);
    const auto read = server::ticket_of(other, 42, 0);
    // Any kind of call may hold a cell.
    const bool whole = (form & ~7) == (8 | 16 | 32) && (form & 7) >= 1 && (form & 7) <= 5;
    EXPECT_EQ(read.has_value(), whole) << form;
  }
}

TEST(TicketBook, TellsTheLastOnesApartAndForgetsOlderOnes) {
  using Spent = server::TicketBook::Spent;
  server::TicketBook book;
  EXPECT_EQ(book.spend(1), Spent::Forgotten);
  const std::uint32_t first = book.issue();
  const std::uint32_t second = book.issue();
  EXPECT_EQ(book.spend(second), Spent::First);
  EXPECT_EQ(book.spend(second), Spent::Again);
  EXPECT_EQ(book.spend(second + 1), Spent::Forgotten) << "never issued";
  for (std::uint32_t i = 0; i < server::TicketBook::kTickets - 2; ++i) book.issue();
  EXPECT_EQ(book.spend(first), Spent::First) << "the oldest that is still told apart";
  book.issue();
  EXPECT_EQ(book.spend(first), Spent::Forgotten);
  const std::uint32_t oldest = first + 2;
  book.issue();
  EXPECT_EQ(book.spend(oldest - 1 + server::TicketBook::kTickets * 2), Spent::Forgotten);
}

}  // namespace
}  // namespace cutwater::test
