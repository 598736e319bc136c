// SPDX-License-Identifier: Apache-2.0
// The half of ClientSession that receives.
#include "wire/client_session.hpp"

#include <algorithm>

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

MessageType answer_of(MessageType request) {
  return static_cast<MessageType>(static_cast<std::uint8_t>(request) | kFromDaemon);
}

}  // namespace

ClientActions ClientSession::feed(std::string_view bytes, std::uint64_t now_ns) {
  return collect_actions<ClientAction>(*this, [&](ClientActions& out) {
    while (state_ != SessionState::Closed) {
      auto frame = reader_.next(bytes);
      if (!frame) {
        close(frame.fault().text, out);
        break;
      }
      if (!frame.value()) break;
      on_frame(*frame.value(), now_ns, out);
    }
  });
}

void ClientSession::ended() noexcept {
  state_ = SessionState::Closed;
  requests_.clear();
  unsent_.clear();
  deadlines_.clear();
  quiet_.clear();
  credit_.clear();
  held_items_ = held_bytes_ = 0;
}

void ClientSession::on_frame(const Frame& frame, std::uint64_t now_ns, ClientActions& out) {
  const MessageType type = frame.header.type;
  if (type == MessageType::Error) {
    on_error(frame, out);
  } else if (type == MessageType::Goaway || type == MessageType::Event) {
    on_push(frame, out);
  } else if (state_ == SessionState::New) {
    if (type != MessageType::Welcome) {
      return close("the daemon sent " + describe(type) + " before WELCOME", out);
    }
    on_welcome(frame, out);
  } else if (frame.header.request != 0 ||
             (static_cast<std::uint8_t>(type) & kFromDaemon) == 0) {
    on_answer(frame, out);
  }  // else a push of a newer daemon that nobody here asked for
  pump(now_ns, out);
}

void ClientSession::on_welcome(const Frame& frame, ClientActions& out) {
  const auto waiting = requests_.find(frame.header.request);
  if (waiting == requests_.end() || waiting->second.type != MessageType::Hello) {
    return close("WELCOME to a HELLO that was never said", out);
  }
  auto welcome = decode<Welcome>(frame.payload);
  if (!welcome) return close("WELCOME: " + welcome.fault().text, out);
  if (welcome->version < min_version_ || welcome->version > std::min(max_version_, kVersion)) {
    return close("the daemon chose version " + std::to_string(welcome->version), out);
  }
  if (welcome->resumed && !offered_) {
    return close("WELCOME takes over a session that was never named", out);
  }
  forget(frame.header.request);
  state_ = SessionState::Ready;
  version_ = welcome->version;
  max_frame_ = welcome->max_frame;
  remembers_ = (welcome->features & kFeatureRemember) != 0;
  token_ = welcome->session;
  credit_.clear();
  credit_.items_max = welcome->credit_items;
  credit_.bytes_max = welcome->credit_bytes;
  reader_.set_version(version_);
  reader_.set_max_length(max_frame_);
  const bool resumed = welcome->resumed && remembers_;
  out.push_back(Welcomed{std::move(*welcome)});
  if (resumed) return;
  std::vector<std::uint32_t> stale;
  for (const auto& [id, request] : requests_) {
    if (request.sent) stale.push_back(id);
  }
  for (const std::uint32_t id : stale) {
    forget(id);
    out.push_back(RequestStale{id});
  }
}

void ClientSession::on_error(const Frame& frame, ClientActions& out) {
  const std::uint32_t id = frame.header.request;
  auto error = decode<ErrorMessage>(frame.payload);
  if (!error) return close("ERROR: " + error.fault().text, out);
  const auto waiting = requests_.find(id);
  const bool known = id == 0 || quiet_.contains(id) ||
                     (waiting != requests_.end() && !unsent_.contains(id));
  if (!known) return close("an ERROR to nothing that waits", out);
  const bool ends = error->closing || state_ == SessionState::New;
  const std::string why = "the daemon refused: " + error->text;
  forget(id);
  out.push_back(RequestFailed{id, std::move(*error)});
  if (ends) close(why, out);
}

void ClientSession::on_push(const Frame& frame, ClientActions& out) {
  if (frame.header.type == MessageType::Event) {
    if (state_ == SessionState::New) return close("the daemon sent EVENT before WELCOME", out);
    auto event = decode<Event>(frame.payload);
    if (!event) return close("EVENT: " + event.fault().text, out);
    out.push_back(EventReceived{std::move(*event)});
    return;
  }
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
  const auto waiting = requests_.find(id);
  if (waiting == requests_.end() || unsent_.contains(id)) {
    return close("an answer to nothing that waits", out);
  }
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
  quiet_.erase(id);
  const auto waiting = requests_.find(id);
  if (waiting == requests_.end()) return;
  const Request& request = waiting->second;
  if (unsent_.contains(id)) unhold(id, request);
  else credit_.give_back(request.items, request.credit);
  deadlines_.erase({request.deadline_ns, id});
  requests_.erase(waiting);
}

void ClientSession::close(std::string why, ClientActions& out) {
  if (state_ == SessionState::Closed) return;
  for (const auto& [id, request] : requests_) {
    if (request.asked) out.push_back(RequestStale{id});
  }
  ended();
  out.push_back(CloseConnection{std::move(why)});
}

}  // namespace cutwater::wire
