// SPDX-License-Identifier: Apache-2.0
// AskWatcher: who answers for the records of a Client that is watched (cutwater/testing.hpp). Such
// records are away for good, so the decision path has no question more; elsewhere.cpp hands every
// ask of them on to the watcher. Not for production: it may lock and allocate.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include <cutwater/client.hpp>

#include "src/ask/elsewhere.hpp"

namespace cutwater::detail {

class AskWatcher {
 public:
  virtual ~AskWatcher() = default;
  /// Fills all of `out`; `key` and ask.cost are within their bounds.
  virtual void ask(LimitState& state, std::string_view key, const Ask& ask, AskKind kind,
                   Decision& out) noexcept = 0;
  /// True: an item is forced; `forced` is the answer and `index` its item for a refusal, and where
  /// nothing refuses, `left` says which items are to be asked. False: ask all of them.
  virtual bool force_all(std::span<const LimitAsk> asks, bool charge, Decision& forced,
                         std::size_t& index, std::span<bool> left) noexcept = 0;
  /// What was answered to the items of an all-or-none ask, in their order.
  virtual void note_all(std::span<const LimitAsk> asks, bool charge,
                        const Admission& answer) noexcept = 0;
  virtual Result<std::uint64_t> refund(LimitState& state, Decision& decision) noexcept = 0;
  /// True: an ask of this bulkhead is forced; `reason` and `wait` are the answer.
  virtual bool force_place(std::string_view bulkhead, Reason& reason, Nanos& wait) noexcept = 0;
  /// What was answered to an ask of a place.
  virtual void note_place(std::string_view bulkhead, Reason reason, bool forced) noexcept = 0;
  /// The record that really decides; nullptr: the limit is gone.
  virtual LimitState* record_of(LimitState& state) noexcept = 0;
};

}  // namespace cutwater::detail
