// SPDX-License-Identifier: Apache-2.0
// Classes of outcomes: of errors of the system, and of exceptions with their causes.
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "src/breaker_record.hpp"

namespace cutwater::detail {
namespace {

constexpr int kCauses = 16;

Outcome outcome_of_one(const std::exception& thrown) noexcept {
  if (const auto* system = dynamic_cast<const std::system_error*>(&thrown)) {
    return outcome_of(system->code());
  }
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return Outcome::failure("local");
  return Outcome::failure("exception");
}

/// The first cause, from the outside in, that has a class of its own.
Outcome outcome_of_causes(const std::exception& thrown, int depth) noexcept {
  const Outcome own = outcome_of_one(thrown);
  if (own.failure_class() != "exception" || depth >= kCauses) return own;
  try {
    std::rethrow_if_nested(thrown);
  } catch (const std::exception& cause) {
    return outcome_of_causes(cause, depth + 1);
  } catch (...) {
    return own;
  }
  return own;
}

}  // namespace

Outcome outcome_of_current_exception() noexcept {
  try {
    throw;
  } catch (const std::exception& thrown) {
    return outcome_of_causes(thrown, 0);
  } catch (...) {
    return Outcome::failure("exception");
  }
}

}  // namespace cutwater::detail

namespace cutwater {

Outcome outcome_of(const std::error_code& code) noexcept {
  if (!code) return Outcome::success();
  const auto is = [&](std::errc condition) { return code == condition; };
  if (is(std::errc::timed_out)) return Outcome::failure("timeout");
  if (is(std::errc::connection_refused) || is(std::errc::host_unreachable) ||
      is(std::errc::network_unreachable) || is(std::errc::network_down)) {
    return Outcome::failure("connect");
  }
  if (is(std::errc::connection_reset) || is(std::errc::broken_pipe) ||
      is(std::errc::connection_aborted)) {
    return Outcome::failure("reset");
  }
  if (is(std::errc::operation_canceled)) return Outcome::failure("cancelled");
  if (is(std::errc::too_many_files_open) || is(std::errc::too_many_files_open_in_system) ||
      is(std::errc::not_enough_memory) || is(std::errc::no_buffer_space) ||
      is(std::errc::address_not_available)) {
    return Outcome::failure("local");
  }
  if (code.category() == std::system_category() || code.category() == std::generic_category()) {
    char name[32] = "errno:";
    const std::string number = std::to_string(code.value());
    std::strncat(name, number.c_str(), sizeof name - 7);
    const char* const word = strerrorname_np(code.value());
    if (word != nullptr) {
      name[6] = 0;
      std::strncat(name, word, sizeof name - 7);
    }
    return Outcome::failure(name);
  }
  return Outcome::failure("exception");
}

}  // namespace cutwater
