// SPDX-License-Identifier: Apache-2.0
// ServerSession: the daemon's end of a connection. States, deadlines, thread safety: session.hpp.
//
// Of a request it checks, in this order: the form of the frame, its id (growing; a REPEAT is
// answered from memory, see answer_memory.hpp), the right, the state, the fields, the credit. Only
// then the application hears of it, once, and answers with answer(), fail() or busy().
//
// Over the credit of WELCOME: BUSY, and wants_input() is false until half of it is free. A request
// that was executed is never answered BUSY, whatever the state: BUSY says that nothing was done.
// With answers remembered, the application gives answer() the receipts of what it charged; CANCEL
// and REFUND bring them back. Watches end with their connection.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/acquire_view.hpp"
#include "wire/answer_memory.hpp"
#include "wire/enter_message.hpp"
#include "wire/event_queue.hpp"
#include "wire/frame.hpp"
#include "wire/session_words.hpp"

namespace cutwater::wire {

/// Decide who this is and call welcome() or refuse(), now or later. With hello.session: whose
/// memory to hand to welcome().
struct HelloReceived {
  std::uint32_t request = 0;
  Hello hello;
};

/// Carry it out and call answer(), fail() or busy() with the request's id, now or later. The right
/// was checked. Not begun by `begin_by_ns` (a now_ns; receipt + ttl): answer it `expired`, for
/// which expired_answer() has the words.
template <class Message>
struct Requested {
  std::uint32_t request = 0;
  std::uint64_t begin_by_ns = kNever;
  Message message;
};
using ResolveRequested = Requested<Resolve>;
using AcquireRequested = Requested<Acquire>;
using PeekRequested = Requested<Peek>;
using CancelRequested = Requested<Cancel>;  ///< carry out what take_for() gives
using RefundRequested = Requested<Refund>;  ///< carry out what take_for() gives
using EnterRequested = Requested<Enter>;
using OutcomeRequested = Requested<Outcome>;
using PresentRequested = Requested<Present>;
using ReadRequested = Requested<Read>;
using SteerRequested = Requested<Steer>;

/// Answer it with the id given here (0: all watches have ended) and the daemon's next_seq; then,
/// with watch.from_seq not 0, give the events since then to event_for(), and from now on every new
/// one to event().
struct WatchRequested {
  std::uint32_t request = 0;
  std::uint32_t watch = 0;
  Watch message;
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
    std::variant<SendBytes, HelloReceived, ResolveRequested, AcquireRequested, PeekRequested,
                 CancelRequested, RefundRequested, EnterRequested, OutcomeRequested,
                 PresentRequested, ReadRequested, SteerRequested, WatchRequested, PeerFault,
                 CloseConnection>;
using ServerActions = std::vector<ServerAction>;

struct ServerSettings {
  std::uint64_t hello_ns = 2'000'000'000;           ///< `hello-timeout`: accept to WELCOME
  std::uint64_t idle_ns = 300'000'000'000;          ///< READY without a frame
  std::uint64_t inside_frame_ns = 10'000'000'000;   ///< first to last byte of a frame
  std::uint64_t drain_ns = 10'000'000'000;          ///< GOAWAY or BYE to the end
  std::uint64_t busy_retry_ns = 1'000'000'000;      ///< told by BUSY
  std::uint64_t stalled_ns = 2'000'000'000;         ///< unsent answers without progress
  std::size_t unsent_max = std::size_t{1} << 20;    ///< `max-unsent`: unsent bytes, then the end
};

/// Unsent bytes of a connection: reading stops at the first, GOAWAY and close at the second. Events
/// wait in their queues from kUnsentHoldEvents on.
inline constexpr std::size_t kUnsentPause = 256U << 10;
inline constexpr std::size_t kUnsentClose = 1U << 20;
inline constexpr std::size_t kUnsentHoldEvents = 64U << 10;
inline constexpr std::size_t kMaxWatches = 4;          ///< per session
inline constexpr std::size_t kMaxWaitingEnters = 256;  ///< per session, by park()

/// What a CANCEL is about, when it is carried out.
///   Unknown: answer it {NotRemembered, 0}.   Running: end the target, answer that one `cancelled`
///   (if it can still be ended), then this one.   Answered: undo these receipts; they are all that
///   were not given back before, and afterwards nothing of the target can be refunded.
struct CancelTarget {
  enum class State { Unknown, Running, Answered } state = State::Unknown;
  std::vector<std::string> receipts;
};

/// Answers of requests whose time to live ran out before they were begun: nothing was charged.
AcquireAnswer expired_answer(const Acquire& message);
EnterAnswer expired_answer(const Enter& message);

class ServerSession {
 public:
  /// A connection was accepted at `now_ns`.
  ServerSession(ServerSettings settings, std::uint64_t now_ns);

  /// ACQUIREs are decided by `server` while they are read, where nothing asked before in the same
  /// bytes waits to be carried out; all others come as Requested actions, as all do without one.
  /// The answers are the same either way. `server` outlives the session.
  void set_acquires(AcquireServer* server) noexcept { acquires_ = server; }

  // -- from the socket
  /// Bytes were received. In state Closed they are dropped.
  ServerActions feed(std::string_view bytes, Moment moment);
  /// The client sent descriptors (the caller has closed them): ERROR 1 and the end.
  ServerActions got_descriptors();
  /// How many queued bytes are not sent yet; call it after queueing and after every write. A
  /// smaller number than before is progress. Ends the session of a client that does not take its
  /// answers.
  ServerActions unsent(std::size_t bytes, std::uint64_t now_ns);
  /// The peer ended the connection. Nothing is sent any more; the memory can still be taken.
  void ended() noexcept;

  // -- time, as data
  /// When tick() wants to be called at the latest; nullopt: no deadline runs (CLOSED, or reading
  /// has stopped and the next step is the application's answers).
  std::optional<std::uint64_t> deadline_ns() const noexcept;
  /// Acts on deadlines that have passed; calling it early or often does nothing.
  ServerActions tick(std::uint64_t now_ns);

  // -- from the application
  /// Answers HelloReceived. `features` is cut to what both have (the stepped-clock bit is the
  /// daemon's), `version` is set here. `taken_over`, with welcome.resumed: the memory of the
  /// session that HELLO named. In any other state nothing happens.
  ServerActions welcome(Welcome welcome, std::uint64_t now_ns, AnswerMemory taken_over = {});
  /// Answers HelloReceived with an ERROR and the end (not_permitted, too_many, internal).
  ServerActions refuse(ErrorCode code, std::string text);
  /// Answers a request. One that does not fit a frame loses its texts, and if that is not enough,
  /// or it breaks a bound, becomes ERROR 7. An id that is not waiting (answered before, or the
  /// session ended) gives no action. `receipts`: of ACQUIRE and ENTER, what can be undone.
  template <class Answer>
  ServerActions answer(std::uint32_t request, const Answer& message, Receipts receipts = {}) {
    return answer_with(request, {Answer::kType, encode(message)}, std::move(receipts));
  }
  ServerActions answer(std::uint32_t request, const AcquireAnswer& message, Receipts receipts = {});
  ServerActions answer(std::uint32_t request, const PeekAnswer& message);
  ServerActions answer(std::uint32_t request, const SteerAnswer& message);
  ServerActions answer(std::uint32_t request, const RefundAnswer& message);
  /// Answers a request with an ERROR that leaves the session open; nothing of it was done.
  ServerActions fail(std::uint32_t request, Fault fault);
  /// The request was not executed at all.
  ServerActions busy(std::uint32_t request, std::uint64_t retry_after_ns);
  /// The receipts of a CANCEL or REFUND, taken when it is carried out and not before, since its
  /// target may have come in the same read. REFUND: one for each item in their order; undo those of
  /// code 0 and answer with a Returned for each, with the code of the others as it is. A TooLate in
  /// the answer makes that receipt refundable again.
  CancelTarget take_for(const Cancel& message);
  std::vector<TakenReceipt> take_for(std::uint32_t request, const Refund& message);
  /// This ENTER waits for a place. False: kMaxWaitingEnters wait already; answer it `full`.
  bool park(std::uint32_t request);
  /// An event for all watches, or for one that asked for older ones.
  ServerActions event(const SharedEvent& event);
  ServerActions event_for(std::uint32_t watch, const SharedEvent& event);
  /// Tells the client to finish (READY only): what is in flight is answered, new requests get BUSY,
  /// after drain_ns the connection is closed. Before WELCOME it closes at once.
  ServerActions go_away(GoawayReason reason, std::string text, std::uint64_t now_ns);
  /// The session's memory, for the connection that takes it over; this one is Closed afterwards.
  /// Requests that are still running stay so in it: answer them by remember_answer(), or forget
  /// them by not_executed().
  AnswerMemory take_memory();

  // -- observers
  SessionState state() const noexcept { return state_; }
  /// False while the client is over its credit or does not take its answers: leave its bytes in the
  /// socket.
  bool wants_input() const noexcept;
  std::size_t waiting_requests() const noexcept { return waiting_.size(); }
  /// Answers are remembered (kFeatureRemember was agreed): worth making receipts.
  bool remembers() const noexcept { return remembers_; }
  /// Payload bytes an answer may have (READ answers are filled up to this).
  std::uint32_t max_frame() const noexcept { return max_frame_; }

 private:
  struct Waiting {
    MessageType type;
    std::size_t bytes = 0;
    std::size_t items = 1;
    bool quiet = false;
    bool parked = false;
    std::uint32_t watch = 0;         // WATCH: the one it makes
    std::vector<RefundItem> refunds{};  // REFUND: what was taken for it
  };
  struct Written { MessageType type; Result<std::string> payload; };
  static MessageType answer_of(MessageType request) noexcept {
    return static_cast<MessageType>(static_cast<std::uint8_t>(request) | kFromDaemon);
  }

  void on_frame(const FrameView& frame, bool more_input, Moment moment, ServerActions& out);
  void on_new(const FrameView& frame, bool more_input, ServerActions& out);
  void on_open(const FrameView& frame, Moment moment, ServerActions& out);
  void on_ping(const FrameView& frame, Moment moment, ServerActions& out);
  void on_bye(const FrameView& frame, Moment moment, ServerActions& out);
  void on_request(const FrameView& frame, Moment moment, ServerActions& out);
  bool is_new(const FrameView& frame, ServerActions& out);
  bool is_permitted(const FrameView& frame, ServerActions& out);
  template <class Message>
  void take(const FrameView& frame, Moment moment, ServerActions& out);
  template <class Message>
  std::optional<Fault> fits(const Message& message) const;
  bool open_watch(const FrameView& frame, const Watch& message, Waiting& waiting,
                  ServerActions& out);
  bool acquire_now(const FrameView& frame, ServerActions& out);
  void answer_stale(const FrameView& frame, ServerActions& out);
  void say_busy(std::uint32_t request, std::uint64_t retry_after_ns, ServerActions& out);
  void send(MessageType type, std::uint32_t request, std::string_view payload, ServerActions& out);
  void complain(std::uint32_t request, const Fault& fault, bool closing, ServerActions& out);
  ServerActions answer_with(std::uint32_t request, Written written, Receipts receipts);
  void settle(std::uint32_t request, ServerActions& out);
  void finish_bye(ServerActions& out);
  void send_events(ServerActions& out);
  void say_goaway(GoawayReason reason, std::uint64_t within_ns, std::string text,
                  ServerActions& out);
  void resume(std::uint64_t now_ns);
  void close(std::string why, ServerActions& out);

  ServerSettings settings_;
  AcquireServer* acquires_ = nullptr;
  SessionState state_ = SessionState::New;
  FrameReader reader_;
  std::uint64_t state_since_ns_;       // accept, or the begin of draining
  std::uint64_t last_frame_ns_;
  std::uint64_t frame_since_ns_ = 0;   // begin of the frame that is not whole yet
  std::optional<std::uint32_t> hello_; // request of a HELLO that waits for welcome() or refuse()
  std::uint64_t offered_features_ = 0;
  std::uint8_t version_ = kVersion;
  std::uint8_t rights_ = 0;
  bool remembers_ = false;
  std::uint32_t max_frame_ = kMaxFrameBeforeWelcome;
  std::map<std::uint32_t, Waiting> waiting_;  // bounded by credit_
  Credit credit_;
  AnswerMemory memory_;
  std::vector<EventQueue> watches_;    // at most kMaxWatches
  std::uint32_t last_watch_ = 0;
  bool over_credit_ = false;
  bool paused_ = false;                // reading stopped since the last feed: its deadlines wait
  std::uint64_t seen_ns_;              // latest now_ns told
  std::optional<std::uint32_t> bye_;   // request of a BYE that waits for the last answer
  bool bye_quiet_ = false;
  std::size_t parked_ = 0;             // ENTERs, at most kMaxWaitingEnters
  std::size_t unsent_bytes_ = 0;
  std::uint64_t unsent_since_ns_ = 0;  // last progress
};

/// Answers a request of a memory that belongs to no connection at the moment: whoever takes the
/// session over and repeats the request gets it. False: the answer cannot be written.
struct Kept { std::size_t items = 1; Receipts receipts; };
template <class Answer>
bool remember_answer(AnswerMemory& memory, std::uint32_t request, const Answer& message,
                     Kept kept) {
  auto payload = encode(message);
  if (!payload) return false;
  memory.remember(request,
                  {Answer::kType, std::move(*payload), kept.items, std::move(kept.receipts)});
  return true;
}

}  // namespace cutwater::wire
