// SPDX-License-Identifier: Apache-2.0
// Ledger: what was given to whom, and the check that nobody gained a token (P1).
//
// Every grant owns a slice (x, y] of its limit's token axis. P1 is that the slices of one key are
// disjoint and that each lies within [N(t), N(t) + burst] at its own stamp t (beyond the burst only
// what waits for its start). Slices may come from several processes and in any order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <cutwater/decision.hpp>

namespace cutwater::test {

struct Slice {
  std::uint64_t key;                   ///< a key of a limit, however the test numbers them
  std::int64_t from, to;
  friend auto operator<=>(const Slice&, const Slice&) = default;
};

class Ledger {
 public:
  /// Ignores refusals. `waited`: the caller was ready to wait.
  void add(std::uint64_t key, const DecisionData& d, bool waited = false) {
    if (d.reason != Reason::Allowed || d.cost == 0) return;
    slices_.push_back({key, d.level - d.cost, d.level});
    tokens_ += static_cast<std::uint64_t>(d.cost) >> d.f;
    if (!d.computed && (d.level - d.cost < d.n || (!waited && d.level - d.n > d.burst))) {
      fault_ = "a slice of key " + std::to_string(key) + " lies outside its stamp's burst";
    }
  }
  /// The charge was undone: its slice may be given again.
  void remove(std::uint64_t key, const DecisionData& d) {
    const Slice slice{key, d.level - d.cost, d.level};
    const auto at = std::find(slices_.begin(), slices_.end(), slice);
    if (at == slices_.end()) {
      fault_ = "an undo of something that was not given";
      return;
    }
    tokens_ -= static_cast<std::uint64_t>(d.cost) >> d.f;
    *at = slices_.back();
    slices_.pop_back();
  }
  void clear() {
    slices_.clear();
    fault_.clear();
    tokens_ = 0;
  }

  std::uint64_t tokens() const { return tokens_; }
  std::size_t grants() const { return slices_.size(); }
  /// Empty, or the first thing that breaks P1.
  std::string fault() {
    std::sort(slices_.begin(), slices_.end());
    for (std::size_t i = 1; i < slices_.size(); ++i) {
      const Slice &a = slices_[i - 1], &b = slices_[i];
      if (a.key == b.key && a.to > b.from) {
        return "key " + std::to_string(a.key) + " was given a token twice";
      }
    }
    return fault_;
  }

 private:
  std::vector<Slice> slices_;
  std::string fault_;
  std::uint64_t tokens_ = 0;
};

}  // namespace cutwater::test
