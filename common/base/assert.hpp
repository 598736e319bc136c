// SPDX-License-Identifier: Apache-2.0
// CUTWATER_ASSERT: for our own mistakes; on in every build.
// Never for what a peer, a file or the segment can cause: those return an Errc or take the
// conservative branch.
#pragma once

namespace cutwater {
/// Prints file, line and expression to stderr and ends the process by abort().
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;
}  // namespace cutwater

#define CUTWATER_ASSERT(expression)        \
  (static_cast<bool>(expression) ? void(0) \
                                 : ::cutwater::assertion_failed(#expression, __FILE__, __LINE__))
