// SPDX-License-Identifier: Apache-2.0
// How many keys of each limit are in debt now, by one look over the whole bucket table; for the
// words of a dry reload. A limit of several windows: the largest number over them, since a key may
// be in debt in one and full in another. Not counted in tables of more than kMaxSlots: the loop
// would stand still. Writes nothing. Thread safety: any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "shm/view.hpp"

namespace cutwater::server {

inline constexpr std::uint64_t kMaxSlotsCounted = std::uint64_t{1} << 20;

/// True when this slot holds a bucket that is in debt by the rules of `current`.
bool in_debt(const shm::View& view, std::uint64_t current, const Word16& slot, std::int64_t now);

/// By limit index; nothing when the table is too large.
std::optional<std::vector<std::uint64_t>> count_debts(const shm::View& view);

}  // namespace cutwater::server
