// SPDX-License-Identifier: Apache-2.0
// Socket callers that stand in line for a place: each is a record in the memory like a mapped
// waiter's (shm/enter.hpp), owned by the row of its session. Nobody sleeps for them: poll() looks
// which were handed a place, are over, or have lost their row, and says so by `deliver`: every
// kPollNs while anybody waits, by a timer of its own on the loop of who came first, and in the turn
// behind each give-back over a socket. One that nothing was seen of for kLookNs is looked at all
// the same.
//
// An answer goes to the session, wherever it is by then: its connection, the one that took it over,
// or what it remembers. A row that is dead takes its waiters along, without an answer.
// Bounds: wire::kMaxWaitingEnters of a session, the waiters of the memory in all.
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include <asio.hpp>

#include "ask/decider.hpp"
#include "connection.hpp"

namespace cutwater::server {

class Line {
 public:
  static constexpr std::uint64_t kPollNs = 2'000'000;
  static constexpr std::uint64_t kLookNs = 20'000'000;

  /// Who asked: enough to find its session again.
  struct Asker {
    std::weak_ptr<Connection> connection;
    std::string session;
    std::uint32_t request = 0;
    shm::RowGrant row;
    bool remembers = false;
  };
  using Deliver =
      std::function<void(const Asker&, const wire::EnterAnswer&, wire::Receipts)>;

  Line(Memory& memory, Decider& decider) : memory_(memory), decider_(decider) {}
  void set_deliver(Deliver deliver) { deliver_ = std::move(deliver); }

  void add(Asker asker, std::unique_ptr<WaitingEnter> waits, std::uint64_t now_ns);
  void poll(std::uint64_t now_ns);
  /// Something was given back: a look in the next turn of the loop. Not at once, since an answer
  /// may end other connections than the one that is served.
  void soon();
  /// Ends the wait of that request; it is answered `cancelled`. False: it does not wait, or its row
  /// is dead.
  bool cancel(const std::string& session, std::uint32_t request);
  /// The memory is another one: everybody begins anew.
  void memory_replaced(std::uint64_t now_ns);

  std::size_t size() const noexcept { return waiting_.size(); }

 private:
  struct Entry {
    Asker asker;
    std::unique_ptr<WaitingEnter> waits;
    std::uint64_t looked_ns = 0;
  };
  /// What became of one, and the answer to give it: told when nothing here is walked any more.
  struct Told {
    Asker asker;
    wire::EnterAnswer answer;
    wire::Receipts receipts;
  };
  bool is_its_own(const Asker& asker) const;
  void tell(std::list<Told>&& told);
  void arm();
  void look_after(std::uint64_t ns);

  Memory& memory_;
  Decider& decider_;
  Deliver deliver_;
  std::list<Entry> waiting_;           ///< oldest first
  std::optional<asio::steady_timer> timer_;
  bool armed_ = false;
};

}  // namespace cutwater::server
