// SPDX-License-Identifier: Apache-2.0
// AskedCall: what a Call or a Place over the socket holds: its ticket. AskedCalls: all of one
// Client that are under way, so that the tickets can be presented when the daemon is another one
// (or the session was lost): whoever is answered first over the new session, whatever he asked,
// presents them, once for all; who asks a breaker or a bulkhead does it before he asks.
// What the daemon says is gone ends without a word, counted.
//
// Presenting is done within one ask's time limit; other threads wait for it as long. When it fails,
// the next one tries again.
// Forks: calls belong to the process_life() they were made in; a child forgets its parent's.
// Bounds: as many as the program holds calls. Thread safety: everything from any thread.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "src/ask/ask_socket.hpp"
#include "src/life_lock.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::client {

struct AskedCall {
  void* record = nullptr;                ///< its BreakerRecord or BulkheadRecord
  std::uint64_t life = 0;                ///< process_life() it was made in
  std::int64_t start_ns = 0;             ///< CLOCK_BOOTTIME of the answer
  std::array<char, wire::kMaxTicket> ticket{};
  std::uint8_t size = 0;                 ///< of the ticket; 0: gone
  bool holds = false;                    ///< a cell: its outcome is repeated until it is answered
  bool timed = false;                    ///< a Call: the time it takes is told with its end
  bool used = false;                     ///< its end is told, or lost: AskedCalls' own
  std::uint32_t session = 0;             ///< whose ticket it is
  AskedCall* before = nullptr;           ///< AskedCalls' own
  AskedCall* behind = nullptr;

  std::string_view bytes() const noexcept { return {ticket.data(), size}; }
  void set_ticket(std::string_view bytes) noexcept;
};

class AskedCalls {
 public:
  /// A call that was granted; nullptr without memory for it, counted.
  AskedCall* add(void* record, std::string_view ticket, std::uint32_t session,
                 bool holds) noexcept;
  /// Its Call or Place has ended.
  void remove(AskedCall* call) noexcept;

  /// True when nothing is to be presented there. A look; costs nothing.
  bool all_of(const AskSocket& socket) const noexcept {
    // relaxed: a hint; the lock orders what it is about.
    return session_.load(std::memory_order_relaxed) == socket.session_number();
  }
  /// Presents what belongs to another session than the socket's present one. Costs one look when
  /// there is nothing to do.
  void present(AskSocket& socket, std::int64_t deadline_ns) noexcept;

  /// Reports the end of a call, presenting it first where that is needed; nobody presents it any
  /// more. False: it is lost, counted.
  bool report(AskSocket* socket, AskedCall& call, wire::OutcomeReport report,
              std::int64_t deadline_ns) noexcept;

  /// Outcomes that could not be told.
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  void count_lost() noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }

 private:
  class Guard;
  void forget_other_life() noexcept;
  bool present_some(AskSocket& socket, std::int64_t deadline_ns);
  struct Taken {
    std::uint32_t session;               ///< whose ticket it is
    bool told_before;
  };
  Taken take_ticket(AskedCall& call, wire::OutcomeReport& report) noexcept;
  void put_back(AskedCall& call) noexcept;

  LifeLock lock_;                        // the next three
  AskedCall* first_ = nullptr;
  std::uint64_t life_ = 0;
  std::atomic<std::uint32_t> session_{0};   // all of them are of it; read without the lock
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace cutwater::client
