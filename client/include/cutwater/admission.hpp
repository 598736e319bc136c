// SPDX-License-Identifier: Apache-2.0
// Admission: several limits asked as one, all or none.
//
//   auto api = client.limit("api").value(), tenant = client.limit("tenant").value();
//   auto a = client.acquire_all({{api, "alice"}, {tenant, "acme"}});
//   if (!a) return reply_429(a.limit_name(), a.retry_after());
//
// Either every limit of the list is charged, or none is and nothing was written (P3): a refusal of
// one costs the others nothing. The order of the list changes nothing; a limit named twice with the
// same key counts the sum of the costs. A limit in `mode: shadow` never blocks the others and is
// charged only when they all grant.
// Killed in the middle, a process loses at most the cost in what it had charged, which refills.
// Thread safety: a value. Names stay valid as long as the Client.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <cutwater/decision.hpp>
#include <cutwater/export.hpp>
#include <cutwater/limit.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

namespace detail {
struct AllElsewhere;
struct EnterParts;
}

/// Most limits of one ask.
inline constexpr std::size_t kMaxLimitsAtOnce = 8;

/// One limit of an all-or-none ask.
struct LimitAsk {
  Limit limit;
  std::string_view key;
  std::uint64_t cost = 1;              ///< tokens, 0..kMaxCost; 0 = a look
};

class CUTWATER_EXPORT Admission {
 public:
  Admission() = default;

  /// The answer.
  bool allowed() const noexcept { return verdict_.allowed(); }
  explicit operator bool() const noexcept { return allowed(); }
  Reason reason() const noexcept { return verdict_.reason(); }
  /// Refused: of the limit with the longest wait among those that refuse; see Decision.
  Nanos retry_after() const noexcept { return verdict_.retry_after(); }
  /// The smallest over the limits.
  std::uint64_t remaining() const noexcept { return verdict_.remaining(); }
  /// The largest over the limits.
  Nanos reset_after() const noexcept { return verdict_.reset_after(); }
  /// Who refuses with the longest wait; allowed: the tightest.
  std::string_view limit_name() const noexcept { return verdict_.limit_name(); }
  /// Its place in the list.
  std::size_t index() const noexcept { return index_; }
  bool degraded() const noexcept { return verdict_.degraded(); }
  /// A shadow limit of the list would have refused.
  bool shadow() const noexcept { return verdict_.shadow(); }

  /// All of it as one answer, without a receipt.
  const Decision& verdict() const noexcept { return verdict_; }
  /// What each limit of the list answered by itself; empty for a bad argument. The receipts lie
  /// here: Client::refund() spends them all, Limit::refund() one.
  std::span<const Decision> each() const noexcept { return {each_.data(), count_}; }
  std::span<Decision> each() noexcept { return {each_.data(), count_}; }

 private:
  friend class Client;
  friend struct detail::AllElsewhere;
  friend struct detail::EnterParts;
  Decision verdict_;
  std::array<Decision, kMaxLimitsAtOnce> each_;
  std::size_t count_ = 0;
  std::size_t index_ = 0;
};

}  // namespace cutwater
