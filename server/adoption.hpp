// SPDX-License-Identifier: Apache-2.0
// Gets the memory of an instance: takes over what a former daemon left, or makes it anew and says
// exactly why. The caller holds the directory's lock, so nobody else changes the files meanwhile.
//
//   no files, or a creation that was cut short   fresh
//   whole, same boot, clock, sizes               adopted: nothing is forgotten
//   whole, same boot, clock; other capacities,   moved (shm/supersede.hpp): a memory of the sizes
//     or such a move was cut short               asked for inherits what is owed; processes attach
//                                                anew by themselves. What does not fit ends
//                                                the start, and nothing is changed
//   of another boot                              discarded (stamps of another boot's clock), fresh
//   damaged, another layout, another clock       set aside as *.bad (one set; an older one goes),
//                                                fresh, and, with `initial-after-damage: empty`,
//                                                every limit begins empty: nobody gains a burst
// Not set aside while processes are attached to it: they would go on in it, beside the new one, and
// every limit would be admitted twice. Then the start ends and names them.
// What cannot even be set aside is an error: the start ends. Leftover `*.next` are removed, or put
// into place when a move was cut short while it renamed.
// `capacity.keys` is rounded up to a multiple of what the memory of this boot began with, so it
// never becomes less than that.
// Crash: killed at any step leaves what the next start handles the same way.
// Thread safety: one thread, before the loop runs.
#pragma once
#include <string>

#include <cutwater/result.hpp>

#include "rule/limit_settings.hpp"
#include "shm/memory_copy.hpp"
#include "shm/segment.hpp"

namespace cutwater::server {

struct Birth {
  enum class Kind { Fresh, Adopted, Moved, AnotherBoot, SetAside };

  shm::Segment segment;
  Kind kind = Kind::Fresh;
  std::string reason;          ///< AnotherBoot, SetAside, Moved: what was wrong with those found
  bool start_empty = false;    ///< limits begin with F = N + B
  shm::CopyReport copied = {};         ///< Moved: what came along

  /// The memory was in use before: rules, rows and debts are in it.
  bool inherits() const noexcept { return kind == Kind::Adopted || kind == Kind::Moved; }
};

Result<Birth> adopt_or_create(int directory_fd, const shm::SegmentOptions& options,
                              rule::Initial after_damage);

}  // namespace cutwater::server
