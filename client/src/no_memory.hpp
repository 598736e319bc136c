// SPDX-License-Identifier: Apache-2.0
// The one rule for a process without memory (client/README.md): what returns a Result answers
// Errc::NoMemory, and keeps nothing; of a refund(), which had no memory for the words of its error,
// the tokens stay spent. Thread safety: that of the call.
#pragma once
#include <new>
#include <utility>

#include <cutwater/result.hpp>

namespace cutwater::detail {

/// Short enough to lie in a string without an allocation.
inline constexpr char kNoMemoryText[] = "no memory left";

/// What `call` returns, a Result; NoMemory in place of std::bad_alloc.
template <class Call>
auto or_no_memory(Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return Error{Errc::NoMemory, kNoMemoryText};
  }
}

}  // namespace cutwater::detail
