// SPDX-License-Identifier: Apache-2.0
#include "wire/client_session.hpp"

#include <algorithm>
#include <limits>

#include "wire/collect_actions.hpp"
#include "wire/message_table.hpp"

namespace cutwater::wire {
namespace {

/// Elements an answer must have: one for each of the request, or nullopt when it is one answer.
std::optional<std::size_t> count_of(const auto&) { return std::nullopt; }
std::optional<std::size_t> count_of(const ResolveAnswer& m) { return m.names.size(); }
std::optional<std::size_t> count_of(const AcquireAnswer& m) { return m.decisions.size(); }
std::optional<std::size_t> count_of(const PeekAnswer& m) { return m.decisions.size(); }
std::optional<std::size_t> count_of(const RefundAnswer& m) { return m.items.size(); }
std::optional<std::size_t> count_of(const OutcomeAnswer& m) { return m.codes.size(); }
std::optional<std::size_t> count_of(const PresentAnswer& m) { return m.tickets.size(); }

/// What ends things goes out while the session drains; other requests do not.
bool may_send(MessageType type, SessionState state) {
  if (state == SessionState::Ready) return true;
  if (state != SessionState::Draining) return false;
  return type == MessageType::Ping || type == MessageType::Bye || type == MessageType::Outcome ||
         type == MessageType::Cancel || type == MessageType::Refund;
}

MessageType answer_of(MessageType request) {
  return static_cast<MessageType>(static_cast<std::uint8_t>(request) | kFromDaemon);
}

}  // namespace

Result<Outgoing> ClientSession::hello(const Hello& message) {
  if (state_ != SessionState::New || hello_sent_) {
    return Error(Errc::Protocol, "HELLO is the first message of a session and said once");
  }
  const auto payload = encode(message);
  if (!payload) return payload.error();
  hello_sent_ = true;
  min_version_ = message.min_version;
  max_version_ = message.max_version;
  const std::uint32_t id = ++last_request_;
  waiting_[id] = {MessageType::Hello};
  return Outgoing{id, encode_frame({.type = MessageType::Hello, .request = id}, *payload)};
}

Result<Outgoing> ClientSession::request(MessageType type, Result<std::string> payload,
                                        std::size_t items) {
  if (!payload) return payload.error();
  if (!may_send(type, state_)) {
    return Error(Errc::Protocol, "this session takes no " + describe(type) + " now");
  }
  if (last_request_ == std::numeric_limits<std::uint32_t>::max()) {
    return Error(Errc::Protocol, "the request ids of this session are used up; open a new one");
  }
  if (payload->size() > max_frame_) {
    return Error(Errc::InvalidArgument,
                 describe(type) + " of " + std::to_string(payload->size()) +
                     " bytes does not fit a frame of " + std::to_string(max_frame_));
  }
  const std::size_t bytes = items == 0 ? 0 : payload->size();  // PING and BYE take no credit
  if (items != 0 && !credit_.admits(items, bytes)) {
    return Error(Errc::Busy, "too many requests of this session wait for their answers");
  }
  const std::uint32_t id = ++last_request_;
  waiting_[id] = {type, items, bytes};
  credit_.take(items, bytes);
  return Outgoing{
      id, encode_frame({.version = version_, .type = type, .request = id}, *payload)};
}

ClientActions ClientSession::feed(std::string_view bytes) {
  return collect_actions<ClientAction>(*this, [&](ClientActions& out) {
    while (state_ != SessionState::Closed) {
      auto frame = reader_.next(bytes);
      if (!frame) {
        close(frame.fault().text, out);
        break;
      }
      if (!frame.value()) break;
      on_frame(*frame.value(), out);
    }
  });
}

void ClientSession::ended() noexcept {
  state_ = SessionState::Closed;
  waiting_.clear();
  credit_.clear();
}

void ClientSession::on_frame(const Frame& frame, ClientActions& out) {
  const MessageType type = frame.header.type;
  if (type == MessageType::Error) return on_error(frame, out);
  if (type == MessageType::Goaway) return on_goaway(frame, out);
  if (state_ == SessionState::New) {
    if (type == MessageType::Welcome) return on_welcome(frame, out);
    return close("the daemon sent " + describe(type) + " before WELCOME", out);
  }
  if (type == MessageType::Event) return on_event(frame, out);
  // A push of a newer daemon that nobody here asked for.
  const bool from_daemon = (static_cast<std::uint8_t>(type) & kFromDaemon) != 0;
  if (frame.header.request == 0 && from_daemon) return;
  on_answer(frame, out);
}

void ClientSession::on_welcome(const Frame& frame, ClientActions& out) {
  const auto waiting = waiting_.find(frame.header.request);
  if (waiting == waiting_.end()) return close("WELCOME to a HELLO that was never said", out);
  auto welcome = decode<Welcome>(frame.payload);
  if (!welcome) return close("WELCOME: " + welcome.fault().text, out);
  if (welcome->version < min_version_ || welcome->version > std::min(max_version_, kVersion)) {
    return close("the daemon chose version " + std::to_string(welcome->version), out);
  }
  forget(frame.header.request);
  state_ = SessionState::Ready;
  version_ = welcome->version;
  max_frame_ = welcome->max_frame;
  credit_.items_max = welcome->credit_items;
  credit_.bytes_max = welcome->credit_bytes;
  reader_.set_version(version_);
  reader_.set_max_length(max_frame_);
  out.push_back(Welcomed{std::move(*welcome)});
}

void ClientSession::on_error(const Frame& frame, ClientActions& out) {
  const std::uint32_t id = frame.header.request;
  auto error = decode<ErrorMessage>(frame.payload);
  if (!error) return close("ERROR: " + error.fault().text, out);
  if (id != 0 && !waiting_.contains(id)) return close("an ERROR to nothing that waits", out);
  const bool ends = error->closing || state_ == SessionState::New;
  const std::string why = "the daemon refused: " + error->text;
  forget(id);
  out.push_back(RequestFailed{id, std::move(*error)});
  if (ends) close(why, out);
}

void ClientSession::on_event(const Frame& frame, ClientActions& out) {
  auto event = decode<Event>(frame.payload);
  if (!event) return close("EVENT: " + event.fault().text, out);
  out.push_back(EventReceived{std::move(*event)});
}

void ClientSession::on_goaway(const Frame& frame, ClientActions& out) {
  auto goaway = decode<Goaway>(frame.payload);
  if (!goaway) return close("GOAWAY: " + goaway.fault().text, out);
  if (state_ == SessionState::Ready) state_ = SessionState::Draining;
  out.push_back(GoawayReceived{std::move(*goaway)});
}

template <class Message>
void ClientSession::deliver(const Frame& frame, std::size_t items, ClientActions& out) {
  auto answer = decode<Message>(frame.payload);
  const std::string what = describe(frame.header.type);
  if (!answer) {
    return close(what + ": " + answer.fault().field + " " + answer.fault().text, out);
  }
  const auto count = count_of(*answer);
  if (count && *count != items) {
    return close(what + " has " + std::to_string(*count) + " elements for " +
                     std::to_string(items) + " asked",
                 out);
  }
  forget(frame.header.request);
  out.push_back(Answered<Message>{frame.header.request, std::move(*answer)});
}

void ClientSession::on_answer(const Frame& frame, ClientActions& out) {
  const MessageType type = frame.header.type;
  const std::uint32_t id = frame.header.request;
  const auto waiting = waiting_.find(id);
  if (waiting == waiting_.end()) return close("an answer to nothing that waits", out);
  const MessageType asked = waiting->second.type;
  if (type != MessageType::Busy && type != answer_of(asked)) {
    return close(describe(type) + " does not answer " + describe(asked), out);
  }
  const std::size_t items = waiting->second.items;
  switch (type) {
    case MessageType::ResolveAnswer: return deliver<ResolveAnswer>(frame, items, out);
    case MessageType::AcquireAnswer: return deliver<AcquireAnswer>(frame, items, out);
    case MessageType::PeekAnswer: return deliver<PeekAnswer>(frame, items, out);
    case MessageType::CancelAnswer: return deliver<CancelAnswer>(frame, items, out);
    case MessageType::RefundAnswer: return deliver<RefundAnswer>(frame, items, out);
    case MessageType::EnterAnswer: return deliver<EnterAnswer>(frame, items, out);
    case MessageType::OutcomeAnswer: return deliver<OutcomeAnswer>(frame, items, out);
    case MessageType::PresentAnswer: return deliver<PresentAnswer>(frame, items, out);
    case MessageType::ReadAnswer: return deliver<ReadAnswer>(frame, items, out);
    case MessageType::SteerAnswer: return deliver<SteerAnswer>(frame, items, out);
    case MessageType::WatchAnswer: return deliver<WatchAnswer>(frame, items, out);
    default: break;
  }
  const auto lost = [&](const Fault& fault) {
    close(describe(type) + ": " + fault.field + " " + fault.text, out);
  };
  if (type == MessageType::Busy) {
    const auto busy = decode<Busy>(frame.payload);
    if (!busy) return lost(busy.fault());
    forget(id);
    out.push_back(RequestBusy{id, busy->retry_after_ns});
  } else if (type == MessageType::Pong) {
    const auto pong = decode<Pong>(frame.payload);
    if (!pong) return lost(pong.fault());
    forget(id);
    out.push_back(Ponged{id, *pong});
  } else {
    const auto bye_ok = decode<ByeOk>(frame.payload);
    if (!bye_ok) return lost(bye_ok.fault());
    forget(id);
    out.push_back(ByeAnswered{});
    close("BYE", out);
  }
}

void ClientSession::forget(std::uint32_t id) noexcept {
  const auto waiting = waiting_.find(id);
  if (waiting == waiting_.end()) return;
  credit_.give_back(waiting->second.items, waiting->second.bytes);
  waiting_.erase(waiting);
}

void ClientSession::close(std::string why, ClientActions& out) {
  if (state_ == SessionState::Closed) return;
  ended();
  out.push_back(CloseConnection{std::move(why)});
}

}  // namespace cutwater::wire
