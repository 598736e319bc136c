// SPDX-License-Identifier: Apache-2.0
// Which breakers and bulkheads there are, by name, before anything else is read of them: what a
// READ of many thousands goes by, page after page (rows/breaker_rows.hpp, rows/bulkhead_rows.hpp).
//
// Never writes a byte. Process safety: beside any daemon and clients. Thread safety: one thread.
// Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/pattern_place.hpp"

namespace cutwater::rows {

/// One of them, as it was when it was listed.
struct Named {
  std::string name;
  std::uint32_t index = 0;
  std::uint32_t incarnation = 0;     ///< another one now: that name is gone
};

/// READ's option `not_well` (true: NotWell, else All). NotWell leaves out what there is nothing to
/// say of: breakers that are simply CLOSED for everybody, bulkheads with room and nobody in line.
enum class Which : std::uint8_t { All, NotWell };

/// In order of their names; nothing of any size is read of them.
std::vector<Named> breakers_by_name(const shm::View& view, Which which = Which::All);
std::vector<Named> bulkheads_by_name(const shm::View& view, Which which = Which::All);
/// Whether all max-instances of this pattern are in use: further names share its own entry.
bool breaker_pattern_is_full(const shm::View& view, std::string_view pattern);
bool bulkhead_pattern_is_full(const shm::View& view, std::string_view pattern);
/// Only the names, to tell near ones.
std::vector<std::string> names_of(const std::vector<Named>& all);

}  // namespace cutwater::rows
