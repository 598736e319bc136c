// SPDX-License-Identifier: Apache-2.0
#include "src/ask/asked_calls.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "src/ask/asking.hpp"

namespace cutwater::client {

void AskedCall::set_ticket(std::string_view bytes) noexcept {
  size = static_cast<std::uint8_t>(std::min(bytes.size(), ticket.size()));
  std::memcpy(ticket.data(), bytes.data(), size);
}

/// Holds the lock; who waits for it sleeps, since its holder may be asking the daemon.
class AskedCalls::Guard {
 public:
  explicit Guard(AskedCalls& calls) noexcept : calls_(calls) {
    while (!calls_.lock_.try_lock()) {
      const timespec time{0, 20'000};
      nanosleep(&time, nullptr);
    }
    calls_.forget_other_life();
  }
  ~Guard() { calls_.lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  AskedCalls& calls_;
};

void AskedCalls::forget_other_life() noexcept {
  if (life_ == process_life()) return;
  life_ = process_life();
  first_ = nullptr;                      // a parent's: inert here, its memory goes with its Calls
  session_.store(0, std::memory_order_relaxed);
}

AskedCall* AskedCalls::add(void* record, std::string_view ticket, std::uint32_t session,
                           bool holds) noexcept {
  auto* const call = new (std::nothrow) AskedCall;
  if (call == nullptr) {
    count_lost();
    return nullptr;
  }
  call->record = record;
  call->life = process_life();
  call->start_ns = boottime_ns();
  call->set_ticket(ticket);
  call->holds = holds;
  call->session = session;
  const Guard guard(*this);
  call->behind = first_;
  if (first_ != nullptr) first_->before = call;
  // With none of another session under way, this is the one they are all of.
  if (first_ == nullptr) session_.store(session, std::memory_order_relaxed);
  if (session_.load(std::memory_order_relaxed) != session) {
    session_.store(0, std::memory_order_relaxed);
  }
  first_ = call;
  return call;
}

void AskedCalls::remove(AskedCall* call) noexcept {
  if (call->life == process_life()) {
    const Guard guard(*this);
    (call->before != nullptr ? call->before->behind : first_) = call->behind;
    if (call->behind != nullptr) call->behind->before = call->before;
  }
  delete call;
}

void AskedCalls::present(AskSocket& socket, std::int64_t deadline_ns) noexcept {
  if (all_of(socket)) return;
  const Guard guard(*this);
  try {
    while (present_some(socket, deadline_ns)) {}
  } catch (const std::exception&) {
    // No memory for the message: the next one tries again.
  }
}

/// One message's worth. False: nothing is left to present, or it was not answered.
bool AskedCalls::present_some(AskSocket& socket, std::int64_t deadline_ns) {
  const std::uint32_t session = socket.session_number();
  wire::Present message;
  std::vector<AskedCall*> asked;
  for (AskedCall* at = first_; at != nullptr && asked.size() < wire::kMaxOutcomes;
       at = at->behind) {
    if (at->session == session || at->size == 0 || at->used) continue;
    asked.push_back(at);
    message.tickets.emplace_back(at->bytes());
  }
  if (asked.empty()) {
    session_.store(session, std::memory_order_relaxed);
    return false;
  }
  std::vector<std::string> tickets;
  std::uint32_t answered = 0;
  const AskEnd end = ask_present(socket, message, tickets, answered, deadline_ns);
  if (end != AskEnd::Answered) return false;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i]->set_ticket(tickets[i]);
    asked[i]->session = answered;
  }
  return true;
}

/// From here on nobody presents it: reported and presented it would be held by nobody.
AskedCalls::Taken AskedCalls::take_ticket(AskedCall& call, wire::OutcomeReport& report) noexcept {
  const Guard guard(*this);              // whoever presents may change it
  const Taken out{call.session, std::exchange(call.used, true)};
  try {
    report.ticket = call.bytes();
  } catch (const std::exception&) {
    report.ticket.clear();
  }
  return out;
}

/// It was not reported after all. Others may have presented what they found meanwhile.
void AskedCalls::put_back(AskedCall& call) noexcept {
  const Guard guard(*this);
  call.used = false;
  session_.store(0, std::memory_order_relaxed);
}

bool AskedCalls::report(AskSocket* socket, AskedCall& call, wire::OutcomeReport report,
                        std::int64_t deadline_ns) noexcept {
  if (socket != nullptr) present(*socket, deadline_ns);
  Taken taken = take_ticket(call, report);
  for (int attempt = 0; socket != nullptr && attempt < 2; ++attempt) {
    if (report.ticket.empty()) break;    // the daemon said that it is gone; or no memory for it
    if (post_outcome(*socket, report, call.holds, taken.session)) return true;
    // Another session, no connection, or too many under way: a PING makes the connection anew
    // where it must, and reads what others left to be read.
    std::int64_t clock = 0;
    if (ask_clock(*socket, clock, deadline_ns) != AskEnd::Answered) break;
    if (taken.told_before) continue;     // by its first word
    put_back(call);
    present(*socket, deadline_ns);
    taken = take_ticket(call, report);
  }
  count_lost();
  return false;
}

}  // namespace cutwater::client
