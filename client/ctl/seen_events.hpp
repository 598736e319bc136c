// SPDX-License-Identifier: Apache-2.0
// Which named events a reader has shown. A transition is written by whoever made it, and once more
// by whoever finds its word unannounced because that one was killed: (kind, object, epoch) names
// it, and a reader shows it once. Events of epoch 0 have no name and are shown each time.
// Bounds: the last kNames names; the second writing follows within moments.
// Thread safety: one thread. Allocates.
#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace cutwater::ctl {

class SeenEvents {
 public:
  static constexpr std::size_t kNames = 4096;

  /// True at the first sight of this name, and always for epoch 0.
  bool first(std::string_view kind, std::uint64_t object, std::uint64_t epoch) {
    if (epoch == 0) return true;
    Name name{std::string(kind), object, epoch};
    if (!names_.insert(name).second) return false;
    order_.push_back(std::move(name));
    if (order_.size() > kNames) {
      names_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }

 private:
  using Name = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  std::set<Name> names_;
  std::deque<Name> order_;  // oldest first
};

}  // namespace cutwater::ctl
