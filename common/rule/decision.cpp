// SPDX-License-Identifier: Apache-2.0
#include <cutwater/decision.hpp>

#include "rule/decision_report.hpp"

namespace cutwater::rule {

Report report_of(const DecisionData& d) noexcept {
  if (d.computed) {
    return {d.mult, d.base_t, d.base_n, d.burst};
  }
  TokenRule rule;
  rule.after = {d.mult, d.base_t, d.base_n, d.burst, 0, 0, d.shift};
  rule.f = d.f;
  Report out = report(rule, d.t, d.n, d.level, d.cost, d.reason == Reason::Allowed);
  if (d.reason == Reason::Degraded && out.retry_after_ns == kNeverNs) out.retry_after_ns = 1;
  return out;
}

std::uint64_t charged_of(const DecisionData& d) noexcept {
  if (d.reason != Reason::Allowed) return 0;
  if (d.receipt == Receipt::Several) return d.tokens;
  if (d.slot == nullptr) return 0;
  return static_cast<std::uint64_t>(d.cost) >> d.f;
}

void set_report(DecisionData& d, const Report& report) noexcept {
  d.computed = true;
  d.mult = report.remaining;
  d.base_t = report.retry_after_ns;
  d.base_n = report.reset_after_ns;
  d.burst = report.starts_in_ns;
}

}  // namespace cutwater::rule

namespace cutwater {
namespace {

Nanos nanos(std::int64_t ns) noexcept { return ns == rule::kNeverNs ? kNever : Nanos{ns}; }

}  // namespace

std::string_view name_of(Reason reason) noexcept {
  switch (reason) {
    case Reason::Allowed: return "allowed";
    case Reason::Limit: return "limit";
    case Reason::Never: return "never";
    case Reason::Banned: return "banned";
    case Reason::Full: return "full";
    case Reason::Open: return "open";
    case Reason::Probing: return "probing";
    case Reason::Expired: return "expired";
    case Reason::Degraded: return "degraded";
    case Reason::KeyTooLong: return "key_too_long";
    case Reason::InvalidArgument: return "invalid_argument";
  }
  return "unknown";
}

std::uint64_t Decision::remaining() const noexcept { return rule::report_of(data_).remaining; }
Nanos Decision::retry_after() const noexcept {
  return nanos(rule::report_of(data_).retry_after_ns);
}
Nanos Decision::reset_after() const noexcept {
  return nanos(rule::report_of(data_).reset_after_ns);
}
Nanos Decision::starts_in() const noexcept { return nanos(rule::report_of(data_).starts_in_ns); }

std::uint64_t Decision::charged() const noexcept { return rule::charged_of(data_); }

std::string_view Decision::limit_name() const noexcept {
  return data_.owner == nullptr ? std::string_view{}
                                : static_cast<const DecisionOwner*>(data_.owner)->name;
}

}  // namespace cutwater
