// SPDX-License-Identifier: Apache-2.0
#include "ask/limit_names.hpp"

namespace cutwater::server {

const shm::LimitHandle* LimitNames::find(const shm::View& view, std::string_view name) {
  const std::uint64_t current = view.current();
  if (current != current_ || view.rules_control != rules_) {
    names_.clear();
    current_ = current;
    rules_ = view.rules_control;
  }
  const auto known = names_.find(name);
  if (known != names_.end()) return &known->second;
  const shm::LimitHandle handle = shm::resolve(view, name);
  if (handle.ref.index == shm::kNoLimit) return nullptr;
  return &names_.emplace(std::string(name), handle).first->second;
}

}  // namespace cutwater::server
