// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/config.hpp"

namespace cutwater::config {

bool Access::allows(Right right, const Peer& peer) const noexcept {
  if (peer.uid == 0 || peer.uid == daemon_uid) return true;
  switch (right) {
    case Right::Map: return map.contains(peer);
    case Right::Ask: return map.contains(peer) || ask.contains(peer);
    case Right::Look: return map.contains(peer) || look.contains(peer);
    case Right::Steer: return steer.contains(peer);
  }
  return false;
}

bool Principals::contains(const Peer& peer) const noexcept {
  if (everybody) return true;
  const auto among = [](const std::vector<std::uint32_t>& ids, std::uint32_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return among(users, peer.uid) || among(groups, peer.gid) ||
         std::any_of(peer.groups.begin(), peer.groups.end(),
                     [&](std::uint32_t gid) { return among(groups, gid); });
}

}  // namespace cutwater::config
