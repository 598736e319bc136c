// SPDX-License-Identifier: Apache-2.0
#include "src/passing_exceptions.hpp"

#include <cxxabi.h>

namespace cutwater::detail {
namespace {

/// As the ABI lays it out; <cxxabi.h> only names the type.
struct Globals {
  void* caught;
  unsigned passing;
};

}  // namespace

thread_local constinit const unsigned* passing_count = nullptr;

const unsigned* find_passing_count() noexcept {
  passing_count = &reinterpret_cast<const Globals*>(abi::__cxa_get_globals())->passing;
  return passing_count;
}

}  // namespace cutwater::detail
