// SPDX-License-Identifier: Apache-2.0
// ClientSession: the client's end of one connection: HELLO, requests, their answers in any order,
// events. States and thread safety: session.hpp. It is for attaching, looking and steering; the
// library's own asking, where many callers share a connection that may be cut and resumed, is
// client/src/ask/ask_session.hpp.
//
//   auto said = session.hello(hello);                 // queue said->bytes
//   auto asked = session.ask(read);                   // queue asked->bytes, keep asked->request
//   for (auto& action : session.feed(bytes)) ...      // Welcomed, Answered<ReadAnswer>, ...
//
// Over the credit of WELCOME nothing is sent: ask() says Busy. An answer must have the type and,
// for a batch, the number of elements of its request.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/enter_message.hpp"
#include "wire/frame.hpp"
#include "wire/request_items.hpp"
#include "wire/session_words.hpp"

namespace cutwater::wire {

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
/// Not executed at all; may be sent again after `retry_after_ns`.
struct RequestBusy { std::uint32_t request = 0; std::uint64_t retry_after_ns = 0; };
struct GoawayReceived { Goaway goaway; };
/// BYE_OK came; a CloseConnection follows.
struct ByeAnswered {};

using ClientAction =
    std::variant<Welcomed, ResolveAnswered, AcquireAnswered, PeekAnswered, CancelAnswered,
                 RefundAnswered, EnterAnswered, OutcomeAnswered, PresentAnswered, ReadAnswered,
                 SteerAnswered, WatchAnswered, Ponged, EventReceived, RequestFailed, RequestBusy,
                 GoawayReceived, ByeAnswered, CloseConnection>;
using ClientActions = std::vector<ClientAction>;

/// A request of ours: its id and the bytes to put into the connection's queue.
struct Outgoing {
  std::uint32_t request = 0;
  std::string bytes;
};

class ClientSession {
 public:
  ClientSession() = default;

  /// HELLO, once, first of all.
  Result<Outgoing> hello(const Hello& hello);
  /// Any request: only in state Ready; OUTCOME, CANCEL, REFUND, PING and BYE also in Draining.
  /// Nothing is sent on an error. InvalidArgument: the message breaks a bound or fits no frame.
  /// Busy: the credit is used up, wait for an answer. Protocol: not in this state, or the request
  /// ids of this session are used up (2^32 - 1 of them): open a new one.
  template <class Message>
  Result<Outgoing> ask(const Message& message) {
    return request(Message::kType, encode(message), items_of(message));
  }
  Result<Outgoing> read(const Read& message) { return ask(message); }
  Result<Outgoing> steer(const Steer& message) { return ask(message); }
  Result<Outgoing> ping(std::uint64_t value) {
    return request(MessageType::Ping, encode(Ping{value}), 0);
  }
  Result<Outgoing> bye() { return request(MessageType::Bye, encode(Bye{}), 0); }

  /// Bytes were received. A frame that breaks the protocol, an answer to nothing, or an ERROR that
  /// closes ends in CloseConnection; what waits then is never answered.
  ClientActions feed(std::string_view bytes);
  /// The connection ended.
  void ended() noexcept;

  SessionState state() const noexcept { return state_; }
  std::size_t waiting_requests() const noexcept { return waiting_.size(); }

 private:
  struct Waiting { MessageType type; std::size_t items = 0, bytes = 0; };

  Result<Outgoing> request(MessageType type, Result<std::string> payload, std::size_t items);
  void on_frame(const Frame& frame, ClientActions& out);
  void on_welcome(const Frame& frame, ClientActions& out);
  void on_error(const Frame& frame, ClientActions& out);
  void on_event(const Frame& frame, ClientActions& out);
  void on_goaway(const Frame& frame, ClientActions& out);
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
  std::uint32_t max_frame_ = kMaxFrameBeforeWelcome;
  Credit credit_;
  std::uint32_t last_request_ = 0;
  std::map<std::uint32_t, Waiting> waiting_;  // bounded by credit_, and HELLO, PING, BYE
};

}  // namespace cutwater::wire
