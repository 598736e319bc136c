// SPDX-License-Identifier: Apache-2.0
// The half of ClientSession that sends: ids, credit, holding back, repeats, deadlines.
#include <algorithm>
#include <limits>

#include "wire/client_session.hpp"
#include "wire/collect_actions.hpp"
#include "wire/message_table.hpp"
#include "wire/tokens.hpp"

namespace cutwater::wire {
namespace {

/// PING and BYE go out while the session drains, and what ends things.
bool may_send(MessageType type, SessionState state) {
  if (state == SessionState::Ready) return true;
  if (state != SessionState::Draining) return false;
  return type == MessageType::Ping || type == MessageType::Bye || type == MessageType::Outcome ||
         type == MessageType::Cancel || type == MessageType::Refund;
}

bool has_ttl(MessageType type) {
  return type == MessageType::Acquire || type == MessageType::Enter;
}

std::uint64_t left_of(std::uint64_t deadline_ns, std::uint64_t now_ns) {
  return deadline_ns > now_ns ? deadline_ns - now_ns : 1;
}

Error does_not_fit(MessageType type, std::size_t bytes, std::size_t most) {
  return {Errc::InvalidArgument, describe(type) + " of " + std::to_string(bytes) +
                                     " bytes does not fit a frame of " + std::to_string(most)};
}

constexpr std::size_t kTtlBytes = 9;  // of the widest ttl

}  // namespace

Result<std::uint32_t> ClientSession::next_id() {
  if (last_request_ == std::numeric_limits<std::uint32_t>::max()) {
    return Error(Errc::Protocol, "the request ids of this session are used up; open a new one");
  }
  return ++last_request_;
}

Result<Outgoing> ClientSession::hello(const Hello& message) {
  if (state_ != SessionState::New || hello_sent_) {
    return Error(Errc::Protocol, "HELLO is the first message of a connection and said once");
  }
  Hello named = message;
  if (named.session.empty() && remembers_) named.session = token_;
  const auto payload = encode(named);
  if (!payload) return payload.error();
  const auto id = next_id();
  if (!id) return id.error();
  hello_sent_ = true;
  offered_ = !named.session.empty();
  min_version_ = named.min_version;
  max_version_ = named.max_version;
  requests_[*id] = {.type = MessageType::Hello, .items = 0};
  return Outgoing{*id, encode_frame({.type = MessageType::Hello, .request = *id}, *payload)};
}

Result<Outgoing> ClientSession::ask_with(MessageType type, Result<std::string> payload,
                                         std::size_t items, AskTime time) {
  if (!payload) return payload.error();
  if (state_ == SessionState::Closed) return Error(Errc::Protocol, "this session is closed");
  if (payload->size() + kTtlBytes > max_frame_) {
    return does_not_fit(type, payload->size() + kTtlBytes, max_frame_);
  }
  if (time.now_ns >= time.deadline_ns) return Error(Errc::Timeout, "the deadline has passed");
  const bool room = held_items_ == 0 || (held_items_ + items <= kHeldItems &&
                                         held_bytes_ + payload->size() <= kHeldBytes);
  if (!room) return Error(Errc::Busy, "too many requests of this session wait to be sent");
  const auto id = next_id();
  if (!id) return id.error();
  Request asked{.type = type, .items = items, .deadline_ns = time.deadline_ns, .asked = true};
  if (has_ttl(type)) {
    const auto tokens = read_tokens(*payload);
    if (!tokens) return Error(Errc::NoMemory, "no memory to write a message");
    asked.ttl_ns = (*tokens)[1].number;
    std::string ttl;
    put_unsigned(ttl, *asked.ttl_ns);
    payload->erase(1, ttl.size());
  }
  asked.payload = std::move(*payload);
  auto& request = requests_[*id] = std::move(asked);
  deadlines_.emplace(request.deadline_ns, *id);
  hold(*id, request);
  Outgoing out{*id, {}};
  const bool first = *unsent_.begin() == *id;
  if (first && may_send(type, state_) && credit_.admits(items, request.payload.size() + kTtlBytes)) {
    out.bytes = frame_for(*id, request, time.now_ns);
    unhold(*id, request);
    request.sent = true;
    credit_.take(items, request.credit);
  }
  return out;
}

// Sets request.credit to the payload bytes of the frame it makes.
std::string ClientSession::frame_for(std::uint32_t id, Request& request,
                                     std::uint64_t now_ns) const {
  std::string payload = request.payload;
  if (request.ttl_ns) {
    std::uint64_t ttl_ns = *request.ttl_ns;
    if (request.deadline_ns != kNever) {
      const std::uint64_t left_ns = left_of(request.deadline_ns, now_ns);
      ttl_ns = ttl_ns == 0 ? left_ns : std::min(ttl_ns, left_ns);
    }
    std::string ttl;
    put_unsigned(ttl, ttl_ns);
    payload.insert(1, ttl);
  }
  request.credit = payload.size();
  const std::uint16_t flags = request.sent ? kFlagRepeat : 0;
  return encode_frame({.version = version_, .type = request.type, .flags = flags, .request = id},
                      payload);
}

void ClientSession::hold(std::uint32_t id, const Request& request) {
  unsent_.insert(id);
  if (request.sent) return;
  held_items_ += request.items;
  held_bytes_ += request.payload.size();
}

void ClientSession::unhold(std::uint32_t id, const Request& request) noexcept {
  unsent_.erase(id);
  if (request.sent) return;
  held_items_ -= request.items;
  held_bytes_ -= request.payload.size();
}

// In order of ids, as far as the credit goes. What is past its deadline goes first by tick().
void ClientSession::pump(std::uint64_t now_ns, ClientActions& out) {
  while (!unsent_.empty()) {
    const std::uint32_t id = *unsent_.begin();
    Request& request = requests_.at(id);
    if (!may_send(request.type, state_)) return;
    const std::size_t most = request.payload.size() + (request.ttl_ns ? kTtlBytes : 0);
    if (most > max_frame_) {  // a smaller max_frame than that of the session before
      forget(id);
      out.push_back(RequestFailed{
          id, {ErrorCode::InvalidArgument, "", does_not_fit(request.type, most, max_frame_).text(),
               false}});
      continue;
    }
    if (!credit_.admits(request.items, most)) return;
    std::string bytes = frame_for(id, request, now_ns);
    unhold(id, request);
    request.sent = true;
    credit_.take(request.items, request.credit);
    out.push_back(SendBytes{std::move(bytes), false});
  }
}

Result<Outgoing> ClientSession::read(const Read& message) {
  return request(MessageType::Read, encode(message));
}

Result<Outgoing> ClientSession::steer(const Steer& message) {
  return request(MessageType::Steer, encode(message));
}

Result<Outgoing> ClientSession::ping(std::uint64_t value) {
  return request(MessageType::Ping, encode(Ping{value}));
}

Result<Outgoing> ClientSession::bye() { return request(MessageType::Bye, encode(Bye{})); }

Result<Outgoing> ClientSession::request(MessageType type, Result<std::string> payload) {
  if (!payload) return payload.error();
  if (!may_send(type, state_)) {
    return Error(Errc::Protocol, "this session takes no " + describe(type) + " now");
  }
  if (payload->size() > max_frame_) return does_not_fit(type, payload->size(), max_frame_);
  const bool counted = type != MessageType::Ping && type != MessageType::Bye;
  if (counted && (!credit_.admits(1, payload->size()) || !unsent_.empty())) {
    return Error(Errc::Busy, "too many requests of this session wait for their answers");
  }
  const auto id = next_id();
  if (!id) return id.error();
  const std::size_t items = counted ? 1 : 0;
  requests_[*id] = {.type = type, .items = items, .credit = items * payload->size()};
  credit_.take(items, items * payload->size());
  return Outgoing{*id,
                  encode_frame({.version = version_, .type = type, .request = *id}, *payload)};
}

Result<Outgoing> ClientSession::tell(const Outcome& message) {
  const auto payload = encode(message);
  if (!payload) return payload.error();
  if (payload->size() > max_frame_) {
    return does_not_fit(MessageType::Outcome, payload->size(), max_frame_);
  }
  if (!may_send(MessageType::Outcome, state_) || !unsent_.empty()) {
    return Error(Errc::Busy, "this session takes no quiet outcome now");
  }
  const auto id = next_id();
  if (!id) return id.error();
  quiet_.insert(*id);
  if (quiet_.size() > kQuietRemembered) quiet_.erase(quiet_.begin());
  return Outgoing{*id, encode_frame({.version = version_,
                                     .type = MessageType::Outcome,
                                     .flags = kFlagQuiet,
                                     .request = *id},
                                    *payload)};
}

std::optional<std::uint64_t> ClientSession::deadline_ns() const noexcept {
  if (deadlines_.empty() || deadlines_.begin()->first == kNever) return std::nullopt;
  return deadlines_.begin()->first;
}

ClientActions ClientSession::tick(std::uint64_t now_ns) {
  return collect_actions<ClientAction>(*this, [&](ClientActions& out) {
    while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns) {
      const auto [deadline_ns, id] = *deadlines_.begin();
      if (deadline_ns == kNever) break;
      deadlines_.erase(deadlines_.begin());
      const bool sent = requests_.at(id).sent;
      if (!sent) forget(id);
      out.push_back(RequestExpired{id, sent});
    }
    pump(now_ns, out);
  });
}

ClientActions ClientSession::cut() {
  return collect_actions<ClientAction>(*this, [&](ClientActions& out) {
    if (state_ == SessionState::Closed) return;
    state_ = SessionState::New;
    reader_ = FrameReader();
    hello_sent_ = false;
    version_ = kVersion;
    quiet_.clear();
    credit_.clear();
    std::vector<std::uint32_t> lost;
    for (const auto& [id, request] : requests_) {
      if (unsent_.contains(id)) continue;
      if (request.asked && remembers_) hold(id, request);
      else lost.push_back(id);
    }
    for (const std::uint32_t id : lost) {
      const auto found = requests_.find(id);
      const bool hello = found->second.type == MessageType::Hello;
      deadlines_.erase({found->second.deadline_ns, id});
      requests_.erase(found);
      if (!hello) out.push_back(RequestStale{id});
    }
  });
}

}  // namespace cutwater::wire
