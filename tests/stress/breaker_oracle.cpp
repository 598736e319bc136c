// SPDX-License-Identifier: Apache-2.0
#include "stress/breaker_oracle.hpp"

#include <algorithm>

namespace cutwater::test {

void BreakerOracle::move(State next, std::int64_t attempts_next, std::int64_t deadline_next,
                         bool ramp) {
  tripped_ = next == Open && state == Closed;
  if (!tripped_) {
    kept_.clear();
    in_span_.clear();
  }
  run_ = 0;
  state = next;
  attempts = std::min<std::int64_t>(attempts_next, 255);
  deadline = deadline_next;
  ramping = ramp;
  ++epoch;
  ++transitions;
  for (auto& [process, user] : users_) {
    const bool gone = user.gone;
    user = User(user.order);
    user.gone = gone;
  }
}

std::int64_t BreakerOracle::wait(std::int64_t attempts_now) const {
  const std::int64_t most = s_.max_wait_ns != 0 ? s_.max_wait_ns : 30LL * 86'400 * 1'000'000'000;
  long double wait = std::min<long double>(s_.wait_ns, most);
  for (std::int64_t i = 1; i < attempts_now && wait < most; ++i) {
    wait = static_cast<long double>(
        static_cast<std::int64_t>(wait * s_.multiplier_ppm / 1'000'000));
  }
  return std::min(static_cast<std::int64_t>(wait), most);
}

BreakerOracle::Window BreakerOracle::window(std::int64_t now) const {
  Window last, span;
  const auto count = [](Window& w, const Outcome& o) {
    ++w.calls;
    w.failures += o.failed;
    w.slow += o.slow;
  };
  if (s_.time) {
    for (const Outcome& o : kept_) {
      if (o.slot > now / s_.slot_ns - s_.window) count(last, o);
    }
    return last;
  }
  const auto n = static_cast<std::int64_t>(kept_.size());
  for (std::int64_t i = std::max<std::int64_t>(0, n - s_.window); i < n; ++i) {
    count(last, kept_[static_cast<std::size_t>(i)]);
  }
  if (s_.span_slot_ns == 0) return last;
  for (const Outcome& o : in_span_) {
    if (o.span_slot > now / s_.span_slot_ns - 10) count(span, o);
  }
  return span.calls > last.calls ? span : last;
}

BreakerOracle::Reason BreakerOracle::opens(const Outcome& last, std::int64_t now) const {
  const std::int64_t out = out_too_long(now);
  if (s_.only_on_failure && !last.failed && !last.slow && out == 0) return None;
  Window w = window(now);
  w.calls += out;
  w.slow += out;
  const std::int64_t minimum = s_.time ? s_.minimum : std::min(s_.minimum, s_.window);
  const auto reaches = [&](std::int64_t part, std::int64_t ppm) {
    return w.calls >= minimum && ppm >= 0 && part * 1'000'000 >= ppm * w.calls;
  };
  if (reaches(w.failures, s_.failure_ppm)) return FailureRate;
  if (reaches(w.slow, s_.slow_ppm)) return SlowRate;
  if (s_.failure_count > 0 && w.failures >= s_.failure_count) return FailureCount;
  return s_.consecutive > 0 && run_ >= s_.consecutive ? Consecutive : None;
}

std::int64_t BreakerOracle::out_too_long(std::int64_t now) const {
  if (!s_.hanging) return 0;
  return std::count_if(calls_.begin(), calls_.end(), [&](const auto& entry) {
    const Call& call = entry.second;
    return call.tracked && call.epoch == epoch && now - call.start > s_.slow_ns;
  });
}

bool BreakerOracle::judge_calls_out(std::int64_t now) {
  if (state != Closed || out_too_long(now) == 0) return false;
  const Reason reason = opens({}, now);
  if (reason == None || some_only(reason, now)) return false;
  open(attempts + 1, now);
  return true;
}

BreakerOracle::Answer BreakerOracle::grant(Kind kind, int process, std::int64_t now,
                                           std::size_t cell) {
  Answer answer;
  answer.granted = true;
  answer.call = next_call_++;
  const bool tracked = s_.hanging && (kind == InWindow || kind == Measured);
  calls_[answer.call] = {kind, epoch, now, cell, process, tracked};
  return answer;
}

bool BreakerOracle::step_due(std::int64_t now) {
  const bool expired = deadline != 0 && now >= deadline;
  if (state == Open && is_over(now)) {
    move(HalfOpen, attempts, s_.half_open_max_ns != 0 ? now + s_.half_open_max_ns : 0);
  } else if (state == ForcedOpen && expired) {
    move(Open, attempts, now - (s_.exclusive ? 1 : 0));
  } else if ((state == Disabled || state == MetricsOnly) && expired) {
    move(Closed, 0, 0);
  } else {
    return false;
  }
  return true;
}

bool BreakerOracle::lapse(Cell& cell, std::int64_t now) {
  if (cell.state != Cell::Held || (!cell.dead && now < cell.until)) return false;
  cell.state = cell.dead || s_.release_late ? Cell::Free : Cell::Spent;
  cell.failed = cell.state == Cell::Spent;
  cell.slow = false;
  cell.call = 0;
  cell.dead = false;
  cell.process = -1;
  return true;
}

void BreakerOracle::settle(std::int64_t now) {
  if (state != HalfOpen) return;
  std::int64_t n = 0, failed = 0, slow = 0;
  for (const Cell& cell : cells_) {
    if (cell.epoch != epoch || cell.state != Cell::Spent) continue;
    ++n;
    failed += cell.failed;
    slow += cell.slow;
  }
  const auto by_rate = [&] {
    const bool bad = (s_.failure_ppm >= 0 && failed * 1'000'000 >= s_.failure_ppm * n) ||
                     (s_.slow_ppm >= 0 && slow * 1'000'000 >= s_.slow_ppm * n);
    if (bad) open(attempts + 1, now);
    else close_by_probes(now);
  };
  switch (s_.decision) {
    case OracleSettings::Rate:
      if (n == s_.probes) by_rate();
      break;
    case OracleSettings::RateOver:
      if (n >= s_.decision_value) by_rate();
      break;
    case OracleSettings::AllSucceed:
      if (failed > 0) open(attempts + 1, now);
      else if (n == s_.probes) close_by_probes(now);
      break;
    case OracleSettings::Successes:
      if (failed > s_.probes - s_.decision_value) open(attempts + 1, now);
      else if (n - failed >= s_.decision_value) close_by_probes(now);
      break;
  }
}

BreakerOracle::Answer BreakerOracle::enter(int process, std::int64_t now,
                                           std::int64_t probe_deadline) {
  Answer refused;
  for (;;) {
    Answer alone;
    if (state == Closed && enter_alone(process, now, probe_deadline, alone)) return alone;
    if (judge_calls_out(now)) continue;
    if (step_due(now)) continue;
    switch (state) {
      case MetricsOnly: return grant(Measured, process, now);
      case Disabled: return grant(Unrecorded, process, now);
      case ForcedOpen: refused.retry_ns = deadline == 0 ? -1 : deadline - now; return refused;
      case Open: refused.retry_ns = deadline - now + (s_.exclusive ? 1 : 0); return refused;
      case Closed: {
        if (!ramping) return grant(InWindow, process, now);
        if (now >= deadline) {
          ramping = false;
          return grant(InWindow, process, now);
        }
        const auto steps = static_cast<std::int64_t>(s_.ramp_percent.size());
        const std::int64_t gone = std::max<std::int64_t>(0, s_.ramp_ns - (deadline - now));
        const std::int64_t part = std::min(steps - 1, gone * steps / s_.ramp_ns);
        const std::int64_t share = s_.ramp_percent[static_cast<std::size_t>(part)];
        auto& [of, j] = ramp_calls_[process];
        if (of != epoch) j = 0;
        of = epoch;
        ++j;
        if ((j * share + 99) / 100 > ((j - 1) * share + 99) / 100) {
          return grant(InWindow, process, now);
        }
        refused.probing = true;
        refused.retry_ns = deadline - now;
        return refused;
      }
      case HalfOpen: break;
    }
    const std::int64_t at = epoch;
    if (deadline != 0 && now >= deadline) {
      settle(now);
      if (epoch == at) {
        if (s_.closes_after_max) close_by_probes(now);
        else open(attempts + 1, now);
      }
      continue;
    }
    std::int64_t earliest = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      Cell& cell = cells_[i];
      if (cell.epoch == epoch) lapse(cell, now);
      if (cell.epoch != epoch || cell.state == Cell::Free) {
        const std::int64_t most = now + 600'000'000'000;
        std::int64_t until = now + s_.probe_timeout_ns;
        if (probe_deadline > 0) until = std::min(std::max(probe_deadline, now + 1), most);
        cell = {};
        cell.state = Cell::Held;
        cell.epoch = epoch;
        cell.until = (until + 999) / 1000 * 1000;
        cell.process = process;
        cell.call = next_call_;
        return grant(InCell, process, now, i);
      }
      if (cell.state == Cell::Held && (earliest == 0 || cell.until < earliest)) {
        earliest = cell.until;
      }
    }
    settle(now);
    if (epoch != at) continue;
    refused.probing = true;
    refused.retry_ns = earliest > now ? earliest - now : 1;
    return refused;
  }
}

BreakerOracle::Recorded BreakerOracle::record(const Outcome& outcome, int process,
                                              std::int64_t now, bool judge) {
  kept_.push_back(outcome);
  in_span_.push_back(outcome);
  ++recorded_;
  run_ = outcome.failed ? run_ + 1 : 0;
  const std::size_t most = s_.time ? 100'000 : static_cast<std::size_t>(s_.window);
  while (kept_.size() > most) kept_.pop_front();
  if (!judge) return Counted;
  count_for(process, outcome, now);
  const Reason reason = state == Closed ? opens(outcome, now) : None;
  if (reason != None && !some_only(reason, now)) open(attempts + 1, now);
  judge_run(process, now);
  return Counted;
}

BreakerOracle::Recorded BreakerOracle::outcome(std::uint64_t number, How how, std::int64_t now,
                                               bool open_now, std::int64_t open_for_ns) {
  const Call call = calls_.at(number);
  calls_.erase(number);
  const bool counts =
      how == Success || how == Failure || (how == Ignored && s_.ignored_is_success);
  Outcome outcome{how == Failure, s_.slow_ppm >= 0 && now - call.start > s_.slow_ns,
                  s_.time ? now / s_.slot_ns : 0,
                  s_.span_slot_ns != 0 ? now / s_.span_slot_ns : 0};
  const auto at_once = [&] {
    const std::int64_t keep = attempts;
    const std::int64_t length =
        open_for_ns >= 0 ? std::min(open_for_ns, s_.max_open_for_ns)
                         : wait(std::max<std::int64_t>(1, attempts));
    move(Open, keep, now + length);
  };
  if (call.kind == InCell) {
    if (call.cell >= cells_.size()) return Stale;
    Cell& cell = cells_[call.cell];
    if (cell.state != Cell::Held || cell.call != number) return Stale;
    cell.state = counts ? Cell::Spent : Cell::Free;
    cell.failed = outcome.failed;
    cell.slow = outcome.slow;
    cell.call = 0;
    cell.process = -1;
    if (!counts) return Nothing;
    if (epoch != call.epoch) return Stale;
    if (open_now) at_once();
    else settle(now);
    return Counted;
  }
  const auto in_window = [&] {
    if (!counts || call.kind == Unrecorded) return Nothing;
    if (epoch != call.epoch) {
      if (s_.show_late && state == Open && tripped_ && epoch == call.epoch + 1) {
        record(outcome, call.process, now, false);
      }
      return Stale;
    }
    const bool hint = open_now && state == Closed;
    record(outcome, call.process, now, !hint);
    if (hint) at_once();
    return Counted;
  };
  const Recorded how_it_went = in_window();
  if (call.kind == InView) end_alone(call, number, counts, outcome.failed || outcome.slow, now);
  return how_it_went;
}

void BreakerOracle::tick(std::int64_t now) {
  std::erase_if(users_, [](const auto& entry) { return entry.second.gone; });
  for (Cell& cell : cells_) lapse(cell, now);
  judge_calls_out(now);
  settle(now);
  if (s_.automatic && state == Open) step_due(now);
}

int BreakerOracle::steer(Steer what, std::int64_t for_ns, std::int64_t now) {
  const std::int64_t until = for_ns > 0 ? now + for_ns : 0;
  switch (what) {
    case ForceOpen: move(ForcedOpen, attempts, until); return 0;
    case Disable: move(Disabled, attempts, until); return 0;
    case Metrics: move(MetricsOnly, attempts, until); return 0;
    case Auto:
      if (state == ForcedOpen) move(Open, attempts, now - (s_.exclusive ? 1 : 0));
      else if (state == Disabled || state == MetricsOnly) move(Closed, 0, 0);
      else return 1;
      return 0;
    case Reset:
    case ToClosed: move(Closed, 0, 0); return 0;
    case ToOpen:
      if (for_ns > 0) move(Open, attempts, until);
      else open(attempts + 1, now);
      return 0;
    case ToHalfOpen:
      if (state == HalfOpen) return 1;
      if (state != Open && state != ForcedOpen) return 2;
      move(HalfOpen, attempts, s_.half_open_max_ns != 0 ? now + s_.half_open_max_ns : 0);
      return 0;
  }
  return 1;
}

void BreakerOracle::reload(const OracleSettings& next, std::int64_t now) {
  const bool shape = next.time != s_.time ||
                     (s_.time && (next.window != s_.window || next.slot_ns != s_.slot_ns));
  if (shape) {
    kept_.clear();
    run_ = 0;
  }
  if (next.span_slot_ns != s_.span_slot_ns || next.time != s_.time) in_span_.clear();
  const bool rule = next.probes != s_.probes || next.decision != s_.decision ||
                    next.decision_value != s_.decision_value;
  if (next.hanging != s_.hanging) {
    for (auto& [number, call] : calls_) call.tracked = false;
  }
  s_ = next;
  if (!s_.time) {
    while (kept_.size() > static_cast<std::size_t>(s_.window)) kept_.pop_front();
  }
  cells_.resize(static_cast<std::size_t>(s_.probes));
  if (rule && state == HalfOpen) move(Open, attempts, now - (s_.exclusive ? 1 : 0));
}

std::int64_t BreakerOracle::held() const {
  return std::count_if(cells_.begin(), cells_.end(), [&](const Cell& cell) {
    return cell.epoch == epoch && cell.state == Cell::Held;
  });
}

std::int64_t BreakerOracle::spent() const {
  return std::count_if(cells_.begin(), cells_.end(), [&](const Cell& cell) {
    return cell.epoch == epoch && cell.state == Cell::Spent;
  });
}

}  // namespace cutwater::test
