// SPDX-License-Identifier: Apache-2.0
// What breakers and bulkheads that a pattern makes have in shared memory besides their own parts.
//
// The publisher gives a pattern an entry of its own and max-instances places beside it, each a
// whole breaker or bulkhead without a name. A PatternPlace says whose a place is. Of a bulkhead it
// lies in its head, of a breaker in the breaker memory.
//
// Who writes: anybody, by one swap each. Invariants, cited by tests:
//   I1 a name holds under one incarnation of its entry only: an image that raises the incarnation
//      makes the place free for another name, by the swap of `current` and nothing else
//   I2 creations of one pattern come one after the other, through the pattern's own `create` word;
//      anybody finishes one that was begun, so that a name never has two places
//   I3 each word of a name's text carries the incarnation it was written for and only goes forward:
//      whoever was stopped in the middle of writing an older name changes nothing
// A change of any offset raises kAbiMajor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shm/layout.hpp"

namespace cutwater::shm {

/// What an entry of the image is of: a name; a pattern, whose own entry is shared by the names that
/// find no place; a place that a name may get at first use.
inline constexpr std::uint8_t kNamedEntry = 0, kPatternEntry = 1, kInstanceEntry = 2;

/// Whose a place of a pattern is; three lines.
struct PatternPlace {
  Word16 identity;                   ///< lo = hash of the name, 0 = none yet; hi = incarnation
  /// Of the pattern's own: lo = creations so far:32 | place:32, hi = hash of the name that gets the
  /// place, 0 = no creation is under way.
  Word16 create;
  Word16 name[8];                    ///< lo = eight bytes of the name and its 0; hi = incarnation
  std::uint8_t pad[32];
};
static_assert(sizeof(PatternPlace) == 192 && std::is_standard_layout_v<PatternPlace>);
static_assert(offsetof(PatternPlace, name) == 32);

}  // namespace cutwater::shm
