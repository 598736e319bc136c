// SPDX-License-Identifier: Apache-2.0
// From a decision's raw numbers to the fields of an answer on the wire: the same for ACQUIRE, PEEK
// and ENTER. Pure. Thread safety: values.
#pragma once
#include <algorithm>

#include "rule/decision_report.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::server {

inline std::uint64_t wire_ns(std::int64_t ns) noexcept {
  if (ns == rule::kNeverNs) return wire::kNever;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
}

/// Fills the fields both kinds of answers have; the others are the caller's.
template <class Answer>
void fill_answer(const DecisionData& data, Answer& out) {
  const rule::Report report = rule::report_of(data);
  out.reason = static_cast<std::uint16_t>(data.reason);
  out.remaining = report.remaining;
  out.retry_after_ns = wire_ns(report.retry_after_ns);
  out.reset_after_ns = wire_ns(report.reset_after_ns);
  out.wait_ns = wire_ns(report.starts_in_ns);
  out.window = data.window;
  out.flags = data.flags;
  out.text.clear();
}

/// The same of a decision of its own, for an item of `cost`; 0: a look. `stepped`: the asker cannot
/// know the reading that was used.
inline void fill_decision(const DecisionData& data, std::uint64_t cost, bool stepped,
                          wire::DecisionAnswer& out) {
  fill_answer(data, out);
  const bool shadow = (data.flags & Decision::kShadow) != 0;
  out.would = shadow ? static_cast<std::uint16_t>(data.would) : std::uint16_t{0};
  const std::uint64_t charged = rule::charged_of(data);
  const std::uint64_t usual = data.reason == Reason::Allowed && !shadow ? cost : 0;
  out.charged = charged != usual || stepped ? charged : wire::kChargedAsAsked;
  out.clock_ns = stepped ? wire_ns(data.t) : 0;
}

}  // namespace cutwater::server
