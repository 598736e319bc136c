// SPDX-License-Identifier: Apache-2.0
// The half of ServerSession that looks at requests: repeats, rights, fields, credit.
#include <concepts>
#include <utility>

#include "wire/message_table.hpp"
#include "wire/request_items.hpp"
#include "wire/server_session.hpp"

namespace cutwater::wire {
namespace {

constexpr std::size_t kAnswerHead = 16;  // heads around the elements of an answer

/// The batch whose answer could be too long for a frame, and bytes of one answered element.
struct Batch { std::string_view field; std::size_t count; std::size_t bytes_each; };
Batch batch_of(const auto&) { return {"", 0, 1}; }
Batch batch_of(const Acquire& m) { return {"items", m.items.size(), kMaxDecisionBytes}; }
Batch batch_of(const Peek& m) { return {"items", m.items.size(), kMaxDecisionBytes}; }
Batch batch_of(const Present& m) { return {"tickets", m.tickets.size(), kMaxTicket + 2}; }

std::uint64_t ttl_of(const auto&) { return 0; }
std::uint64_t ttl_of(const Acquire& m) { return m.ttl_ns; }
std::uint64_t ttl_of(const Enter& m) { return m.ttl_ns; }

std::uint64_t begin_by(std::uint64_t now_ns, std::uint64_t ttl_ns) {
  return ttl_ns == 0 || ttl_ns > kNever - now_ns ? kNever : now_ns + ttl_ns;
}

constexpr std::string_view kForgotten = "the answer to this request is forgotten";

/// The answer to a repeat that was forgotten: it was or was not executed, and is not now.
template <class Message>
Result<std::string> stale_answer(const Message& message) {
  constexpr auto code = static_cast<std::uint16_t>(ItemError::Stale);
  if constexpr (std::same_as<Message, Acquire>) {
    AcquireAnswer out;
    out.decisions.resize(message.items.size(), DecisionAnswer::error(ItemError::Stale, ""));
    out.decisions[0].text = kForgotten;
    return encode(out);
  } else if constexpr (std::same_as<Message, Enter>) {
    return encode(EnterAnswer{Admission::error(ItemError::Stale, std::string(kForgotten))});
  } else if constexpr (std::same_as<Message, Cancel>) {
    return encode(CancelAnswer{{code, 0}});
  } else if constexpr (std::same_as<Message, Refund>) {
    return encode(RefundAnswer{std::vector<Returned>(message.items.size(), {code, 0})});
  } else if constexpr (std::same_as<Message, Outcome>) {
    return encode(OutcomeAnswer{std::vector<std::uint16_t>(message.reports.size(), code)});
  } else if constexpr (std::same_as<Message, Present>) {
    return encode(PresentAnswer{std::vector<std::string>(message.tickets.size())});
  } else {
    return encode(SteerAnswer{code, std::string(kForgotten), 0});
  }
}

/// Calls body(Message{}) with the message of a remembered type.
template <class Body>
void with_remembered(MessageType type, Body body) {
  switch (type) {
    case MessageType::Acquire: return body(Acquire{});
    case MessageType::Enter: return body(Enter{});
    case MessageType::Cancel: return body(Cancel{});
    case MessageType::Refund: return body(Refund{});
    case MessageType::Outcome: return body(Outcome{});
    case MessageType::Present: return body(Present{});
    default: return body(Steer{});
  }
}

}  // namespace

void ServerSession::on_request(const FrameView& frame, Moment moment, ServerActions& out) {
  if (!is_new(frame, out) || !is_permitted(frame, out)) return;
  switch (frame.header.type) {
    case MessageType::Resolve: return take<Resolve>(frame, moment, out);
    case MessageType::Acquire:
      if (acquire_now(frame, out)) return;
      return take<Acquire>(frame, moment, out);
    case MessageType::Peek: return take<Peek>(frame, moment, out);
    case MessageType::Cancel: return take<Cancel>(frame, moment, out);
    case MessageType::Refund: return take<Refund>(frame, moment, out);
    case MessageType::Enter: return take<Enter>(frame, moment, out);
    case MessageType::Outcome: return take<Outcome>(frame, moment, out);
    case MessageType::Present: return take<Present>(frame, moment, out);
    case MessageType::Read: return take<Read>(frame, moment, out);
    case MessageType::Steer: return take<Steer>(frame, moment, out);
    case MessageType::Watch: return take<Watch>(frame, moment, out);
    default: break;
  }
}

// True: it is to be executed. Else it was answered, or its answer is on its way.
bool ServerSession::is_new(const FrameView& frame, ServerActions& out) {
  const std::uint32_t request = frame.header.request;
  if (request > memory_.last_request()) {
    memory_.use(request);
    return true;
  }
  const auto not_now = [&](std::string text) {
    complain(request, {ErrorCode::NotNow, "", std::move(text)}, false, out);
    return false;
  };
  if (request == 0 || (frame.header.flags & kFlagRepeat) == 0) {
    return not_now("request ids must grow; the last was " +
                   std::to_string(memory_.last_request()));
  }
  if (!remembers_) return not_now("answers are not remembered in this session");
  if (waiting_.contains(request)) return false;  // it will be answered
  const auto answered = memory_.answer_of(request);
  auto was = memory_.running_type(request);
  if (answered && answered->type != MessageType::Error) {
    was = static_cast<MessageType>(static_cast<std::uint8_t>(answered->type) & ~kFromDaemon);
  }
  if (was && *was != frame.header.type) {
    return not_now("request " + std::to_string(request) + " was " + describe(*was));
  }
  switch (memory_.seen(request)) {
    case AnswerMemory::Seen::Never: return true;
    case AnswerMemory::Seen::Answered:
      send(answered->type, request, answered->payload, out);
      return false;
    case AnswerMemory::Seen::Running:
      waiting_[request] = {.type = frame.header.type, .bytes = frame.payload.size()};
      credit_.take(1, frame.payload.size());
      return false;
    case AnswerMemory::Seen::Forgotten: break;
  }
  if (!is_remembered(frame.header.type)) return true;
  answer_stale(frame, out);
  return false;
}

void ServerSession::answer_stale(const FrameView& frame, ServerActions& out) {
  with_remembered(frame.header.type, [&]<class Message>(Message) {
    const auto message = decode<Message>(frame.payload);
    if (!message) {
      return complain(frame.header.request, message.fault(),
                      message.fault().code == ErrorCode::BadFrame, out);
    }
    const auto payload = stale_answer(*message);
    if (payload) send(answer_of(frame.header.type), frame.header.request, *payload, out);
  });
}

// Right and state, in this order; an answer was given when the result is false.
bool ServerSession::is_permitted(const FrameView& frame, ServerActions& out) {
  const MessageType type = frame.header.type;
  if (state_ == SessionState::Draining) {
    const bool finishing = type == MessageType::Outcome || type == MessageType::Cancel ||
                           type == MessageType::Refund;
    if (!finishing) {
      say_busy(frame.header.request, settings_.busy_retry_ns, out);
      return false;
    }
  }
  const MessageRow& row = *find_message(type);
  if ((rights_ & right_bits(row)) != 0) return true;
  complain(frame.header.request,
           {ErrorCode::NotPermitted, "",
            describe(type) + " needs the right " + std::string(row.right)},
           false, out);
  return false;
}

template <class Message>
std::optional<Fault> ServerSession::fits(const Message& message) const {
  const Batch batch = batch_of(message);
  const std::size_t most = (max_frame_ - kAnswerHead) / batch.bytes_each;
  if (batch.count <= most) return std::nullopt;
  const std::string field(batch.field);
  return Fault{ErrorCode::InvalidArgument, field,
               field + " must be an array of 1 .. " + std::to_string(most) +
                   " elements with frames of " + std::to_string(max_frame_) + " bytes, got " +
                   std::to_string(batch.count)};
}

template <class Message>
void ServerSession::take(const FrameView& frame, Moment moment, ServerActions& out) {
  const std::uint32_t request = frame.header.request;
  auto message = decode<Message>(frame.payload);
  if (!message) {
    const bool lost = message.fault().code == ErrorCode::BadFrame;
    return complain(request, message.fault(), lost, out);
  }
  if (const auto fault = fits(*message)) return complain(request, *fault, false, out);
  Waiting waiting{.type = Message::kType,
                  .bytes = frame.payload.size(),
                  .items = items_of(*message),
                  .quiet = Message::kType == MessageType::Outcome &&
                           (frame.header.flags & kFlagQuiet) != 0};
  if (!credit_.admits(waiting.items, waiting.bytes)) {
    over_credit_ = paused_ = true;
    if (waiting.quiet) return;  // such an outcome may be lost
    return say_busy(request, settings_.busy_retry_ns, out);
  }
  // What runs since before a cut and was not repeated is nobody's credit, but it is bounded too.
  if (memory_.running() >= credit_.items_max) {
    return say_busy(request, settings_.busy_retry_ns, out);
  }
  if constexpr (std::same_as<Message, Watch>) {
    if (!open_watch(frame, *message, waiting, out)) return;
    out.push_back(WatchRequested{request, waiting.watch, std::move(*message)});
  } else {
    const std::uint64_t by_ns = begin_by(moment.now_ns, ttl_of(*message));
    out.push_back(Requested<Message>{request, by_ns, std::move(*message)});
  }
  if (remembers_ && is_remembered(Message::kType) && !waiting.quiet) {
    memory_.begin(request, Message::kType);
  }
  credit_.take(waiting.items, waiting.bytes);
  waiting_[request] = std::move(waiting);
}

bool ServerSession::open_watch(const FrameView& frame, const Watch& message, Waiting& waiting,
                               ServerActions& out) {
  if (message.kinds == 0) {
    watches_.clear();
    return true;
  }
  if (watches_.size() == kMaxWatches) {
    complain(frame.header.request,
             {ErrorCode::InvalidArgument, "kinds",
              "kinds must be 0, which ends all watches: " + std::to_string(kMaxWatches) +
                  " are open"},
             false, out);
    return false;
  }
  waiting.watch = ++last_watch_;
  watches_.emplace_back(waiting.watch, message);
  return true;
}

void ServerSession::say_busy(std::uint32_t request, std::uint64_t retry_after_ns,
                             ServerActions& out) {
  const auto payload = encode(Busy{retry_after_ns});
  if (payload) send(MessageType::Busy, request, *payload, out);
  else close(payload.error().text(), out);
}

}  // namespace cutwater::wire
