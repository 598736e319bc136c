// SPDX-License-Identifier: Apache-2.0
// The session machines of both ends, without I/O, clock or threads: bytes and times go in, actions
// come out, and the caller carries them out in their order. Sockets, deadlines and descriptors stay
// with the caller.
//
//   NEW --HELLO--> (application: welcome() or refuse()) --> READY --BYE or go_away()--> DRAINING
//   any state --bad frame, deadline, end--> CLOSED
//
//   state     from the client                  else                     deadline
//   NEW       HELLO, then nothing until WELCOME  ERROR not_now, closed  hello_ns, from accept
//   READY     READ STEER PING BYE              ERROR, the session stays idle_ns without a frame
//   DRAINING  PING BYE                         BUSY                     drain_ns, then closed
//   any       half a frame                                              inside_frame_ns
//
// Bounds: one frame is held (FrameReader); unanswered requests by the credit of WELCOME;
// a bad frame is answered once and ends the session. What a peer sends can only become actions.
// Thread safety: a machine belongs to one connection and one thread at a time. No exception leaves.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/frame.hpp"
#include "wire/message.hpp"

namespace cutwater::wire {

/// The two clocks at one moment. `now_ns` is monotonic and rules deadlines; `clock_ns` is the
/// segment's clock and is told to the client (PONG). They are equal unless the clock is stepped.
struct Moment {
  std::uint64_t now_ns = 0;
  std::uint64_t clock_ns = 0;
};

/// Put these bytes into the connection's queue. `with_descriptors` (only ever a WELCOME of mode
/// Map or MapRead): the descriptors ride on the first byte, in the order of Welcome::descriptors.
struct SendBytes {
  std::string bytes;
  bool with_descriptors = false;
};

/// Close the connection after everything queued so far went out (or could not).
struct CloseConnection {
  std::string why;  ///< for the log: one phrase, no keys
};

// ---- the daemon's end ---------------------------------------------------------------------------

/// Decide who this is and call welcome() or refuse(), now or later.
struct HelloReceived {
  std::uint32_t request = 0;
  Hello hello;
};

/// Carry it out and call answer(), fail() or busy() with the request's id, now or later. The right
/// (look) was checked.
struct ReadRequested {
  std::uint32_t request = 0;
  Read read;
};

/// As ReadRequested; the right (steer) was checked.
struct SteerRequested {
  std::uint32_t request = 0;
  Steer steer;
};

/// The peer did wrong (an Internal error is never reported here); it was answered already, by a
/// SendBytes beside this. For counting and logging, at most once per source and minute, and for the
/// bound on failed HELLOs (`before_welcome`).
struct PeerFault {
  ErrorCode code = ErrorCode::BadFrame;
  std::string text;
  bool before_welcome = false;
};

using ServerAction =
    std::variant<SendBytes, HelloReceived, ReadRequested, SteerRequested, PeerFault,
                 CloseConnection>;
using ServerActions = std::vector<ServerAction>;

struct ServerSettings {
  std::uint64_t hello_ns = 2'000'000'000;           ///< `hello-timeout`: accept to WELCOME
  std::uint64_t idle_ns = 300'000'000'000;          ///< READY without a frame
  std::uint64_t inside_frame_ns = 10'000'000'000;   ///< first to last byte of a frame
  std::uint64_t drain_ns = 10'000'000'000;          ///< GOAWAY or BYE to the end
  std::uint64_t busy_retry_ns = 1'000'000'000;      ///< told by BUSY
  std::uint64_t stalled_ns = 2'000'000'000;         ///< unsent answers without progress
};

/// Unsent bytes of a connection: reading stops at the first, GOAWAY and close at the second.
inline constexpr std::size_t kUnsentPause = 256U << 10;
inline constexpr std::size_t kUnsentClose = 1U << 20;

enum class SessionState { New, Ready, Draining, Closed };

class ServerSession {
 public:
  /// A connection was accepted at `now_ns`.
  ServerSession(ServerSettings settings, std::uint64_t now_ns);

  // -- from the socket
  /// Bytes were received. In state Closed they are dropped.
  ServerActions feed(std::string_view bytes, Moment moment);
  /// The client sent descriptors (the caller has closed them): ERROR 1 and the end.
  ServerActions got_descriptors();
  /// How many queued bytes are not sent yet; call it after queueing and after every write. A
  /// smaller number than before is progress. Ends the session of a client that does not take its
  /// answers.
  ServerActions unsent(std::size_t bytes, std::uint64_t now_ns);
  /// The peer ended the connection. Nothing is sent any more.
  void ended() noexcept;

  // -- time, as data
  /// When tick() wants to be called at the latest; nullopt: no deadline runs (CLOSED, or reading
  /// has stopped and the next step is the application's answers).
  std::optional<std::uint64_t> deadline_ns() const noexcept;
  /// Acts on deadlines that have passed; calling it early or often does nothing.
  ServerActions tick(std::uint64_t now_ns);

  // -- from the application
  /// Answers HelloReceived. `features` is cut to what both have (the stepped-clock bit is the
  /// daemon's), `version` is set here. In any other state nothing happens.
  ServerActions welcome(Welcome welcome, std::uint64_t now_ns);
  /// Answers HelloReceived with an ERROR and the end (not_permitted, too_many, internal).
  ServerActions refuse(ErrorCode code, std::string text);
  /// Answers a request. An answer that does not fit a frame or breaks a bound becomes ERROR 7. An
  /// id that is not waiting (answered before, or the session ended) gives no action.
  ServerActions answer(std::uint32_t request, const ReadAnswer& message);
  ServerActions answer(std::uint32_t request, const SteerAnswer& message);
  /// Answers a request with an ERROR that leaves the session open.
  ServerActions fail(std::uint32_t request, Fault fault);
  /// The request was not executed at all.
  ServerActions busy(std::uint32_t request, std::uint64_t retry_after_ns);
  /// Tells the client to finish (READY only): what is in flight is answered, new requests get BUSY,
  /// after drain_ns the connection is closed. Before WELCOME it closes at once.
  ServerActions go_away(GoawayReason reason, std::string text, std::uint64_t now_ns);

  // -- observers
  SessionState state() const noexcept { return state_; }
  /// False while the client is over its credit or does not take its answers: leave its bytes in the
  /// socket.
  bool wants_input() const noexcept;
  std::size_t waiting_requests() const noexcept { return waiting_.size(); }
  /// Payload bytes an answer may have (READ answers are filled up to this).
  std::uint32_t max_frame() const noexcept { return max_frame_; }

 private:
  struct Waiting { MessageType type; std::size_t bytes; };

  void on_frame(const Frame& frame, bool more_input, Moment moment, ServerActions& out);
  void on_new(const Frame& frame, bool more_input, ServerActions& out);
  void on_open(const Frame& frame, Moment moment, ServerActions& out);
  void on_ping(const Frame& frame, Moment moment, ServerActions& out);
  void on_bye(const Frame& frame, Moment moment, ServerActions& out);
  void on_request(const Frame& frame, ServerActions& out);
  bool admit(const Frame& frame, ServerActions& out);
  void send(MessageType type, std::uint32_t request, std::string_view payload, ServerActions& out);
  void complain(std::uint32_t request, const Fault& fault, bool closing, ServerActions& out);
  void answer_with(std::uint32_t request, MessageType type, Result<std::string> payload,
                   ServerActions& out);
  void settle(std::uint32_t request, ServerActions& out);
  void finish_bye(ServerActions& out);
  void say_goaway(GoawayReason reason, std::uint64_t within_ns, std::string text,
                  ServerActions& out);
  void resume(std::uint64_t now_ns);
  void close(std::string why, ServerActions& out);

  ServerSettings settings_;
  SessionState state_ = SessionState::New;
  FrameReader reader_;
  std::uint64_t state_since_ns_;       // accept, or the begin of draining
  std::uint64_t last_frame_ns_;
  std::uint64_t frame_since_ns_ = 0;   // begin of the frame that is not whole yet
  std::optional<std::uint32_t> hello_; // request of a HELLO that waits for welcome() or refuse()
  std::uint64_t offered_features_ = 0;
  std::uint8_t version_ = kVersion;
  std::uint8_t rights_ = 0;
  std::uint32_t max_frame_ = kMaxFrameBeforeWelcome;
  std::uint32_t credit_items_ = 0;
  std::uint32_t credit_bytes_ = 0;
  std::uint32_t last_request_ = 0;
  std::map<std::uint32_t, Waiting> waiting_;  // at most credit_items_
  std::size_t waiting_bytes_ = 0;
  bool over_credit_ = false;
  bool paused_ = false;                // reading stopped since the last feed: its deadlines wait
  std::uint64_t seen_ns_;              // latest now_ns told
  std::optional<std::uint32_t> bye_;   // request of a BYE that waits for the last answer
  bool bye_quiet_ = false;
  std::size_t unsent_bytes_ = 0;
  std::uint64_t unsent_since_ns_ = 0;  // last progress
};

// ---- the client's end ---------------------------------------------------------------------------

/// WELCOME came. The caller compares the descriptors it received with `welcome.descriptors`;
/// another count means: close them all and ask over the socket.
struct Welcomed { Welcome welcome; };
struct ReadAnswered { std::uint32_t request = 0; ReadAnswer answer; };
struct SteerAnswered { std::uint32_t request = 0; SteerAnswer answer; };
struct Ponged { std::uint32_t request = 0; Pong pong; };
/// The daemon's ERROR: to a request of ours, or with request 0 to the connection (HELLO included).
struct RequestFailed { std::uint32_t request = 0; ErrorMessage error; };
/// Not executed at all; may be sent again after `retry_after_ns`.
struct RequestBusy { std::uint32_t request = 0; std::uint64_t retry_after_ns = 0; };
struct GoawayReceived { Goaway goaway; };
/// BYE_OK came; a CloseConnection follows.
struct ByeAnswered {};

using ClientAction = std::variant<Welcomed, ReadAnswered, SteerAnswered, Ponged, RequestFailed,
                                  RequestBusy, GoawayReceived, ByeAnswered, CloseConnection>;
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
  /// Requests: only in state Ready; ping and bye also in Draining. Nothing is sent on an error.
  /// InvalidArgument: the message breaks a bound. Busy: the credit is used up, wait for an answer.
  /// Protocol: not in this state, or the request ids of this session are used up (2^32 - 1 of
  /// them): open a new one.
  Result<Outgoing> read(const Read& message);
  Result<Outgoing> steer(const Steer& message);
  Result<Outgoing> ping(std::uint64_t value);
  Result<Outgoing> bye();

  /// Bytes were received. A frame that breaks the protocol, an answer to nothing, or an ERROR that
  /// closes ends in CloseConnection; what waits then is never answered.
  ClientActions feed(std::string_view bytes);
  /// The connection ended.
  void ended() noexcept;

  SessionState state() const noexcept { return state_; }
  std::size_t waiting_requests() const noexcept { return waiting_.size(); }

 private:
  struct Waiting { MessageType type; std::size_t bytes; };

  Result<Outgoing> request(MessageType type, Result<std::string> payload);
  void on_frame(const Frame& frame, ClientActions& out);
  void on_welcome(const Frame& frame, ClientActions& out);
  void on_error(const Frame& frame, ClientActions& out);
  void on_push(const Frame& frame, ClientActions& out);
  void on_answer(const Frame& frame, ClientActions& out);
  void forget(std::uint32_t request) noexcept;
  void close(std::string why, ClientActions& out);

  SessionState state_ = SessionState::New;
  FrameReader reader_;
  bool hello_sent_ = false;
  std::uint8_t min_version_ = kVersion;
  std::uint8_t max_version_ = kVersion;
  std::uint8_t version_ = kVersion;
  std::uint32_t max_frame_ = kMaxFrameBeforeWelcome;
  std::uint32_t credit_items_ = 0;
  std::uint32_t credit_bytes_ = 0;
  std::uint32_t last_request_ = 0;
  std::map<std::uint32_t, Waiting> waiting_;  // at most credit_items_, and a HELLO
  std::size_t waiting_bytes_ = 0;
};

}  // namespace cutwater::wire
