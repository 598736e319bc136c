// SPDX-License-Identifier: Apache-2.0
// Asks of records that are away: in another memory, over the socket, or by if_absent.
#include "src/ask/elsewhere.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "base/clock.hpp"
#include "src/ask/ask_watcher.hpp"
#include "src/ask/asking.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "src/decide.hpp"
#include "src/limit_of.hpp"
#include "src/waiting.hpp"

namespace cutwater::detail {

void ask_record(LimitState& state, std::string_view key, const Ask& ask, AskKind kind,
                Decision& out) noexcept {
  Limit limit = LimitOf::of(state);
  switch (kind) {
    case AskKind::Now: out = limit.try_acquire(key, ask.cost); return;
    case AskKind::Look: out = limit.peek(key, ask.cost); return;
    case AskKind::Wait: out = limit.acquire(key, ask); return;
    case AskKind::Reserve: out = limit.reserve(key, ask); return;
    case AskKind::After: out = limit.charge(key, ask.cost); return;
  }
}

namespace {

using client::AskEnd;
using client::AskSocket;
using client::DaemonLink;

std::int64_t deadline_of(const DaemonLink& link) noexcept {
  return boottime_ns() + link.settings().ask_timeout.count();
}

/// One ask over the socket. Failed is answered too: the daemon would not do it.
AskEnd ask_socket(AskSocket& socket, LimitState& state, std::string_view key,
                  const client::Wanted& wanted, Decision& out) noexcept {
  DaemonLink& link = *state.link;
  std::size_t done = 0;
  const AskEnd end = client::ask_decisions(socket, state, {&key, 1}, wanted, {&out, 1}, done,
                                           deadline_of(link));
  if (end == AskEnd::Failed) answer_degraded(state, out.data());
  if (end == AskEnd::Answered || end == AskEnd::Failed) {
    link.on_answered(socket);
    return AskEnd::Answered;
  }
  link.on_unanswered(end, socket);
  return end;
}

/// As Limit::acquire in memory: a place for a sleeper, then the place in line, then the sleep.
AskEnd wait_over_socket(AskSocket& socket, LimitState& state, std::string_view key, const Ask& ask,
                        Decision& out) noexcept {
  const bool may_sleep = begin_waiting(state);
  const AskEnd end = ask_socket(
      socket, state, key, {.cost = ask.cost, .max_wait = may_sleep ? ask.max_wait : Nanos{0}}, out);
  const bool answered = end == AskEnd::Answered;
  if (answered && !may_sleep && out.reason() == Reason::Limit) answer_line_full(out, out.data());
  if (answered && may_sleep && out.allowed() && out.starts_in() > Nanos{0}) {
    // Never longer than was asked for, whatever the daemon answers.
    client::sleep_for_place(socket, std::min(out.starts_in(), ask.max_wait),
                            state.link->settings().ask_timeout);
  }
  if (may_sleep) end_waiting(state);
  return end;
}

AskEnd ask_over_socket(AskSocket& socket, LimitState& state, std::string_view key, const Ask& ask,
                       AskKind kind, Decision& out) noexcept {
  if (kind == AskKind::Wait && ask.max_wait > Nanos{0} && ask.cost != 0) {
    return wait_over_socket(socket, state, key, ask, out);
  }
  const bool waits = kind == AskKind::Reserve;
  return ask_socket(socket, state, key,
                    {.cost = ask.cost,
                     .max_wait = waits ? ask.max_wait : Nanos{0},
                     .look = kind == AskKind::Look || (ask.cost == 0 && kind != AskKind::After),
                     .after_the_fact = kind == AskKind::After},
                    out);
}

}  // namespace

void ask_elsewhere(LimitState& state, std::string_view key, const Ask& ask, AskKind kind,
                   Decision& out) noexcept {
  if (state.watcher != nullptr) return state.watcher->ask(state, key, ask, kind, out);
  DaemonLink& link = *state.link;
  // Twice: the first place may turn out to be gone before anything was asked there.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const DaemonLink::Place place = link.place();
    if (place.memory != nullptr) {
      LimitState* const there = link.record_in(state, *place.memory);
      if (there == nullptr) return answer_degraded(state, out.data());
      return ask_record(*there, key, ask, kind, out);
    }
    if (place.socket == nullptr) break;
    const AskEnd end = ask_over_socket(*place.socket, state, key, ask, kind, out);
    if (end == AskEnd::Answered) return;
    // Only what was certainly not carried out is asked again.
    if (end != AskEnd::Unsent) break;
  }
  link.answer_absent(state, key, ask, kind, out);
}

LimitState* record_now(LimitState& state) noexcept {
  if (!is_away(state)) return &state;
  if (state.watcher != nullptr) return state.watcher->record_of(state);
  const DaemonLink::Place place = state.link->place();
  return place.memory == nullptr ? nullptr : state.link->record_in(state, *place.memory);
}

void key_elsewhere(LimitState& state, shm::KeyHash hash, const KeyText* text, std::uint64_t cost,
                   AskKind kind, Decision& out) noexcept {
  if (text != nullptr) {
    return ask_elsewhere(state, {text->bytes, text->length}, {.cost = cost}, kind, out);
  }
  if (state.watcher != nullptr) return answer_degraded(state, out.data());   // no memory for a key
  DaemonLink& link = *state.link;
  const DaemonLink::Place place = link.place();
  LimitState* const there =
      place.memory != nullptr ? link.record_in(state, *place.memory) : nullptr;
  if (there == nullptr || std::memcmp(&there->secret, &state.secret, sizeof state.secret) != 0) {
    return answer_degraded(state, out.data());
  }
  std::uint64_t hint = shm::kNoSlot;
  const shm::AskedKey asked{hash, {}};
  if (cost == 0 || kind == AskKind::Look) return look(*there, asked, cost, hint, out.data());
  if (decide_closely(*there, asked, cost, hint, out.data())) return;
  decide_specially(*there, asked, cost, out.data());
}

void batch_elsewhere(LimitState& state, std::span<const std::string_view> keys,
                     std::span<Decision> out, std::uint64_t cost) noexcept {
  if (state.watcher != nullptr) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].size() > kMaxKeyBytes) answer_argument(state, true, out[i].data());
      else state.watcher->ask(state, keys[i], {.cost = cost}, AskKind::Now, out[i]);
    }
    return;
  }
  DaemonLink& link = *state.link;
  const DaemonLink::Place place = link.place();
  if (place.memory != nullptr) {
    if (LimitState* const there = link.record_in(state, *place.memory)) {
      return LimitOf::of(*there).acquire_batch(keys, out, cost);
    }
  }
  const std::int64_t deadline = deadline_of(link);
  bool answered = place.socket != nullptr;
  while (!keys.empty()) {
    std::size_t done = 1;
    if (keys[0].size() > kMaxKeyBytes) {
      answer_argument(state, true, out[0].data());
    } else if (answered) {
      const AskEnd end = client::ask_decisions(*place.socket, state, keys, {.cost = cost}, out,
                                               done, deadline);
      answered = end == AskEnd::Answered;
      if (answered) link.on_answered(*place.socket);
      else link.on_unanswered(end, *place.socket);
      if (!answered) continue;
    } else {
      link.answer_absent(state, keys[0], {.cost = cost}, AskKind::Now, out[0]);
    }
    keys = keys.subspan(done);
    out = out.subspan(done);
  }
}

// ---- giving back --------------------------------------------------------------------------------

bool made_elsewhere(const LimitState& state, const DecisionData& decision) noexcept {
  if (state.watcher != nullptr) return true;
  if (state.link == nullptr) return false;
  if (decision.owner == &state) return is_away(state);
  return state.link->is_record(state.owner.name, decision.owner);
}

namespace {

Error no_longer() {
  return {Errc::TooLate,
          "what this decision was charged to is gone (another memory, another session of the "
          "daemon); the tokens stay spent"};
}

Result<std::uint64_t> told(const client::RefundTold& answer, const DecisionData& data) {
  if (answer.code == 0) return answer.tokens;
  const bool forgotten = answer.code == static_cast<std::uint16_t>(wire::ItemError::NotRemembered);
  if (forgotten && data.n == client::kPerhapsNotCharged) return std::uint64_t{0};
  switch (static_cast<wire::ItemError>(answer.code)) {
    case wire::ItemError::TooLate:
      return Error{Errc::TooLate, "somebody charged this key after it; the tokens stay spent"};
    case wire::ItemError::Stale:
      return Error{Errc::AlreadyUsed, "this receipt was spent or moved: a charge is undone once"};
    default: return no_longer();
  }
}

}  // namespace

Result<std::uint64_t> refund_elsewhere(LimitState& state, Decision& decision) {
  if (state.watcher != nullptr) return state.watcher->refund(state, decision);
  DecisionData& data = decision.data();
  if (data.owner != &state) {
    auto& owner = *static_cast<LimitState*>(const_cast<void*>(data.owner));
    return LimitOf::of(owner).refund(decision);
  }
  if (data.reason != Reason::Allowed || data.cost == 0 || data.slot == nullptr) {
    return Error{Errc::InvalidArgument, "this decision charged nothing: there is nothing to undo"};
  }
  if (data.receipt == Receipt::None) {
    return Error{Errc::AlreadyUsed, "this receipt was spent or moved: a charge is undone once"};
  }
  if (data.receipt != Receipt::Remembered) return no_longer();
  const DaemonLink::Place place = state.link->place();
  if (place.socket == nullptr || place.socket->session_number() != data.level) return no_longer();
  client::RefundTold answer;
  const AskEnd end = client::ask_refund(*place.socket, data, answer, deadline_of(*state.link));
  if (end != AskEnd::Answered) {
    state.link->on_unanswered(end, *place.socket);
    return Error{Errc::Timeout, "the daemon did not answer; whether the tokens came back is not "
                                "known"};
  }
  state.link->on_answered(*place.socket);
  auto result = told(answer, data);
  if (result || result.error().code() == Errc::AlreadyUsed) data.receipt = Receipt::None;
  return result;
}

// ---- keys ---------------------------------------------------------------------------------------

KeyText* KeyText::make(std::string_view key) noexcept {
  void* const room = ::operator new(sizeof(KeyText) + key.size(), std::nothrow);
  if (room == nullptr) return nullptr;
  auto* const text = new (room) KeyText;
  text->users.store(1, std::memory_order_relaxed);
  text->length = static_cast<std::uint32_t>(key.size());
  std::memcpy(text->bytes, key.data(), key.size());
  return text;
}

KeyText* share(KeyText* text) noexcept {
  // relaxed: whoever shares it holds it.
  if (text != nullptr) text->users.fetch_add(1, std::memory_order_relaxed);
  return text;
}

void drop(KeyText* text) noexcept {
  // acq_rel: the last one frees what the others have done with.
  if (text != nullptr && text->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    explicit_bzero(text->bytes, text->length);
    text->~KeyText();
    ::operator delete(text);
  }
}

}  // namespace cutwater::detail
