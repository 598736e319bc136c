// SPDX-License-Identifier: Apache-2.0
#include "ask/admission.hpp"

#include <fmt/format.h>

namespace cutwater::server {

namespace {

std::string layout_fault(const wire::Layout& theirs, const AdmissionFacts& ours) {
  if (theirs == wire::Layout{}) return "the client maps no memory";
  if (theirs.major != ours.layout_major) {
    return fmt::format("layout {}.{} there, {}.{} here: use the library of the daemon's version",
                       theirs.major, theirs.minor, ours.layout_major, ours.layout_minor);
  }
  const std::uint64_t missing = ours.features_required & ~theirs.bits;
  if (missing != 0) return fmt::format("the client does not know memory features {:#x}", missing);
  return {};
}

std::string seconds(std::uint64_t ns) {
  return fmt::format("{}.{:03} s", ns / 1'000'000'000, ns / 1'000'000 % 1000);
}

std::string clock_fault(const wire::Hello& hello, const AdmissionFacts& facts) {
  if (facts.stepped) return {};
  const bool known = hello.time_ns != 0 && facts.time_namespace != 0;
  if (known && hello.time_ns != facts.time_namespace) {
    const bool ahead = hello.clock_ns > facts.boottime_ns;
    const std::uint64_t apart =
        ahead ? hello.clock_ns - facts.boottime_ns : facts.boottime_ns - hello.clock_ns;
    return fmt::format("another time name space: clocks differ by {}{}", ahead ? "" : "-",
                       seconds(apart));
  }
  if (hello.clock_ns > facts.boottime_ns && hello.clock_ns - facts.boottime_ns > kClockSlackNs) {
    return "clocks differ by " + seconds(hello.clock_ns - facts.boottime_ns);
  }
  if (!known && facts.boottime_ns > hello.clock_ns &&
      facts.boottime_ns - hello.clock_ns > kClockSlackNs) {
    return "clocks differ by -" + seconds(facts.boottime_ns - hello.clock_ns);
  }
  return {};
}

}  // namespace

std::uint8_t rights_of(const config::Peer& peer, const config::Access& access) {
  std::uint8_t rights = 0;
  if (access.allows(config::Right::Ask, peer)) rights |= wire::kRightUse;
  if (access.allows(config::Right::Look, peer)) rights |= wire::kRightLook;
  if (access.allows(config::Right::Steer, peer)) rights |= wire::kRightSteer;
  return rights;
}

Admission admit(const wire::Hello& hello, const config::Peer& peer, const config::Access& access,
                const AdmissionFacts& facts) {
  Admission out;
  if (hello.auth != "peercred") {
    out.refused = true;
    out.reason = "on a Unix socket the kernel says who you are: send auth `peercred`";
    return out;
  }
  out.rights = rights_of(peer, access);
  if (out.rights == 0) {
    out.refused = true;
    out.reason = fmt::format(
        "uid {} (gid {}) is not in access.ask, map, look or steer; add the user or one of its "
        "groups to access.ask, or add the user to a group that is there (cutwater-clients by "
        "default)",
        peer.uid, peer.gid);
    return out;
  }
  if (hello.want == wire::Want::Ask) return out;
  const bool may_map = access.allows(config::Right::Map, peer) ||
                       (hello.want == wire::Want::MapRead && (out.rights & wire::kRightLook) != 0);
  out.why = may_map ? layout_fault(hello.layout, facts)
                    : fmt::format("uid {} is not in access.map", peer.uid);
  if (out.why.empty()) out.why = clock_fault(hello, facts);
  if (out.why.empty()) out.mode = hello.want;
  return out;
}

}  // namespace cutwater::server
