// SPDX-License-Identifier: Apache-2.0
// The half of ServerSession that the application calls: WELCOME, answers, GOAWAY.
#include "wire/collect_actions.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {

ServerActions ServerSession::welcome(Welcome welcome, std::uint64_t now_ns) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ != SessionState::New || !hello_) return;
    const std::uint32_t request = *hello_;
    version_ = kVersion;
    welcome.version = version_;
    welcome.features &= offered_features_ | kFeatureSteppedClock;
    const auto payload = encode(welcome);
    if (!payload || payload->size() > kMaxFrameBeforeWelcome) {
      const std::string why = payload ? "WELCOME is too long" : payload.error().text();
      complain(request, {ErrorCode::Internal, "", why}, true, out);
      return;
    }
    send(MessageType::Welcome, request, *payload, out);
    std::get<SendBytes>(out.back()).with_descriptors = !welcome.descriptors.empty();
    hello_.reset();
    state_ = SessionState::Ready;
    last_frame_ns_ = now_ns;
    rights_ = welcome.rights;
    credit_items_ = welcome.credit_items;
    credit_bytes_ = welcome.credit_bytes;
    max_frame_ = welcome.max_frame;
    reader_.set_max_length(max_frame_);
    reader_.set_version(version_);
  });
}

ServerActions ServerSession::refuse(ErrorCode code, std::string text) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ != SessionState::New || !hello_) return;
    complain(*hello_, {code, "", std::move(text)}, true, out);
  });
}

ServerActions ServerSession::answer(std::uint32_t request, const ReadAnswer& message) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    answer_with(request, MessageType::ReadAnswer, encode(message), out);
  });
}

ServerActions ServerSession::answer(std::uint32_t request, const SteerAnswer& message) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    answer_with(request, MessageType::SteerAnswer, encode(message), out);
  });
}

void ServerSession::answer_with(std::uint32_t request, MessageType type,
                                Result<std::string> payload, ServerActions& out) {
  const auto waiting = waiting_.find(request);
  if (state_ == SessionState::Closed || waiting == waiting_.end()) return;
  const auto due = static_cast<std::uint8_t>(waiting->second.type) | kFromDaemon;
  std::string why;
  if (due != static_cast<std::uint8_t>(type)) why = "an answer of another type";
  else if (!payload) why = payload.error().text();
  else if (payload->size() > max_frame_) why = "the answer does not fit a frame";
  if (why.empty()) send(type, request, *payload, out);
  else complain(request, {ErrorCode::Internal, "", why}, false, out);
  settle(request, out);
}

ServerActions ServerSession::fail(std::uint32_t request, Fault fault) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ == SessionState::Closed || !waiting_.contains(request)) return;
    complain(request, fault, false, out);
    settle(request, out);
  });
}

ServerActions ServerSession::busy(std::uint32_t request, std::uint64_t retry_after_ns) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ == SessionState::Closed || !waiting_.contains(request)) return;
    const auto payload = encode(Busy{retry_after_ns});
    if (payload) send(MessageType::Busy, request, *payload, out);
    settle(request, out);
  });
}

void ServerSession::settle(std::uint32_t request, ServerActions& out) {
  const auto waiting = waiting_.find(request);
  if (waiting == waiting_.end()) return;
  waiting_bytes_ -= waiting->second.bytes;
  waiting_.erase(waiting);
  const bool half_free =
      waiting_.size() <= credit_items_ / 2 && waiting_bytes_ <= credit_bytes_ / 2;
  if (half_free) over_credit_ = false;
  finish_bye(out);
}

void ServerSession::finish_bye(ServerActions& out) {
  if (!bye_ || !waiting_.empty() || state_ == SessionState::Closed) return;
  if (!bye_quiet_) {
    const auto payload = encode(ByeOk{});
    if (payload) send(MessageType::ByeOk, *bye_, *payload, out);
  }
  close("BYE", out);
}

ServerActions ServerSession::go_away(GoawayReason reason, std::string text, std::uint64_t now_ns) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ == SessionState::New) close(std::move(text), out);
    if (state_ != SessionState::Ready) return;
    say_goaway(reason, settings_.drain_ns, std::move(text), out);
    state_ = SessionState::Draining;
    state_since_ns_ = now_ns;
  });
}

}  // namespace cutwater::wire
