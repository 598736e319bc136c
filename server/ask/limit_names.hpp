// SPDX-License-Identifier: Apache-2.0
// Where the limits of the running rules lie, by name: what a mapped client keeps in each of its
// Limit objects, kept here once for all sessions. Filled as names are asked for, emptied when the
// rules change; so it holds at most as many names as there are limits.
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "shm/limit/admit.hpp"

namespace cutwater::server {

class LimitNames {
 public:
  /// nullptr: no such limit now. Valid until the next call.
  const shm::LimitHandle* find(const shm::View& view, std::string_view name);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::uint64_t current_ = ~std::uint64_t{0};
  const void* rules_ = nullptr;        ///< whose `current_` it is: the memory may be another
  std::unordered_map<std::string, shm::LimitHandle, Hash, std::equal_to<>> names_;
};

}  // namespace cutwater::server
