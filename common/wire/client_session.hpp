// SPDX-License-Identifier: Apache-2.0
// ClientSession: the client's end, over one connection or several. States and thread safety:
// session.hpp. It owns no socket and no clock: bytes and times go in, actions come out.
//
//   auto said = session.hello(hello);                    // queue said->bytes
//   auto asked = session.ask(acquire, {now, deadline});  // queue asked->bytes; empty: held back
//   for (auto& action : session.feed(bytes, now)) ...    // SendBytes, Answered<...>, ...
//   for (auto& action : session.tick(now)) ...           // when deadline_ns() says so
//   for (auto& action : session.cut()) ...               // the connection broke: then hello() again
//
// Asked requests are sent in order of their ids as far as the daemon's credit goes, the rest is held
// back, also before WELCOME and after GOAWAY. Each ends in exactly one of Answered, RequestFailed,
// RequestBusy, RequestStale or RequestExpired{sent = false}; RequestExpired{sent = true} comes in
// between when its caller's deadline passes first: the answer still comes, and what it took can be
// cancelled. ttl_ns of ACQUIRE and ENTER is what is left of the deadline when the frame is made.
// After a cut, in a session that remembers answers, what was sent is sent again with REPEAT, in
// order of id and before anything new. A daemon that does not know the session any more makes it
// RequestStale: whether it was executed is unknown, and it is never sent again.
// Bounds: sent requests by the credit of WELCOME, held ones by kHeldItems and kHeldBytes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/enter_message.hpp"
#include "wire/frame.hpp"
#include "wire/request_items.hpp"
#include "wire/session_words.hpp"

namespace cutwater::wire {

/// Held-back requests of one session; beyond: Errc::Busy.
inline constexpr std::size_t kHeldItems = 4096;
inline constexpr std::size_t kHeldBytes = 1U << 20;
/// QUIET outcomes whose ERROR would still be recognized.
inline constexpr std::size_t kQuietRemembered = 1024;

/// WELCOME came. The caller compares the descriptors it received with `welcome.descriptors`;
/// another count means: close them all and ask over the socket.
struct Welcomed { Welcome welcome; };

template <class Message>
struct Answered {
  std::uint32_t request = 0;
  Message answer;
};
using ResolveAnswered = Answered<ResolveAnswer>;
using AcquireAnswered = Answered<AcquireAnswer>;
using PeekAnswered = Answered<PeekAnswer>;
using CancelAnswered = Answered<CancelAnswer>;
using RefundAnswered = Answered<RefundAnswer>;
using EnterAnswered = Answered<EnterAnswer>;
using OutcomeAnswered = Answered<OutcomeAnswer>;
using PresentAnswered = Answered<PresentAnswer>;
using ReadAnswered = Answered<ReadAnswer>;
using SteerAnswered = Answered<SteerAnswer>;
using WatchAnswered = Answered<WatchAnswer>;

struct Ponged { std::uint32_t request = 0; Pong pong; };
struct EventReceived { Event event; };
/// The daemon's ERROR: to a request of ours, or with request 0 to the connection (HELLO included).
struct RequestFailed { std::uint32_t request = 0; ErrorMessage error; };
/// Not executed at all; may be asked again, as a new request, after `retry_after_ns`.
struct RequestBusy { std::uint32_t request = 0; std::uint64_t retry_after_ns = 0; };
/// It was sent in a session that is no more: whether it was executed is unknown.
struct RequestStale { std::uint32_t request = 0; };
/// Its deadline passed. `sent` false: it never left, nothing was charged, and that is its end.
struct RequestExpired { std::uint32_t request = 0; bool sent = false; };
/// Nothing new is sent from now on; when the rest is answered, or the daemon closes: cut().
struct GoawayReceived { Goaway goaway; };
/// BYE_OK came; a CloseConnection follows.
struct ByeAnswered {};

using ClientAction =
    std::variant<SendBytes, Welcomed, ResolveAnswered, AcquireAnswered, PeekAnswered,
                 CancelAnswered, RefundAnswered, EnterAnswered, OutcomeAnswered, PresentAnswered,
                 ReadAnswered, SteerAnswered, WatchAnswered, Ponged, EventReceived, RequestFailed,
                 RequestBusy, RequestStale, RequestExpired, GoawayReceived, ByeAnswered,
                 CloseConnection>;
using ClientActions = std::vector<ClientAction>;

/// A request of ours: its id and the bytes to put into the connection's queue, none while it is
/// held back (they come as SendBytes then).
struct Outgoing {
  std::uint32_t request = 0;
  std::string bytes;
};

/// When something is asked, and when its caller stops waiting (both now_ns of one clock).
struct AskTime {
  std::uint64_t now_ns = 0;
  std::uint64_t deadline_ns = kNever;
};

class ClientSession {
 public:
  ClientSession() = default;

  /// HELLO, first of all on each connection. After a cut it names the session to take over.
  Result<Outgoing> hello(const Hello& hello);
  /// Any request but PING and BYE, in every state but Closed. InvalidArgument: the message breaks a
  /// bound or fits no frame. Busy: too much is held back. Timeout: the deadline has passed.
  /// Protocol: the session is closed, or its request ids are used up (2^32 - 1 of them): open a new
  /// one.
  template <class Message>
  Result<Outgoing> ask(const Message& message, AskTime time) {
    return ask_with(Message::kType, encode(message), items_of(message), time);
  }
  /// Outcomes of tickets that hold nothing, without an answer: they may be lost with the connection.
  /// Busy: not now (not READY, or others are held back).
  Result<Outgoing> tell(const Outcome& message);
  /// Requests that are not held back: only in state Ready; ping and bye also in Draining. Errors as
  /// ask(); Busy: the credit is used up, wait for an answer.
  Result<Outgoing> read(const Read& message);
  Result<Outgoing> steer(const Steer& message);
  Result<Outgoing> ping(std::uint64_t value);
  Result<Outgoing> bye();

  /// Bytes were received. A frame that breaks the protocol, an answer to nothing, or an ERROR that
  /// closes ends in CloseConnection, with a RequestStale for each request that was asked.
  ClientActions feed(std::string_view bytes, std::uint64_t now_ns = 0);
  /// The earliest deadline of an asked request; nullopt: none.
  std::optional<std::uint64_t> deadline_ns() const noexcept;
  /// Acts on deadlines that have passed.
  ClientActions tick(std::uint64_t now_ns);
  /// The connection is gone and another one may follow: back to NEW. In a session that does not
  /// remember answers, what was sent is RequestStale now.
  ClientActions cut();
  /// The end: nothing is remembered, nothing waits any more.
  void ended() noexcept;

  SessionState state() const noexcept { return state_; }
  /// Requests that were sent and not answered, HELLO, PING and BYE among them.
  std::size_t waiting_requests() const noexcept { return requests_.size() - unsent_.size(); }
  /// Requests to be sent: held back, or to be repeated.
  std::size_t held_requests() const noexcept { return unsent_.size(); }
  std::size_t held_bytes() const noexcept { return held_bytes_; }
  /// Token of the session of the last WELCOME; receipts and request ids are good in it only.
  const std::string& token() const noexcept { return token_; }

 private:
  struct Request {
    MessageType type;
    std::size_t items = 1;
    std::uint64_t deadline_ns = kNever;
    std::string payload{};     // without its ttl, when it has one
    std::optional<std::uint64_t> ttl_ns{};  // as asked
    bool asked = false;        // by ask(): survives a cut
    bool sent = false;         // at least once: goes out as REPEAT
    std::size_t credit = 0;    // bytes taken of it while it is unanswered
  };

  Result<Outgoing> ask_with(MessageType type, Result<std::string> payload, std::size_t items,
                            AskTime time);
  Result<Outgoing> request(MessageType type, Result<std::string> payload);
  Result<std::uint32_t> next_id();
  std::string frame_for(std::uint32_t id, Request& request, std::uint64_t now_ns) const;
  void hold(std::uint32_t id, const Request& request);
  void unhold(std::uint32_t id, const Request& request) noexcept;
  void pump(std::uint64_t now_ns, ClientActions& out);
  void on_frame(const Frame& frame, std::uint64_t now_ns, ClientActions& out);
  void on_welcome(const Frame& frame, ClientActions& out);
  void on_error(const Frame& frame, ClientActions& out);
  void on_push(const Frame& frame, ClientActions& out);
  void on_answer(const Frame& frame, ClientActions& out);
  template <class Message>
  void deliver(const Frame& frame, std::size_t items, ClientActions& out);
  void forget(std::uint32_t request) noexcept;
  void close(std::string why, ClientActions& out);

  SessionState state_ = SessionState::New;
  FrameReader reader_;
  bool hello_sent_ = false;
  std::uint8_t min_version_ = kVersion;
  std::uint8_t max_version_ = kVersion;
  std::uint8_t version_ = kVersion;
  std::uint32_t max_frame_ = kMaxFrameDefault;
  bool remembers_ = false;
  bool offered_ = false;               // HELLO named a session to take over
  std::string token_;
  Credit credit_;
  std::uint32_t last_request_ = 0;
  std::map<std::uint32_t, Request> requests_;
  std::set<std::uint32_t> unsent_;     // of requests_
  std::size_t held_items_ = 0;         // of unsent_ that were never sent
  std::size_t held_bytes_ = 0;
  std::set<std::pair<std::uint64_t, std::uint32_t>> deadlines_;
  std::set<std::uint32_t> quiet_;      // the last ones, at most kQuietRemembered
};

}  // namespace cutwater::wire
