// SPDX-License-Identifier: Apache-2.0
#include "support/exact_limiter.hpp"

#include <algorithm>

namespace cutwater::test {

ExactAnswer ExactBucket::take(std::uint64_t now_ns, std::uint64_t cost) noexcept {
  ExactAnswer answer = peek(now_ns, cost);
  if (!answer.allowed || cost == 0) return answer;
  full_at_ = receipt_end(now_ns, cost);
  answer.receipt = {.end = full_at_, .cost = cost};
  answer.remaining = remaining(now_ns);
  answer.reset_after_ns = reset_after_ns(now_ns);
  return answer;
}

ExactAnswer ExactBucket::peek(std::uint64_t now_ns, std::uint64_t cost) const noexcept {
  ExactAnswer answer;
  answer.allowed = receipt_end(now_ns, cost) - at(now_ns) <= tokens(burst_);
  answer.remaining = remaining(now_ns);
  answer.retry_after_ns = retry_after_ns(now_ns, cost);
  answer.reset_after_ns = reset_after_ns(now_ns);
  return answer;
}

bool ExactBucket::undo(const ExactReceipt& receipt) noexcept {
  if (receipt.cost == 0 || full_at_ != receipt.end) return false;
  full_at_ = receipt.end - tokens(receipt.cost);
  return true;
}

std::uint64_t ExactBucket::remaining(std::uint64_t now_ns) const noexcept {
  const ExactTime missing = std::max(full_at_ - at(now_ns), ExactTime{0});
  const ExactTime there = tokens(burst_) - missing;
  return there <= 0 ? 0 : static_cast<std::uint64_t>(there / period_ns_);
}

std::optional<std::uint64_t> ExactBucket::retry_after_ns(std::uint64_t now_ns,
                                                         std::uint64_t cost) const noexcept {
  if (cost > burst_) return std::nullopt;
  // Admitted from the moment t on with receipt - t <= burst; time does not move the receipt while
  // the bucket is not full, and a full bucket admits every cost that is not above the burst.
  return ns_until(now_ns, receipt_end(now_ns, cost) - tokens(burst_));
}

std::uint64_t ExactBucket::reset_after_ns(std::uint64_t now_ns) const noexcept {
  return ns_until(now_ns, full_at_);
}

ExactBucket::ExactBucket(const ExactPolicy& policy) noexcept
    : rate_count_(policy.rate_count), period_ns_(policy.period_ns), burst_(policy.burst) {
  const std::uint64_t there = std::min(policy.initial.value_or(burst_), burst_);
  full_at_ = at(policy.created_ns) + tokens(burst_ - there);
}

ExactBucket::ExactBucket(std::uint64_t rate_count, std::uint64_t period_ns, std::uint64_t burst,
                         std::optional<std::uint64_t> initial) noexcept
    : ExactBucket(ExactPolicy{.rate_count = rate_count,
                              .period_ns = period_ns,
                              .burst = burst,
                              .initial = initial}) {}

ExactTime ExactBucket::at(std::uint64_t time_ns) const noexcept {
  return ExactTime{time_ns} * rate_count_;
}

ExactTime ExactBucket::tokens(std::uint64_t count) const noexcept {
  return ExactTime{count} * period_ns_;
}

ExactTime ExactBucket::receipt_end(std::uint64_t now_ns, std::uint64_t cost) const noexcept {
  return std::max(full_at_, at(now_ns)) + tokens(cost);
}

std::uint64_t ExactBucket::ns_until(std::uint64_t now_ns, ExactTime moment) const noexcept {
  const ExactTime distance = moment - at(now_ns);
  if (distance <= 0) return 0;
  return static_cast<std::uint64_t>((distance + rate_count_ - 1) / rate_count_);
}

}  // namespace cutwater::test
