// SPDX-License-Identifier: Apache-2.0
#include "session_store.hpp"

#include <algorithm>

namespace cutwater::server {

void SessionStore::park(const std::string& token, Parked parked) {
  if (parked_.size() >= kMaxParked && !parked_.contains(token)) {
    const auto sooner = [](const auto& a, const auto& b) {
      return a.second.until_ns < b.second.until_ns;
    };
    parked_.erase(std::min_element(parked_.begin(), parked_.end(), sooner));
  }
  parked_.insert_or_assign(token, std::move(parked));
}

std::optional<SessionStore::Parked> SessionStore::take(const std::string& token, std::uint32_t uid,
                                                       std::uint64_t now_ns) {
  const auto found = parked_.find(token);
  if (found == parked_.end() || found->second.uid != uid) return std::nullopt;
  if (now_ns >= found->second.until_ns) return std::nullopt;
  std::optional<Parked> out = std::move(found->second);
  parked_.erase(found);
  return out;
}

wire::AnswerMemory* SessionStore::find(const std::string& token) {
  const auto found = parked_.find(token);
  return found == parked_.end() ? nullptr : &found->second.memory;
}

void SessionStore::tick(std::uint64_t now_ns) {
  std::erase_if(parked_, [&](const auto& entry) { return now_ns >= entry.second.until_ns; });
}

}  // namespace cutwater::server
