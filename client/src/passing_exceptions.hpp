// SPDX-License-Identifier: Apache-2.0
// std::uncaught_exceptions() with one access to thread-local storage instead of two calls: each
// Call remembers it, so it is asked at each grant.
//
// The number lies where the C++ ABI says (Itanium C++ ABI, exception handling 2.2.2): the second
// member of what __cxa_get_globals() returns, in the thread's own memory as long as it lives.
// Thread safety: a thread sees its own.
#pragma once

namespace cutwater::detail {

// initial-exec: one instruction instead of a call; 8 bytes, so the library can be loaded late too.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit const unsigned* passing_count;

/// Finds it for this thread. Rare.
const unsigned* find_passing_count() noexcept;

/// How many exceptions pass in this thread right now.
[[gnu::always_inline]] inline int passing_exceptions() noexcept {
  const unsigned* const count = passing_count;
  return static_cast<int>(*(count != nullptr ? count : find_passing_count()));
}

}  // namespace cutwater::detail
