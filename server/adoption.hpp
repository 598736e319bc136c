// SPDX-License-Identifier: Apache-2.0
// Gets the memory of an instance: takes over what a former daemon left, or makes it anew and says
// exactly why. The caller holds the directory's lock, so nobody else changes the files meanwhile.
//
//   no files, or a creation that was cut short   fresh
//   whole, same boot, clock, sizes               adopted: nothing is forgotten
//   of another boot                              discarded (stamps of another boot's clock), fresh
//   damaged, another layout, another clock,      set aside as *.bad (one set; an older one goes),
//     other capacities                           fresh, and, with `initial-after-damage: empty`,
//                                                every limit begins empty: nobody gains a burst
// Not set aside while processes are attached to it: they would go on in it, beside the new one, and
// every limit would be admitted twice. Then the start ends and names them.
// What cannot even be set aside is an error: the start ends. Leftover `*.next` are removed.
// Crash: killed at any step leaves what the next start handles the same way.
// Thread safety: one thread, before the loop runs.
#pragma once
#include <string>

#include <cutwater/result.hpp>

#include "rule/limit_settings.hpp"
#include "shm/segment.hpp"

namespace cutwater::server {

struct Birth {
  enum class Kind { Fresh, Adopted, AnotherBoot, SetAside };

  shm::Segment segment;
  Kind kind = Kind::Fresh;
  std::string reason;          ///< AnotherBoot, SetAside: what was wrong with the files found
  bool start_empty = false;    ///< limits begin with F = N + B
};

Result<Birth> adopt_or_create(int directory_fd, const shm::SegmentOptions& options,
                              rule::Initial after_damage);

}  // namespace cutwater::server
