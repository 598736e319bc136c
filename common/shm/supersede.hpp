// SPDX-License-Identifier: Apache-2.0
// One memory takes another's place, when `capacity` was changed: nobody's debts are forgotten and
// at no moment do two memories decide.
//
//   1 the new one is built as `*.next`: same secret, epoch, clock, first groups; a uuid of its own
//   2 the old one's control page names that uuid and gets the superseded bit: whoever decides in
//     it stops, and attaches anew or does what `if-absent` says (guard SupersededFirst)
//   3 what is owed is copied (shm/memory_copy.hpp); what is given back from 2 on is given back in
//     the new one as well, see overtaken()
//   4 `state`, `stats`, `rules` are renamed, in this order (guard RulesRenamedLast)
//   5 the caller offers the new one
//
// Killed before 2: the old memory goes on, `*.next` is removed. Between 2 and the first rename: the
// old memory is found superseded, and all is done again into fresh files; nobody has seen the first
// ones (guard CopyFromTheBeginning). Between renames: `state` has the uuid that the superseded
// `rules` names; finish_renames() goes on, and all is copied by then. A memory that was superseded
// never decides again.
// Slack: one decision for each thread that stood between its look at `current` and its swap.
// Room: both memories at once. Thread safety: the owner, one thread, under the directory's lock.
#pragma once
#include "base/guard.hpp"
#include "shm/memory_copy.hpp"
#include "shm/segment.hpp"

namespace cutwater::shm {

/// What a memory that takes the place of `from` will have when `wanted` is asked for: its groups
/// are a whole multiple, at least one, of those the first one began with. Compare it with
/// Segment::capacity() to see whether anything is to be done.
Capacity successor_capacity(const View& from, const Capacity& wanted) noexcept;

struct Succession {
  Segment segment;                     ///< the new memory, named, as Owner
  CopyReport copied;
};

/// Steps 1 to 4. `from`: mapped as Owner, its rules whole, superseded or not. `options`: the clock
/// is that of `from`. InvalidArgument: something in use does not fit (names the number to set);
/// NoMemory, System: no room. In these cases nothing was changed and `from` decides as before.
Result<Succession> supersede(int directory_fd, const Segment& from, const SegmentOptions& options);

/// Before anything else is done with the files: ends the renames that a killed supersede() had
/// begun. Does nothing when there are none. System: a file cannot be renamed.
Result<void> finish_renames(int directory_fd);

/// True when `rules` there is of a memory that another one was to replace.
bool is_superseded(const View& view) noexcept;

/// The same after a swap that gave something back. False: the copy has what it left. The owner
/// sets the bit (step 2) before it reads any cell (step 3), we swap before we look: of the two one
/// sees the other. True: the copy may have been made before our swap, and the same value is to be
/// given back in the successor too; where it is not there any more, that swap fails.
inline bool overtaken(const View& view) noexcept {
  // seq_cst: pairs with the bit's, as said above.
  const std::uint64_t now = __atomic_load_n(&view.rules_control->current, __ATOMIC_SEQ_CST);
  return (now & kCurrentSupersededBit) != 0 && guarded(Guard::GivenBackInBoth);
}

}  // namespace cutwater::shm
