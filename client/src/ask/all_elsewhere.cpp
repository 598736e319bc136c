// SPDX-License-Identifier: Apache-2.0
// acquire_all() and peek_all() where the limits are not decided in mapped memory: one ENTER, or one
// PEEK whose answers are joined as shm::look_all() joins them, or if_absent.
#include "src/ask/all_elsewhere.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.hpp"
#include "src/ask/asking.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "src/decide.hpp"
#include "src/limit_of.hpp"

namespace cutwater {
namespace {

using client::AskEnd;
using client::DaemonLink;

/// What comes of a list, in its order.
struct Joined {
  Decision verdict;
  std::array<Decision, kMaxLimitsAtOnce> each;
  std::size_t count = 0;               ///< of `each`: all, or none where nothing was decided
  std::size_t index = 0;               ///< of the item the verdict is of
};

bool refuses(const Decision& d) noexcept { return !d.allowed(); }

/// Of those that refuse the longest wait decides; while none does, the least remaining.
std::size_t decisive_of(std::span<const Decision> each) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < each.size(); ++i) {
    const Decision& one = each[i];
    const Decision& so_far = each[best];
    if (refuses(one) != refuses(so_far)) {
      if (refuses(one)) best = i;
    } else if (refuses(one) ? one.retry_after() > so_far.retry_after()
                            : one.remaining() < so_far.remaining()) {
      best = i;
    }
  }
  return best;
}

/// The verdict of answers that stand each by itself.
DecisionData join(std::span<const Decision> each, std::size_t decisive) noexcept {
  DecisionData out = each[decisive].data();
  out.receipt = Receipt::None;
  out.mult = each[decisive].remaining();
  std::int64_t reset = 0;
  for (const Decision& one : each) {
    out.mult = std::min<std::uint64_t>(out.mult, one.remaining());
    reset = std::max<std::int64_t>(reset, one.reset_after().count());
    out.flags |= one.data().flags;
    if (one.shadow()) out.would = one.would();
  }
  out.base_n = reset;
  return out;
}

/// The answers of a PEEK, which stand each by itself. Each is asked twice, with its cost and
/// without: while one refuses, nothing is taken from the others, and they say what is there.
AskEnd look(client::AskSocket& socket, std::span<const LimitAsk> asks,
            const detail::MergedAsks& sent, Joined& out, std::int64_t deadline_ns) noexcept {
  const std::size_t count = sent.count;
  std::array<client::NamedAsk, 2 * kMaxLimitsAtOnce> named;
  std::array<Decision, 2 * kMaxLimitsAtOnce> seen;
  for (std::size_t i = 0; i < count; ++i) {
    named[i] = sent.named[i];
    named[count + i] = {named[i].limit, named[i].key, 0};
  }
  const AskEnd end =
      client::ask_peek(socket, {named.data(), 2 * count}, {seen.data(), 2 * count}, deadline_ns);
  if (end != AskEnd::Answered) return end;
  const std::span<Decision> each{seen.data(), count};
  if (std::any_of(each.begin(), each.end(), refuses)) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!refuses(each[i]) && !each[i].shadow()) each[i] = std::move(seen[count + i]);
    }
  }
  const std::size_t decisive = decisive_of(each);
  out.verdict.data() = join(each, decisive);
  out.count = asks.size();
  for (std::size_t i = asks.size(); i-- > 0;) {
    out.each[i].data() = each[sent.place[i]].data();
    if (sent.place[i] == decisive) out.index = i;
  }
  return end;
}

}  // namespace

namespace detail {

MergedAsks::MergedAsks(std::span<const LimitAsk> asks) noexcept {
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const std::string_view limit = asks[i].limit.name();
    std::size_t at = 0;
    const auto joins = [&](const client::NamedAsk& one) {
      return one.limit == limit && one.key == asks[i].key && one.cost + asks[i].cost <= kMaxCost;
    };
    while (at < count && !joins(named[at])) ++at;
    if (at == count) named[count++] = {limit, asks[i].key, 0};
    named[at].cost += asks[i].cost;
    place[i] = at;
  }
}

void AllElsewhere::fill(std::span<const LimitAsk> asks, const MergedAsks& sent,
                        client::AllTaking& told, Admission& out) noexcept {
  const auto& place = sent.place;
  out.verdict_ = std::move(told.verdict);
  out.count_ = told.count == 0 ? 0 : asks.size();
  for (std::size_t i = asks.size(); i-- > 0;) {
    if (place[i] == told.index) out.index_ = i;
    if (out.count_ == 0) continue;
    DecisionData& one = out.each_[i].data();
    one = told.each[place[i]].data();
    one.owner = &LimitOf::state(asks[i].limit);
    // Of a limit named twice the first has the receipt, with the sum.
    const bool first = std::find(place.begin(), place.begin() + i, place[i]) == place.begin() + i;
    if (first) continue;
    one.receipt = Receipt::None;
    one.slot = nullptr;
  }
  out.verdict_.data().owner = &LimitOf::state(asks[out.index_].limit);
}

AskEnd AllElsewhere::over_socket(std::span<const LimitAsk> asks, bool charge, DaemonLink& link,
                                 client::AskSocket& socket, Admission& out) noexcept {
  const std::int64_t deadline = boottime_ns() + link.settings().ask_timeout.count();
  const MergedAsks sent(asks);
  Joined joined;
  client::AllTaking taking;
  taking.asks = sent.asks();
  const AskEnd end = charge ? client::ask_enter(socket, taking, deadline)
                            : look(socket, asks, sent, joined, deadline);
  if (end != AskEnd::Answered && end != AskEnd::Failed) {
    link.on_unanswered(end, socket);
    return end;
  }
  link.on_answered(socket);
  if (end == AskEnd::Failed) {
    answer_degraded(LimitOf::state(asks[0].limit), out.verdict_.data());
    return AskEnd::Answered;
  }
  if (charge) {
    fill(asks, sent, taking, out);
    return end;
  }
  out.count_ = joined.count;
  out.index_ = joined.index;
  for (std::size_t i = 0; i < joined.count; ++i) {
    out.each_[i] = std::move(joined.each[i]);
    out.each_[i].data().owner = &LimitOf::state(asks[i].limit);
  }
  out.verdict_ = std::move(joined.verdict);
  out.verdict_.data().owner = &LimitOf::state(asks[out.index_].limit);
  return end;
}

void AllElsewhere::absent(std::span<const LimitAsk> asks, bool charge, DaemonLink& link,
                          Admission& out) noexcept {
  if (Client::Core* const own = link.in_process()) {
    // Filled in place below; a Limit has no other maker.
    std::array<LimitAsk, kMaxLimitsAtOnce> there{
        asks[0], asks[0], asks[0], asks[0], asks[0], asks[0], asks[0], asks[0]};
    std::size_t count = 0;
    for (const LimitAsk& ask : asks) {
      LimitState* const record = own->find(ask.limit.name());
      if (record != nullptr) there[count++] = {LimitOf::of(*record), ask.key, ask.cost};
    }
    if (count == asks.size()) {
      link.count_degraded();
      out = Client::ask_all({there.data(), count}, charge);
      out.verdict_.data().flags |= Decision::kDegraded;
      for (Decision& one : out.each()) one.data().flags |= Decision::kDegraded;
      return;
    }
  }
  link.answer_absent(LimitOf::state(asks[0].limit), asks[0].key, {.cost = asks[0].cost},
                     charge ? AskKind::Now : AskKind::Look, out.verdict_);
}

bool AllElsewhere::watched(std::span<const LimitAsk> asks, bool charge, AskWatcher& watcher,
                           Admission& out) noexcept {
  std::array<bool, kMaxLimitsAtOnce> left{};
  if (!watcher.force_all(asks, charge, out.verdict_, out.index_, left)) return false;
  if (out.verdict_.allowed()) {
    // The items that are not forced, as an ask of their own.
    std::vector<LimitAsk> rest;
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      if (!left[i]) continue;
      rest.push_back(asks[i]);
      at.push_back(i);
    }
    if (!rest.empty()) {
      out = Client::ask_in_memory(rest, charge);
      if (out.index_ < at.size()) out.index_ = at[out.index_];
      watcher.note_all(rest, charge, out);
    }
  }
  return true;
}

bool AllElsewhere::ask(std::span<const LimitAsk> asks, bool charge, Admission& out) noexcept {
  if (asks.empty() || asks.size() > kMaxLimitsAtOnce) return false;
  if (AskWatcher* const watcher = LimitOf::state(asks[0].limit).watcher) {
    return watched(asks, charge, *watcher, out);
  }
  DaemonLink* link = nullptr;
  for (const LimitAsk& ask : asks) {
    const LimitState& state = LimitOf::state(ask.limit);
    if (!is_away(state) || ask.key.size() > kMaxKeyBytes || ask.cost > kMaxCost) return false;
    if (link != nullptr && state.link != link) return false;
    link = state.link;
  }
  // Twice: the first place may turn out to be gone before anything was asked there.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const DaemonLink::Place place = link->place();
    if (place.memory != nullptr) return false;
    if (place.socket == nullptr) break;
    const AskEnd end = over_socket(asks, charge, *link, *place.socket, out);
    if (end == AskEnd::Answered) return true;
    if (end != AskEnd::Unsent) break;
  }
  absent(asks, charge, *link, out);
  return true;
}

}  // namespace detail
}  // namespace cutwater
