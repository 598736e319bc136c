// SPDX-License-Identifier: Apache-2.0
// How the coroutines of the loop end. asio::detached forgets an exception that leaves one (no
// memory, say), and the loop goes on without it: a daemon that accepts nobody, or reaps and sweeps
// no more, and answers as if nothing were. Half a daemon is worse than none: the exception leaves
// io_context::run(), the process ends with a line that says so, and the next one adopts the memory.
// Thread safety: a value without state.
#pragma once
#include <exception>

namespace cutwater::server {

/// For asio::co_spawn().
inline constexpr auto kRethrow = [](std::exception_ptr thrown) {
  if (thrown) std::rethrow_exception(thrown);
};

}  // namespace cutwater::server
