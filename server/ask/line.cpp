// SPDX-License-Identifier: Apache-2.0
#include "ask/line.hpp"

#include "memory.hpp"

namespace cutwater::server {

void Line::add(Asker asker, std::unique_ptr<WaitingEnter> waits, std::uint64_t now_ns) {
  if (!timer_) {
    if (const auto connection = asker.connection.lock()) timer_.emplace(connection->executor());
  }
  waiting_.push_back({std::move(asker), std::move(waits), now_ns});
  arm();
}

void Line::arm() {
  if (!armed_ && !waiting_.empty() && timer_) look_after(kPollNs);
}

void Line::soon() {
  if (!waiting_.empty() && timer_) look_after(0);
}

void Line::look_after(std::uint64_t ns) {
  armed_ = true;
  timer_->expires_after(std::chrono::nanoseconds(ns));   // a former wait ends with an error
  timer_->async_wait([this](std::error_code error) {
    if (error) return;                 // another wait took its place, or we are gone
    armed_ = false;
    poll(static_cast<std::uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch().count()));
    arm();
  });
}

/// False: its row is dead, perhaps granted anew; the reap has emptied its record. What the book
/// keeps of that row, and whatever enters by it, is its successor's.
bool Line::is_its_own(const Asker& asker) const {
  return shm::row_alive(memory_.view(), asker.row.index, asker.row.generation);
}

void Line::poll(std::uint64_t now_ns) {
  std::list<Told> told;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto at = it++;
    Entry& entry = *at;
    const shm::RowGrant row = entry.asker.row;
    if (!is_its_own(entry.asker)) {
      waiting_.erase(at);
      continue;
    }
    if (!decider_.is_due(*entry.waits) && now_ns - entry.looked_ns < kLookNs) continue;
    entry.looked_ns = now_ns;
    wire::Receipts receipts;
    const wire::EnterAnswer* const answer =
        decider_.resume(*entry.waits, decider_.holders().of(row),
                        entry.asker.remembers ? &receipts : nullptr);
    if (answer == nullptr) continue;
    told.push_back({std::move(entry.asker), *answer, std::move(receipts)});
    waiting_.erase(at);
  }
  tell(std::move(told));
}

bool Line::cancel(const std::string& session, std::uint32_t request) {
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if (at->asker.request != request || at->asker.session != session) continue;
    if (!is_its_own(at->asker)) {
      waiting_.erase(at);
      return false;
    }
    std::list<Told> told;
    const auto& answer =
        decider_.cancel_wait(*at->waits, decider_.holders().of(at->asker.row));
    told.push_back({std::move(at->asker), answer, {}});
    waiting_.erase(at);
    tell(std::move(told));
    return true;
  }
  return false;
}

void Line::memory_replaced(std::uint64_t now_ns) {
  std::list<Told> told;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto at = it++;
    if (!is_its_own(at->asker)) {
      waiting_.erase(at);
      continue;
    }
    at->looked_ns = now_ns;
    wire::Receipts receipts;
    const wire::EnterAnswer* const answer =
        decider_.begin_again(*at->waits, decider_.holders().of(at->asker.row),
                             at->asker.remembers ? &receipts : nullptr);
    if (answer == nullptr) continue;
    told.push_back({std::move(at->asker), *answer, std::move(receipts)});
    waiting_.erase(at);
  }
  tell(std::move(told));
}

void Line::tell(std::list<Told>&& told) {
  for (Told& one : told) deliver_(one.asker, one.answer, std::move(one.receipts));
}

}  // namespace cutwater::server
