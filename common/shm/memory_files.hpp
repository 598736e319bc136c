// SPDX-License-Identifier: Apache-2.0
// The `*.next` files that a memory in the making lies in: made with all their pages, or removed.
// Internal to shm/segment and shm/supersede, under the directory's lock.
// Crash: what a killed maker leaves is removed by the next one. Thread safety: one thread.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include <cutwater/result.hpp>

#include "shm/directory.hpp"
#include "shm/layout.hpp"

namespace cutwater::shm {

/// "rules.next", "state.next", "stats.next".
std::string next_name(FileKind file);

/// Makes the three files, empty, with every page of `lengths` (bytes, by FileKind) reserved. What
/// was there by these names goes first. NoMemory names needed and available bytes, System has the
/// kernel's message; then none of them is left.
Result<std::array<UniqueFd, 3>> make_next_files(int directory_fd,
                                                const std::array<std::uint64_t, 3>& lengths);

void remove_next_files(int directory_fd) noexcept;

}  // namespace cutwater::shm
