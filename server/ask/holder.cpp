// SPDX-License-Identifier: Apache-2.0
#include "ask/holder.hpp"

namespace cutwater::server {

std::uint32_t TicketBook::issue() {
  if (!open_) open_ = std::make_unique<std::bitset<kTickets>>();
  const std::uint32_t serial = next_++;
  open_->set(serial % kTickets);     // whoever had this place is kTickets older: forgotten
  return serial;
}

TicketBook::Spent TicketBook::spend(std::uint32_t serial) noexcept {
  const std::uint32_t age = next_ - 1 - serial;   // modulo 2^32: a later one is very old
  if (!open_ || age >= kTickets) return Spent::Forgotten;
  if (!open_->test(serial % kTickets)) return Spent::Again;
  open_->reset(serial % kTickets);
  return Spent::First;
}

Holder& HolderBook::of(shm::RowGrant row) {
  Holder& holder = holders_[row.index];
  const bool same = holder.row.index == row.index && holder.row.generation == row.generation;
  if (!same) {
    holder.tickets = {};
    holder.holding = 0;
    holder.locals.clear();
    holder.row = row;
  }
  return holder;
}

void HolderBook::memory_replaced() {
  for (auto& [index, holder] : holders_) holder.locals.clear();
}

}  // namespace cutwater::server
