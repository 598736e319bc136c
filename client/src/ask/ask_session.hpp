// SPDX-License-Identifier: Apache-2.0
// AskSession: the client's end of a session in which many callers ask over one connection. A pure
// machine: calls and bytes go in, bytes and finished calls come out; no socket, clock or lock.
//
//   caller --enqueue()--> line --unsent()/sent()--> the wire --feed()--> finished()
//
// - Calls are sent in the order they came, one whole frame after the other; each gets its request
//   id, growing by one, when its first byte is about to go out.
// - What the daemon's credit (items, bytes) does not allow yet stays in line; so does everything
//   behind GOAWAY. A call that waits may be abandoned (its caller's deadline) at any moment: unsent
//   it leaves no trace, else its answer is dropped when it comes.
// - A call that is quiet wants no answer: it is Answered when its last byte went out. It takes an
//   id and no credit.
// - connected() after a cut: the session resumed, what was sent and not answered is sent again
//   under its id with REPEAT, first and in order, then the rest; not resumed, it ends Lost, because
//   it may have been carried out, and what was never sent goes out as if nothing had been. So no
//   call is ever carried out twice.
//
// A Call lies with its caller, who keeps it and its frame alive until it is finished or abandoned.
// Bounds: one partial frame of input, kMostAbandoned abandoned calls (more: the connection is
// broken off), the calls themselves by their callers. After a fault broken() says why.
// Allocates only when an abandoned call was half sent. Thread safety: none; AskSocket's lock.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/message.hpp"

namespace cutwater::client {

/// How an ask ended.
enum class AskEnd : std::uint8_t {
  Pending,
  Answered,
  Busy,         ///< not carried out; try again after Call::retry_after_ns
  Failed,       ///< the daemon's ERROR to this request: Call::error_code, error_text
  Lost,         ///< sent, and the session is gone: perhaps carried out
  Unsent,       ///< there is no session: not carried out
  Late,         ///< the caller's deadline passed
};

struct Call {
  // -- from the caller
  wire::MessageType type = wire::MessageType::Acquire;
  std::uint32_t items = 1;               ///< credit it takes, 1 at least
  std::string* frame = nullptr;          ///< kHeaderSize bytes of room, then the payload
  /// Takes the payload of the answer; false: it is none. Called under AskSocket's lock.
  bool (*take)(Call& call, std::string_view payload) = nullptr;
  bool quiet = false;                    ///< OUTCOME only
  /// Nobody waits for its end (AskSocket::post()). It is about its session and means nothing in
  /// another: unsent or not, it ends Lost with it.
  bool posted = false;
  /// Given up after it was sent, it is cancelled: it may hold something.
  bool cancels = false;

  // -- for the caller
  AskEnd end = AskEnd::Pending;
  std::uint32_t request = 0;             ///< 0 = not sent yet
  std::uint64_t retry_after_ns = 0;
  wire::ErrorCode error_code = wire::ErrorCode::Internal;
  char error_text[160] = {};             ///< ends with 0; longer is cut

  // -- AskSession's and AskSocket's own
  std::atomic<std::uint32_t> word{0};    ///< what the caller's thread sleeps on
  bool asleep = false;
  bool repeat = false;
  Call* before = nullptr;
  Call* behind = nullptr;
};

class AskSession {
 public:
  static constexpr std::size_t kMostAbandoned = 64;

  /// A WELCOME came, `resumed` for the session that was cut.
  void connected(const wire::Welcome& welcome, bool resumed);
  /// The connection is gone. Calls stay in line for connected() or fail_all().
  void disconnected() noexcept;
  /// Ends every call: Lost when it was sent, Unsent when not.
  void fail_all() noexcept;

  /// At the end of the line. Frames over the session's bound end Failed at once.
  void enqueue(Call& call) noexcept;
  /// Out of the line, Late. Its caller is its owner again.
  void abandon(Call& call);
  /// Out of the line when not one byte of it went out here. False: it stays.
  bool take_back(Call& call) noexcept;

  /// Bytes that may go out now; empty when there are none or the credit does not allow them.
  std::string_view unsent() noexcept;
  void sent(std::size_t bytes) noexcept;

  /// Takes whole frames from the front of `bytes`; how many bytes they were. The rest is the
  /// beginning of a frame: come again with more behind it.
  std::size_t feed(std::string_view bytes);

  /// The next finished call, nullptr when there is none. It is out of the line.
  Call* finished() noexcept;

  /// The oldest call in line, nullptr when there is none.
  Call* first() const noexcept { return first_; }
  /// True: GOAWAY came; nothing new goes out here.
  bool draining() const noexcept { return draining_; }
  /// True: draining, and all that was sent is answered. Time for another connection.
  bool drained() const noexcept { return draining_ && in_flight_ == 0; }
  /// True: the stream is lost, or the daemon ended it; what is wrong, for people.
  bool is_broken() const noexcept { return broken_[0] != 0; }
  std::string_view why() const noexcept { return broken_; }
  std::uint32_t max_frame() const noexcept { return max_frame_; }

 private:
  struct Abandoned { std::uint32_t request; std::uint32_t items; std::uint32_t bytes; };

  bool start_next() noexcept;
  void on_frame(const wire::FrameHeader& header, std::string_view payload);
  void on_error(std::uint32_t request, std::string_view payload);
  void on_answer(const wire::FrameHeader& header, std::string_view payload);
  Call* in_flight(std::uint32_t request) noexcept;
  bool is_sent(const Call& call) const noexcept;
  void remember_abandoned(const Call& call);
  void forget_abandoned(std::uint32_t request) noexcept;
  void give_credit(std::uint32_t items, std::size_t bytes) noexcept;
  void unlink(Call& call) noexcept;
  void end(Call& call, AskEnd how) noexcept;
  void lost(std::string_view why) noexcept;
  void keep_leftover(const Call& call);

  Call* first_ = nullptr;                // the line: sent ones first, oldest first
  Call* last_ = nullptr;
  Call* next_ = nullptr;                 // first not wholly sent
  bool started_ = false;                 // next_ has its id and header, and its credit is taken
  std::size_t sent_of_next_ = 0;
  Call* finished_ = nullptr;
  std::string leftover_;                 // rest of an abandoned call's frame
  std::array<Abandoned, kMostAbandoned> abandoned_{};
  std::size_t abandoned_count_ = 0;

  std::uint32_t last_request_ = 1;       // HELLO's
  std::uint8_t version_ = wire::kVersion;
  std::uint32_t max_frame_ = wire::kMaxFrameDefault;
  std::uint32_t credit_items_ = 0, credit_bytes_ = 0;
  std::uint32_t in_flight_ = 0;          // requests sent, abandoned ones too
  std::uint32_t items_out_ = 0;
  std::size_t bytes_out_ = 0;
  bool up_ = false;
  bool draining_ = false;
  char broken_[160] = {};                // ends with 0; longer is cut
};

}  // namespace cutwater::client
