// SPDX-License-Identifier: Apache-2.0
// A watched client in front, whose limits decide nothing, and one behind it that really decides.
#include <cutwater/testing.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "src/ask/ask_watcher.hpp"
#include "src/core.hpp"
#include "src/decide.hpp"
#include "src/limit_of.hpp"

namespace cutwater {

using detail::AskKind;
using detail::LimitOf;
using detail::LimitState;

class TestLimits::Inside final : public detail::AskWatcher {
 public:
  Inside(const SteppedClock& its_clock, Client deciding, Client watched)
      : clock(its_clock), inner(std::move(deciding)), front(std::move(watched)) {
    front.core().watch(*this);
  }

  SteppedClock clock;
  Client inner, front;
  mutable std::mutex lock;             ///< of all below
  using Name = std::pair<std::string, std::string>;          ///< limit and key
  std::map<std::string, Forced, std::less<>> forced_limits;
  std::map<Name, Forced> forced_keys;
  std::map<std::string, TestCounts, std::less<>> limits;
  std::map<Name, TestCounts> keys;
  std::deque<TestAsk> last;
  std::map<std::string, Forced, std::less<>> forced_bulkheads;
  std::map<std::string, TestCounts, std::less<>> bulkheads;

  void ask(LimitState& state, std::string_view key, const Ask& ask, AskKind kind,
           Decision& out) noexcept override {
    const bool look = kind == AskKind::Look || ask.cost == 0;
    const Wanted wanted{state, key, ask.cost, look};
    {
      const std::lock_guard held(lock);
      if (const auto forced = take_forced(wanted)) {
        answer(wanted, *forced, out);
        return note(wanted, true, out.reason());
      }
    }
    LimitState* const there = record_of(state);
    if (there != nullptr) detail::ask_record(*there, key, ask, kind, out);
    else detail::answer_degraded(state, out.data());
    const std::lock_guard held(lock);
    note(wanted, false, out.reason());
  }

  bool force_all(std::span<const LimitAsk> asks, bool charge, Decision& forced, std::size_t& index,
                 std::span<bool> left) noexcept override {
    const std::lock_guard held(lock);
    bool any = false;
    for (const bool refusals : {true, false}) {
      for (std::size_t i = 0; i < asks.size(); ++i) {
        const Wanted wanted = wanted_of(asks[i], charge);
        const Forced* const planned = find_forced(wanted);
        if (refusals && planned == nullptr) left[i] = true;
        if (planned == nullptr || (planned->reason != Reason::Allowed) != refusals) continue;
        any = true;
        index = i;
        answer(wanted, *take_forced(wanted), forced);
        note(wanted, true, forced.reason());
        if (refusals) return true;
      }
    }
    return any;
  }

  void note_all(std::span<const LimitAsk> asks, bool charge,
                const Admission& answer) noexcept override {
    const std::lock_guard held(lock);
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const Wanted wanted = wanted_of(asks[i], charge);
      // One that would have granted is no decision of its limit when another one refused.
      if (!wanted.look && !answer.allowed() && i != answer.index()) continue;
      note(wanted, false, answer.reason());
    }
  }

  Result<std::uint64_t> refund(LimitState& state, Decision& decision) noexcept override {
    DecisionData& data = decision.data();
    Result<std::uint64_t> given = Error{
        Errc::AlreadyUsed, "this receipt was spent or moved: a charge is undone once"};
    if (data.owner == &state) {
      if (data.receipt != Receipt::None) given = static_cast<std::uint64_t>(data.cost);
      data.receipt = Receipt::None;
    } else if (LimitState* const there = record_of(state)) {
      given = LimitOf::of(*there).refund(decision);
    }
    const std::lock_guard held(lock);
    if (given) ++limits[state.name].refunds;
    return given;
  }

  bool force_place(std::string_view bulkhead, Reason& reason, Nanos& wait) noexcept override {
    const std::lock_guard held(lock);
    const auto found = forced_bulkheads.find(bulkhead);
    if (found == forced_bulkheads.end()) return false;
    reason = found->second.reason;
    wait = std::max(Nanos{1}, found->second.retry_after);
    if (found->second.times != 0 && --found->second.times == 0) forced_bulkheads.erase(found);
    return true;
  }

  void note_place(std::string_view bulkhead, Reason reason, bool forced) noexcept override {
    const std::lock_guard held(lock);
    TestCounts& counts = bulkheads[std::string(bulkhead)];
    ++counts.asked;
    ++(reason == Reason::Allowed ? counts.allowed : counts.refused);
    counts.forced += forced ? 1 : 0;
  }

  LimitState* record_of(LimitState& state) noexcept override {
    auto found = inner.core().limit(state.owner.name);
    return found ? *found : nullptr;
  }

  Result<void> check(std::string_view limit) {
    auto found = inner.limit(limit);
    if (found) return {};
    return found.error();
  }

 private:
  struct Wanted {
    const LimitState& state;
    std::string_view key;
    std::uint64_t cost;
    bool look;
    Name name() const { return {state.name, std::string(key)}; }
  };

  static Wanted wanted_of(const LimitAsk& ask, bool charge) noexcept {
    return {LimitOf::state(ask.limit), ask.key, ask.cost, !charge || ask.cost == 0};
  }

  Forced* find_forced(const Wanted& wanted) {
    if (const auto of_key = forced_keys.find(wanted.name()); of_key != forced_keys.end()) {
      return &of_key->second;
    }
    const auto of_limit = forced_limits.find(wanted.state.owner.name);
    return of_limit != forced_limits.end() ? &of_limit->second : nullptr;
  }

  /// The answer that is forced for this ask, once less from now on.
  std::optional<Forced> take_forced(const Wanted& wanted) {
    Forced* const planned = find_forced(wanted);
    if (planned == nullptr) return std::nullopt;
    const Forced taken = *planned;
    if (planned->times == 0 || --planned->times != 0) return taken;
    if (forced_keys.erase(wanted.name()) == 0) {
      forced_limits.erase(forced_limits.find(wanted.state.owner.name));
    }
    return taken;
  }

  void answer(const Wanted& wanted, const Forced& forced, Decision& out) const noexcept {
    DecisionData data;
    const bool allowed = forced.reason == Reason::Allowed;
    data.reason = forced.reason;
    if (forced.reason == Reason::Degraded) data.flags = Decision::kDegraded | Decision::kHint;
    data.decided_by = DecidedBy::Private;
    data.computed = true;
    data.receipt = allowed && !wanted.look ? Receipt::One : Receipt::None;
    data.t = front.now().count();
    data.mult = allowed ? kMaxCost : 0;                       // remaining
    data.base_t = allowed ? 0 : std::max<std::int64_t>(1, forced.retry_after.count());
    data.cost = static_cast<std::int64_t>(wanted.cost);
    data.owner = &wanted.state;
    out = Decision(data);
  }

  static void add(TestCounts& counts, const Wanted& wanted, bool forced, bool allowed) noexcept {
    counts.forced += forced ? 1 : 0;
    if (wanted.look) {
      ++counts.looks;
      return;
    }
    ++counts.asked;
    ++(allowed ? counts.allowed : counts.refused);
    counts.tokens += allowed ? wanted.cost : 0;
  }

  void note(const Wanted& wanted, bool forced, Reason reason) {
    const bool allowed = reason == Reason::Allowed;
    add(limits[wanted.state.name], wanted, forced, allowed);
    const Name name = wanted.name();
    if (auto of_key = keys.find(name); of_key != keys.end()) {
      add(of_key->second, wanted, forced, allowed);
    } else if (keys.size() < kTestKeysCounted) {
      add(keys[name], wanted, forced, allowed);
    }
    if (last.size() == kTestAsksKept) last.pop_front();
    last.push_back({name.first, name.second, wanted.cost, wanted.look, forced, reason});
  }
};

Result<TestLimits> TestLimits::make(std::string_view yaml) {
  const SteppedClock clock;
  auto deciding = Client::in_memory(yaml, clock);
  if (!deciding) return deciding.error();
  auto watched = Client::in_memory(yaml, clock);
  if (!watched) return watched.error();
  return TestLimits(std::make_unique<Inside>(clock, std::move(*deciding), std::move(*watched)));
}

TestLimits::TestLimits(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
TestLimits::TestLimits(TestLimits&&) noexcept = default;
TestLimits& TestLimits::operator=(TestLimits&&) noexcept = default;
TestLimits::~TestLimits() = default;

Client& TestLimits::client() noexcept { return inside_->front; }
void TestLimits::advance(Nanos by) noexcept { inside_->clock.advance(by); }
Nanos TestLimits::now() const noexcept { return inside_->clock.now(); }

Result<void> TestLimits::reload(std::string_view yaml) {
  if (auto done = inside_->inner.reload(yaml); !done) return done;
  return inside_->front.reload(yaml);
}

Result<void> TestLimits::force(std::string_view limit, Forced forced) {
  if (auto known = inside_->check(limit); !known) return known;
  const std::lock_guard held(inside_->lock);
  inside_->forced_limits.insert_or_assign(std::string(limit), forced);
  return {};
}

Result<void> TestLimits::force(std::string_view limit, std::string_view key, Forced forced) {
  if (auto known = inside_->check(limit); !known) return known;
  const std::lock_guard held(inside_->lock);
  inside_->forced_keys.insert_or_assign({std::string(limit), std::string(key)}, forced);
  return {};
}

void TestLimits::release(std::string_view limit) {
  const std::lock_guard held(inside_->lock);
  inside_->forced_limits.erase(std::string(limit));
  std::erase_if(inside_->forced_keys, [&](const auto& one) { return one.first.first == limit; });
}

Result<void> TestLimits::force_bulkhead(std::string_view bulkhead, Forced forced) {
  if (auto known = inside_->front.bulkhead(bulkhead); !known) return known.error();
  const std::lock_guard held(inside_->lock);
  inside_->forced_bulkheads.insert_or_assign(std::string(bulkhead), forced);
  return {};
}

void TestLimits::release_bulkhead(std::string_view bulkhead) {
  const std::lock_guard held(inside_->lock);
  const auto found = inside_->forced_bulkheads.find(bulkhead);
  if (found != inside_->forced_bulkheads.end()) inside_->forced_bulkheads.erase(found);
}

TestCounts TestLimits::bulkhead_counts(std::string_view bulkhead) const {
  const std::lock_guard held(inside_->lock);
  const auto found = inside_->bulkheads.find(bulkhead);
  return found != inside_->bulkheads.end() ? found->second : TestCounts{};
}

void TestLimits::release() {
  const std::lock_guard held(inside_->lock);
  inside_->forced_bulkheads.clear();
  inside_->forced_limits.clear();
  inside_->forced_keys.clear();
}

TestCounts TestLimits::counts(std::string_view limit) const {
  const std::lock_guard held(inside_->lock);
  const auto found = inside_->limits.find(limit);
  return found != inside_->limits.end() ? found->second : TestCounts{};
}

TestCounts TestLimits::counts(std::string_view limit, std::string_view key) const {
  const std::lock_guard held(inside_->lock);
  const auto found = inside_->keys.find({std::string(limit), std::string(key)});
  return found != inside_->keys.end() ? found->second : TestCounts{};
}

std::vector<TestAsk> TestLimits::asks() const {
  const std::lock_guard held(inside_->lock);
  return {inside_->last.begin(), inside_->last.end()};
}

void TestLimits::forget() {
  const std::lock_guard held(inside_->lock);
  inside_->limits.clear();
  inside_->bulkheads.clear();
  inside_->keys.clear();
  inside_->last.clear();
}

}  // namespace cutwater
