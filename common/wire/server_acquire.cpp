// SPDX-License-Identifier: Apache-2.0
// ServerSession's short way for ACQUIRE: read, decided, written and remembered without an action in
// between, and without an allocation of its own once the session remembers all it may. What is not
// usual here takes the long way, which has the words for it.
#include <algorithm>
#include <utility>

#include "wire/server_session.hpp"

namespace cutwater::wire {
namespace {

constexpr std::size_t kAnswerHead = 16;  // heads around the decisions
/// A time to live so short that it may be over already is looked at by the one who decides.
constexpr std::uint64_t kShortTtlNs = 20'000'000;

/// Nothing of what was asked before waits to be carried out: the order of requests is kept.
bool nothing_waits(const ServerActions& actions) noexcept {
  return std::all_of(actions.begin(), actions.end(), [](const ServerAction& action) {
    return std::holds_alternative<SendBytes>(action) || std::holds_alternative<PeerFault>(action);
  });
}

/// Where the next frame is written: behind what is sent already.
std::string& bytes_of(ServerActions& out) {
  auto* last = out.empty() ? nullptr : std::get_if<SendBytes>(&out.back());
  if (last == nullptr || last->with_descriptors)
    last = &std::get<SendBytes>(out.emplace_back(SendBytes{}));
  return last->bytes;
}

bool has_error(const AcquireAnswer& answer) noexcept {
  return std::any_of(answer.decisions.begin(), answer.decisions.end(),
                     [](const DecisionAnswer& decision) { return decision.is_error(); });
}

}  // namespace

/// The id is new and the right is there. False: it takes the long way, and nothing was done.
bool ServerSession::acquire_now(const FrameView& frame, ServerActions& out) {
  AcquireView asked;
  if (acquires_ == nullptr || !nothing_waits(out) ||
      !read_acquire(frame.payload, acquires_->items(), asked)) {
    return false;
  }
  const std::uint32_t request = frame.header.request;
  const std::size_t items = asked.items.size(), bytes = frame.payload.size();
  const bool usual = items <= (max_frame_ - kAnswerHead) / kMaxDecisionBytes &&
                     (asked.ttl_ns == 0 || asked.ttl_ns >= kShortTtlNs) &&
                     credit_.admits(items, bytes) && memory_.running() < credit_.items_max;
  if (!usual) return false;

  AnswerMemory::Executed executed = memory_.take_spare();
  const AcquireAnswer& answer =
      acquires_->acquire_now(asked, remembers_ ? &executed.receipts : nullptr);
  if (answer.decisions.size() != items || has_error(answer)) {
    // Texts and their bounds: as if it had been asked the long way.
    if (remembers_) memory_.begin(request, MessageType::Acquire);
    credit_.take(items, bytes);
    waiting_[request] = {.type = MessageType::Acquire, .bytes = bytes, .items = items};
    for (auto& action : this->answer(request, answer, std::move(executed.receipts))) {
      out.push_back(std::move(action));
    }
    return true;
  }
  std::string& sent = bytes_of(out);
  const std::size_t begin = sent.size();
  sent.resize(begin + kHeaderSize);
  put_decisions(sent, answer.decisions);
  const std::size_t payload = begin + kHeaderSize;
  put_header(sent.data() + begin, {.version = version_,
                                   .type = MessageType::AcquireAnswer,
                                   .request = request,
                                   .length = static_cast<std::uint32_t>(sent.size() - payload)});
  if (remembers_) {
    executed.type = MessageType::AcquireAnswer;
    executed.payload.assign(sent, payload);
    executed.items = items;
    memory_.remember(request, std::move(executed));
  }
  return true;
}

}  // namespace cutwater::wire
