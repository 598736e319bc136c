// SPDX-License-Identifier: Apache-2.0
// DaemonLink: what it answers itself. Names over the socket, limits without a daemon, the time.
#include <algorithm>
#include <exception>

#include "base/clock.hpp"
#include "src/ask/asking.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"

namespace cutwater::client {
namespace {

/// When to come again, at the least.
constexpr std::int64_t kRetryHintNs = 100'000'000;

std::string_view word_of(wire::NameKind kind) {
  switch (kind) {
    case wire::NameKind::Limit: return "limit";
    case wire::NameKind::Breaker: return "breaker";
    case wire::NameKind::Bulkhead: return "bulkhead";
    case wire::NameKind::Guard: break;
  }
  return "guard";
}

Error unknown_name(wire::NameKind kind, std::string_view name, const wire::Resolved& told) {
  std::string text = "the daemon has no " + std::string(word_of(kind)) + " \"" +
                     std::string(name) + "\"";
  for (std::size_t i = 0; i < told.nearest.size(); ++i) {
    text += (i == 0 ? "; the nearest are " : ", ") + told.nearest[i];
  }
  return {Errc::UnknownName, std::move(text)};
}

void answer_policy(const detail::LimitState& state, Reason reason, std::int64_t retry_after_ns,
                   std::int64_t now_ns, DecisionData& out) noexcept {
  out = DecisionData{};
  out.reason = reason;
  out.flags = Decision::kDegraded | (reason == Reason::Allowed ? 0 : Decision::kHint);
  out.decided_by = DecidedBy::Private;
  out.computed = true;
  out.base_t = retry_after_ns;
  out.t = now_ns;
  out.owner = &state;
}

}  // namespace

namespace {

std::uint64_t number_of(const wire::Value* value, std::uint64_t otherwise) noexcept {
  return value == nullptr ? otherwise : value->as_unsigned().value_or(otherwise);
}

/// Element `i` of an array; nullptr: there is none.
const wire::Value* element(const wire::Value* value, std::size_t i) noexcept {
  const wire::Value::Array* all = value == nullptr ? nullptr : value->as_array();
  return all == nullptr || i >= all->size() ? nullptr : &(*all)[i];
}

/// Whatever is not told, or makes no sense, is as usual.
detail::ToldLimit told_of(const wire::Value& settings) noexcept {
  detail::ToldLimit out;
  out.max_waiting = static_cast<std::uint32_t>(
      number_of(settings.find("max_waiting"), out.max_waiting));
  const wire::Value* prefix = settings.find("ip_prefix");
  out.ip_prefix_v4 = static_cast<std::uint8_t>(
      std::min<std::uint64_t>(number_of(element(prefix, 0), out.ip_prefix_v4), 32));
  out.ip_prefix_v6 = static_cast<std::uint8_t>(
      std::min<std::uint64_t>(number_of(element(prefix, 1), out.ip_prefix_v6), 128));
  const wire::Value* plain = settings.find("plain");
  if (plain == nullptr || !plain->as_bool().value_or(false)) return out;
  const wire::Value* window = element(settings.find("windows"), 0);
  const std::uint64_t count = number_of(element(window, 0), 0);
  const std::uint64_t period_ns = number_of(element(window, 1), 0);
  const std::uint64_t burst = number_of(element(window, 2), 0);
  if (count == 0 || burst > kMaxCost) return out;
  using Wide = unsigned __int128;
  const Wide ns = (Wide{burst} * period_ns + count - 1) / count;
  out.quota = burst;
  out.window_ns = static_cast<std::int64_t>(
      std::min<Wide>(ns, static_cast<std::uint64_t>(kNever.count())));
  return out;
}

}  // namespace

Result<detail::LimitState*> DaemonLink::limit(Client::Core& head, std::string_view name) {
  const Place place = this->place();
  if (place.memory != nullptr && place.memory != &head) return place.memory->limit(name);
  if (detail::LimitState* const known = head.known(name)) return known;
  if (!wire::is_name(name)) {
    return Error{Errc::UnknownName, "no limit can have this name: 1 to 63 letters, digits and . _ "
                                    ": -, the first a letter or a digit"};
  }
  detail::ToldLimit limit;
  if (place.socket != nullptr) {
    wire::Resolved told;
    const AskEnd end = ask_resolve(*place.socket, wire::NameKind::Limit, name, told,
                                   boottime_ns() + settings_.ask_timeout.count());
    if (end == AskEnd::Answered) {
      on_answered(*place.socket);
      if (told.code != 0) return unknown_name(wire::NameKind::Limit, name, told);
      limit = told_of(told.settings);
    } else if (end == AskEnd::Failed) {
      return Error{Errc::NotPermitted, "the daemon does not answer what this limit is"};
    } else {
      on_unanswered(end, *place.socket);
    }
  } else if (!settings_.off && settings_.if_absent == IfAbsent::Fail) {
    return Error{Errc::NoDaemon, "no daemon answers: " + status().why};
  }
  return head.add_away(name, limit);
}

Result<void> DaemonLink::resolve(wire::NameKind kind, std::string_view name) {
  const Place place = this->place();
  if (place.socket == nullptr) return {};
  if (!wire::is_name(name) && !wire::is_pattern_name(name)) {
    return Error{Errc::UnknownName, "no " + std::string(word_of(kind)) +
                                        " can have this name: 1 to 63 letters, digits and . _ : -, "
                                        "the first a letter or a digit"};
  }
  wire::Resolved told;
  const AskEnd end = ask_resolve(*place.socket, kind, name, told, ask_deadline_ns());
  if (end == AskEnd::Failed) {
    return Error{Errc::NotPermitted, "the daemon does not answer what this " +
                                         std::string(word_of(kind)) + " is"};
  }
  if (end != AskEnd::Answered) {
    on_unanswered(end, *place.socket);
    return {};
  }
  on_answered(*place.socket);
  if (told.code != 0) return unknown_name(kind, name, told);
  return {};
}

void DaemonLink::answer_absent(detail::LimitState& state, std::string_view key, const Ask& ask,
                               detail::AskKind kind, Decision& out) noexcept {
  const std::int64_t now = boottime_ns();
  if (settings_.off) return answer_policy(state, Reason::Allowed, 0, now, out.data());
  degraded_.fetch_add(1, std::memory_order_relaxed);
  if (settings_.if_absent == IfAbsent::InProcess) {
    if (detail::LimitState* const own = in_process_->find(state.owner.name)) {
      detail::ask_record(*own, key, ask, kind, out);
      out.data().flags |= Decision::kDegraded;
      return;
    }
  }
  if (settings_.if_absent == IfAbsent::Allow) {
    return answer_policy(state, Reason::Allowed, 0, now, out.data());
  }
  answer_policy(state, Reason::Degraded, absent_retry_ns(), now, out.data());
}

std::int64_t DaemonLink::absent_retry_ns() const noexcept {
  const std::int64_t next = next_try_ns_.load(std::memory_order_relaxed) - boottime_ns();
  return std::max(next, kRetryHintNs);
}

std::int64_t DaemonLink::now_ns() noexcept {
  const Place place = this->place();
  if (place.memory != nullptr) return place.memory->view().clock.now();
  AskSocket* const socket = place.socket;
  if (socket == nullptr) return boottime_ns();
  std::int64_t told = 0;
  if (socket->stepped() &&
      ask_clock(*socket, told, boottime_ns() + settings_.ask_timeout.count()) == AskEnd::Answered) {
    return told;
  }
  return boottime_ns() + socket->clock_offset_ns();
}

}  // namespace cutwater::client
