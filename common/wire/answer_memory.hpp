// SPDX-License-Identifier: Apache-2.0
// AnswerMemory: what a daemon remembers of a session, so that no request is executed twice and
// answered requests can be undone. It belongs to the session, not to the connection: when a
// connection is cut, the daemon keeps it for `session-grace` and hands it to the connection that
// takes the session over (ServerSession::take_memory(), ServerSession::welcome()).
//
// A frame with REPEAT and the id `r`:
//   Running     it is being executed; its answer goes to whoever asks last
//   Answered    the same answer again
//   Forgotten   r <= floor, the highest id forgotten: `stale`, never executed
//   Never       it never arrived, or was answered BUSY or ERROR: executed now
// Requests that only look (RESOLVE, PEEK, READ) and WATCH, which ends with its connection, are not
// kept: a repeat of one is carried out anew, and large rows cannot push receipts out.
//
// Bounds: kRememberedItems items and kRememberedBytes of answers and receipts; what was answered
// first goes first and raises the floor. A cut loses only the answers at the end of the stream, at
// most the credit of them, so those are the ones still here, also when one was answered long after
// requests with higher ids. Running requests are bounded by the session's credit.
// A receipt is spent once: take() hands it out and marks it; put_back() undoes a take whose refund
// came too late. Thread safety: as its session. Memory may run out (std::bad_alloc).
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wire/ask_message.hpp"
#include "wire/receipts.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kRememberedItems = 1024;
inline constexpr std::size_t kRememberedBytes = 64U << 10;

/// True for requests whose answers are kept.
bool is_remembered(MessageType request) noexcept;

/// A receipt that was asked for. code: 0, or why there is none (ItemError: NotRemembered, Stale).
struct TakenReceipt {
  std::uint16_t code = 0;
  std::string receipt;             ///< code 0: as the application gave it; may be empty
  std::optional<std::uint64_t> n;  ///< REFUND: tokens to give back; none = all
  bool operator==(const TakenReceipt&) const = default;
};

class AnswerMemory {
 public:
  enum class Seen { Never, Running, Answered, Forgotten };

  /// What is known of a request that comes with REPEAT.
  Seen seen(std::uint32_t request) const noexcept;
  /// Type of a Running request.
  std::optional<MessageType> running_type(std::uint32_t request) const noexcept;
  /// The answer of an Answered request: its type and payload.
  struct Answer { MessageType type; std::string_view payload; };
  std::optional<Answer> answer_of(std::uint32_t request) const noexcept;

  /// A request id was used, whatever becomes of it.
  void use(std::uint32_t request) noexcept;
  /// It is being executed.
  void begin(std::uint32_t request, MessageType type) { running_.emplace(request, Running{type}); }
  /// It was not executed after all: a repeat is executed anew.
  void not_executed(std::uint32_t request) noexcept;
  /// A running one waits in line. Counted here, so that a cut does not make room for more.
  void park(std::uint32_t request) noexcept;
  /// It was executed and answered. `items`: what it counts, at least 1.
  struct Executed {
    MessageType type = MessageType::Error;  ///< of the answer
    std::string payload;
    std::size_t items = 1;
    Receipts receipts;
  };
  void remember(std::uint32_t request, Executed executed);
  /// An empty one to fill, with the room of one that was forgotten: remembering allocates nothing
  /// once as much is kept as may be.
  Executed take_spare() noexcept;

  /// Takes the receipt of an item, or all of a request (of ones not taken yet; `found` false: the
  /// request is not remembered).
  TakenReceipt take(std::uint32_t request, std::size_t item);
  struct TakenAll { bool found = false; std::vector<std::string> receipts; };
  TakenAll take_all(std::uint32_t request);
  void put_back(std::uint32_t request, std::size_t item) noexcept;

  std::uint32_t last_request() const noexcept { return last_request_; }
  /// Highest request whose answer was forgotten.
  std::uint32_t floor() const noexcept { return floor_; }
  std::size_t items() const noexcept { return items_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t running() const noexcept { return running_.size(); }
  std::size_t parked() const noexcept { return parked_; }

 private:
  struct Running {
    MessageType type;
    bool parked = false;
  };
  struct Kept {
    Executed executed;
    std::vector<bool> taken;  // by receipt; receipts and items are never more than its size
  };
  using Kepts = std::unordered_map<std::uint32_t, Kept>;
  Kepts::node_type make_room();
  static std::size_t bytes_of(const Executed& executed) noexcept {
    return executed.payload.size() + executed.receipts.bytes();
  }

  Kepts kept_;
  Executed spare_;
  std::deque<std::uint32_t> order_;  // of kept_, as they were answered
  std::map<std::uint32_t, Running> running_;
  std::size_t parked_ = 0;  // of running_
  std::size_t items_ = 0;
  std::size_t bytes_ = 0;
  std::uint32_t last_request_ = 0;
  std::uint32_t floor_ = 0;
};

}  // namespace cutwater::wire
