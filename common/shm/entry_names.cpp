// SPDX-License-Identifier: Apache-2.0
#include "shm/entry_names.hpp"

namespace cutwater::shm {

void EntryNames::begin(std::uint32_t entries) {
  used_.clear();
  gone_.clear();
  fresh_.clear();
  reusable_.clear();
  free_.assign(entries, false);
  used_.reserve(entries);
}

void EntryNames::add_used(std::uint32_t index, std::string_view name) {
  used_.emplace(name, index);
}

void EntryNames::add_free(std::uint32_t index, std::string_view name, Free free) {
  free_[index] = true;
  if (!name.empty()) gone_.emplace(name, index);
  if (free == Free::Fresh) fresh_.insert(fresh_.end(), index);
  if (free == Free::Reusable) reusable_.insert(reusable_.end(), index);
}

std::uint32_t EntryNames::index_of(std::string_view name) const {
  const auto found = used_.find(name);
  return found == used_.end() ? kNone : found->second;
}

std::uint32_t EntryNames::free_for(std::string_view name) const {
  const auto own = gone_.find(name);
  if (own != gone_.end() && free_[own->second]) return own->second;
  if (!fresh_.empty()) return *fresh_.begin();
  return reusable_.empty() ? kNone : *reusable_.begin();
}

void EntryNames::take(std::uint32_t index, std::string_view name) {
  free_[index] = false;
  fresh_.erase(index);
  reusable_.erase(index);
  used_.emplace(name, index);
}

}  // namespace cutwater::shm
