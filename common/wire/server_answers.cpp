// SPDX-License-Identifier: Apache-2.0
// The half of ServerSession that the application calls: WELCOME, answers, events, GOAWAY.
#include <algorithm>
#include <utility>

#include "wire/collect_actions.hpp"
#include "wire/server_session.hpp"
#include "wire/text.hpp"

namespace cutwater::wire {

namespace {

constexpr auto kExpired = kReasonExpired;
constexpr std::size_t kSteerHead = 64;  // all of a STEER answer but its text

DecisionAnswer expired_decision() {
  DecisionAnswer out;
  out.reason = kExpired;
  return out;
}

/// Texts are for people: an answer too long for a frame goes out without them.
template <class Answer>
Result<std::string> encode_within(const Answer& message, std::size_t max_bytes) {
  auto payload = encode(message);
  if (!payload || payload->size() <= max_bytes) return payload;
  Answer bare = message;
  for (auto& decision : bare.decisions) decision.text.clear();
  return encode(bare);
}

}  // namespace

AcquireAnswer expired_answer(const Acquire& message) {
  AcquireAnswer out;
  out.decisions.resize(message.items.size(), expired_decision());
  return out;
}

EnterAnswer expired_answer(const Enter&) {
  EnterAnswer out;
  out.admission.reason = kExpired;
  return out;
}

ServerActions ServerSession::welcome(Welcome welcome, std::uint64_t now_ns,
                                     AnswerMemory taken_over) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ != SessionState::New || !hello_) return;
    const std::uint32_t request = *hello_;
    version_ = kVersion;
    welcome.version = version_;
    welcome.features &= offered_features_ | kFeatureSteppedClock;
    remembers_ = (welcome.features & kFeatureRemember) != 0;
    // A process that comes again gets its row back, which needs no memory of answers.
    const bool row = welcome.mode == Want::Row || welcome.mode == Want::Map;
    welcome.resumed = welcome.resumed && (remembers_ || row);
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
    credit_.items_max = welcome.credit_items;
    credit_.bytes_max = welcome.credit_bytes;
    if (welcome.resumed) memory_ = std::move(taken_over);
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

ServerActions ServerSession::answer(std::uint32_t request, const AcquireAnswer& message,
                                    Receipts receipts) {
  return answer_with(request, {AcquireAnswer::kType, encode_within(message, max_frame_)},
                     std::move(receipts));
}

ServerActions ServerSession::answer(std::uint32_t request, const PeekAnswer& message) {
  return answer_with(request, {PeekAnswer::kType, encode_within(message, max_frame_)}, {});
}

ServerActions ServerSession::answer(std::uint32_t request, const SteerAnswer& message) {
  auto payload = encode(message);
  if (payload && payload->size() > max_frame_) {
    SteerAnswer shorter = message;
    shorter.text = fit_text(message.text, max_frame_ - kSteerHead);
    payload = encode(shorter);
  }
  return answer_with(request, {SteerAnswer::kType, std::move(payload)}, {});
}

ServerActions ServerSession::answer(std::uint32_t request, const RefundAnswer& message) {
  const auto waiting = waiting_.find(request);
  if (waiting != waiting_.end()) {
    const auto& refunds = waiting->second.refunds;
    for (std::size_t i = 0; i < refunds.size() && i < message.items.size(); ++i) {
      if (message.items[i].code != static_cast<std::uint16_t>(ItemError::TooLate)) continue;
      memory_.put_back(refunds[i].request, refunds[i].item);
    }
  }
  return answer_with(request, {RefundAnswer::kType, encode(message)}, {});
}

ServerActions ServerSession::answer_with(std::uint32_t request, Written written,
                                         Receipts receipts) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    const auto waiting = waiting_.find(request);
    const auto running = memory_.running_type(request);
    const bool here = state_ != SessionState::Closed && waiting != waiting_.end();
    if (!here && !running) return;
    const MessageType asked = here ? waiting->second.type : *running;
    const std::size_t items = here ? waiting->second.items : receipts.size();
    std::string why;
    if (answer_of(asked) != written.type) why = "an answer of another type";
    else if (!written.payload) why = written.payload.error().text();
    else if (written.payload->size() > max_frame_) why = "the answer does not fit a frame";
    if (!why.empty()) {
      // It was executed, so a repeat must get this answer too.
      const Fault fault{ErrorCode::Internal, "", why};
      written = {MessageType::Error, encode(ErrorMessage{fault.code, "", fault.text, false})};
      if (!written.payload) return close(written.payload.error().text(), out);
    }
    if (here && (!waiting->second.quiet || written.type == MessageType::Error)) {
      send(written.type, request, *written.payload, out);
    }
    if (running) {
      memory_.remember(request,
                       {written.type, std::move(*written.payload), items, std::move(receipts)});
    }
    settle(request, out);
  });
}

ServerActions ServerSession::fail(std::uint32_t request, Fault fault) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    memory_.not_executed(request);
    const auto waiting = waiting_.find(request);
    if (state_ == SessionState::Closed || waiting == waiting_.end()) return;
    std::erase_if(watches_, [&](const EventQueue& watch) {
      return watch.id() == waiting->second.watch;
    });
    complain(request, fault, false, out);
    settle(request, out);
  });
}

ServerActions ServerSession::busy(std::uint32_t request, std::uint64_t retry_after_ns) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    memory_.not_executed(request);
    if (state_ == SessionState::Closed || !waiting_.contains(request)) return;
    say_busy(request, retry_after_ns, out);
    settle(request, out);
  });
}

CancelTarget ServerSession::take_for(const Cancel& message) {
  const bool running = waiting_.contains(message.request) ||
                       memory_.running_type(message.request).has_value();
  if (running) return {CancelTarget::State::Running, {}};
  auto taken = memory_.take_all(message.request);
  if (!taken.found) return {};
  return {CancelTarget::State::Answered, std::move(taken.receipts)};
}

std::vector<TakenReceipt> ServerSession::take_for(std::uint32_t request, const Refund& message) {
  std::vector<TakenReceipt> out;
  std::vector<RefundItem> taken = message.items;
  for (RefundItem& item : taken) {
    out.push_back(memory_.take(item.request, item.item));
    out.back().n = item.n;
    if (out.back().code != 0) item.request = 0;  // nothing to put back
  }
  const auto waiting = waiting_.find(request);
  if (waiting != waiting_.end()) waiting->second.refunds = std::move(taken);
  return out;
}

bool ServerSession::park(std::uint32_t request) {
  const auto waiting = waiting_.find(request);
  if (waiting == waiting_.end()) return false;
  if (waiting->second.parked) return true;
  if (std::max(parked_, memory_.parked()) >= kMaxWaitingEnters) return false;
  ++parked_;
  memory_.park(request);
  return waiting->second.parked = true;
}

ServerActions ServerSession::event(const SharedEvent& event) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    for (EventQueue& watch : watches_) watch.add(event);
    send_events(out);
  });
}

ServerActions ServerSession::event_for(std::uint32_t id, const SharedEvent& event) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    for (EventQueue& watch : watches_) {
      if (watch.id() == id) watch.add(event);
    }
    send_events(out);
  });
}

// One frame of each watch at a time, and none while the client does not take what it has.
void ServerSession::send_events(ServerActions& out) {
  if (state_ == SessionState::Closed || unsent_bytes_ >= kUnsentHoldEvents) return;
  for (EventQueue& watch : watches_) {
    if (watch.empty()) continue;
    const auto payload = encode(watch.take(max_frame_));
    if (payload) send(MessageType::Event, 0, *payload, out);
  }
}

AnswerMemory ServerSession::take_memory() {
  AnswerMemory memory = std::exchange(memory_, {});
  ended();
  return memory;
}

void ServerSession::settle(std::uint32_t request, ServerActions& out) {
  const auto waiting = waiting_.find(request);
  if (waiting == waiting_.end()) return;
  credit_.give_back(waiting->second.items, waiting->second.bytes);
  if (waiting->second.parked) --parked_;
  waiting_.erase(waiting);
  if (credit_.half_free()) over_credit_ = false;
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
