// SPDX-License-Identifier: Apache-2.0
// Events in words for people, and the moment they happened by the wall clock of now.
// Thread safety: pure but for the two clocks. Allocates.
#pragma once
#include <cstdint>
#include <string>

#include "rule/breaker_rule.hpp"
#include "shm/event_log.hpp"
#include "shm/view.hpp"

namespace cutwater::rows {

/// `fraud CLOSED -> OPEN: failure rate`; empty for kinds whose text says it all.
std::string words_of(const shm::View& view, const shm::Event& event);

/// Name of the breaker or bulkhead an event is about, whole where it is still there (an event holds
/// 28 bytes of it); empty for events about something else.
std::string subject_of(const shm::View& view, const shm::Event& event);

/// `failure rate`, `its time was over`: why a breaker moved; empty for BreakerReason::None.
std::string words_of(rule::BreakerReason reason);

/// Nanoseconds to add to a stamp of the segment for the time since 1970. A stepped clock is its own
/// calendar: 0. Otherwise by the wall clock of now: old stamps move when that is set.
std::int64_t unix_offset_ns(const shm::View& view);

/// A stamp as milliseconds since 1970.
std::uint64_t unix_ms(std::int64_t stamp_ns, std::int64_t offset_ns);

}  // namespace cutwater::rows
