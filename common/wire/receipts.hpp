// SPDX-License-Identifier: Apache-2.0
// Receipts: what an application wants back when an answered request is cancelled or refunded. For
// this room they are opaque bytes, one string per receipt; who writes them knows what a charge is.
// Receipt i belongs to item i of the request; receipts behind the last item (a place, a probe) are
// given back by CANCEL only. An empty string is an item that holds nothing.
// Thread safety: a value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cutwater::wire {

class Receipts {
 public:
  void add(std::string_view receipt) {
    bytes_.append(receipt);
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }

  /// Empty, with the room it had.
  void clear() noexcept {
    bytes_.clear();
    ends_.clear();
  }

  std::size_t size() const noexcept { return ends_.size(); }
  /// Receipt i, "" where there is none. Points into this.
  std::string_view at(std::size_t i) const noexcept {
    if (i >= ends_.size()) return {};
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  /// What they take of a session's memory.
  std::size_t bytes() const noexcept { return bytes_.size(); }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace cutwater::wire
