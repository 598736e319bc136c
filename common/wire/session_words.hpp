// SPDX-License-Identifier: Apache-2.0
// Words that both session machines use. Thread safety: values.
#pragma once
#include <cstdint>
#include <string>

#include "wire/frame.hpp"

namespace cutwater::wire {

/// The two clocks at one moment. `now_ns` is monotonic and rules deadlines; `clock_ns` is the
/// segment's clock and is told to the client (PONG). They are equal unless the clock is stepped.
struct Moment {
  std::uint64_t now_ns = 0;
  std::uint64_t clock_ns = 0;
};

/// Put these bytes into the connection's queue. `with_descriptors` (only ever a WELCOME of mode
/// Map or MapRead): the descriptors ride on the first byte, in the order of Welcome::descriptors.
struct SendBytes {
  std::string bytes;
  bool with_descriptors = false;
};

/// Close the connection after everything queued so far went out (or could not).
struct CloseConnection {
  std::string why;  ///< for the log: one phrase, no keys
};

enum class SessionState { New, Ready, Draining, Closed };

/// What may be unanswered at once. A request counts at least one item; a single one is always
/// admitted when nothing else waits, so a large one is not refused for ever.
struct Credit {
  std::size_t items_max = 0;
  std::size_t bytes_max = 0;
  std::size_t items = 0;  ///< unanswered now
  std::size_t bytes = 0;

  bool admits(std::size_t more_items, std::size_t more_bytes) const noexcept {
    return items == 0 || (items + more_items <= items_max && bytes + more_bytes <= bytes_max);
  }
  void take(std::size_t more_items, std::size_t more_bytes) noexcept {
    items += more_items;
    bytes += more_bytes;
  }
  void give_back(std::size_t old_items, std::size_t old_bytes) noexcept {
    items -= old_items;
    bytes -= old_bytes;
  }
  bool half_free() const noexcept { return items <= items_max / 2 && bytes <= bytes_max / 2; }
  void clear() noexcept { items = bytes = 0; }
};

}  // namespace cutwater::wire
