// SPDX-License-Identifier: Apache-2.0
// Classes of outcomes: of errors of the system, and of exceptions with their causes.
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <system_error>

#include "src/breaker_record.hpp"
#include "src/no_memory.hpp"

namespace cutwater {
namespace {

using detail::OutcomeNames;

constexpr int kCauses = 16;

/// One test of the program's. Never freed: others may be using it.
struct Added {
  std::string name;
  Outcomes::Test test;                           ///< empty: by `matches`
  std::function<bool(const std::error_code&)> matches;
};

/// In the order they were added; filled from the front, so the first empty place ends it.
std::atomic<const Added*> added[Outcomes::kMax];

bool says_yes(const Added& one, const std::exception& thrown) noexcept {
  try {
    if (one.test) return one.test(thrown);
    const auto* system = dynamic_cast<const std::system_error*>(&thrown);
    return system != nullptr && one.matches(system->code());
  } catch (...) {
    return false;
  }
}

/// Bit i: test i says yes to one of the causes.
using Matches = std::uint64_t;

Matches matches_of(const std::exception& thrown) noexcept {
  Matches found = 0;
  for (std::size_t i = 0; i < Outcomes::kMax; ++i) {
    const Added* const one = added[i].load(std::memory_order_acquire);
    if (one == nullptr) break;
    if (says_yes(*one, thrown)) found |= Matches{1} << i;
  }
  return found;
}

Outcome built_in(const std::error_code& code) noexcept;

Outcome outcome_of_one(const std::exception& thrown) noexcept {
  if (const auto* system = dynamic_cast<const std::system_error*>(&thrown)) {
    const Outcome outcome = built_in(system->code());
    return outcome.is_success() ? Outcome::failure("exception") : outcome;
  }
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return Outcome::failure("local");
  return Outcome::failure("exception");
}

/// From the outside in: all tests that a cause passes, and the first class of its own.
void walk(const std::exception& thrown, int depth, Matches& found, Outcome& own) noexcept {
  found |= matches_of(thrown);
  if (own.failure_class() == "exception") own = outcome_of_one(thrown);
  const auto* nested = dynamic_cast<const std::nested_exception*>(&thrown);
  if (nested == nullptr || nested->nested_ptr() == nullptr || depth >= kCauses) return;
  try {
    nested->rethrow_nested();
  } catch (const std::exception& cause) {
    walk(cause, depth + 1, found, own);
  } catch (...) {
  }
}

Result<void> keep(std::string_view name, Added one) {
  if (name.empty() || name.size() > 63) {
    return Error{Errc::InvalidArgument, "outcomes.add: a name has 1..63 bytes, this one " +
                                            std::to_string(name.size())};
  }
  one.name = name;
  const auto* const kept = new Added(std::move(one));
  for (std::atomic<const Added*>& place : added) {
    const Added* free = nullptr;
    // release: who finds it finds it whole.
    if (place.compare_exchange_strong(free, kept, std::memory_order_release,
                                      std::memory_order_relaxed)) {
      return {};
    }
  }
  delete kept;
  return Error{Errc::Busy, "outcomes.add: there are " + std::to_string(Outcomes::kMax) +
                               " tests already; let one test answer for several types"};
}

}  // namespace

namespace detail {

OutcomeNames names_of_current_exception() noexcept {
  OutcomeNames names;
  Matches found = 0;
  try {
    throw;
  } catch (const std::exception& thrown) {
    walk(thrown, 0, found, names.built_in);
  } catch (...) {
  }
  for (std::size_t i = 0; i < Outcomes::kMax; ++i) {
    if ((found >> i & 1) != 0) names.own[names.count++] = added[i].load()->name;
  }
  return names;
}

Outcome outcome_of_status(long long code) noexcept {
  static constexpr std::string_view kGrpc[] = {
      "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
      "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
      "UNAUTHENTICATED"};
  char name[32] = "http-";
  if (code >= 400 && code <= 599) {
    std::to_chars(name + 5, name + 8, code);
    return Outcome::failure({name, 8});
  }
  if (code < 1 || code > 16) return Outcome::failure("result");
  const std::string_view word = kGrpc[code];
  std::memcpy(name, "grpc:", 5);
  std::memcpy(name + 5, word.data(), word.size());
  return Outcome::failure({name, 5 + word.size()});
}

}  // namespace detail

Result<void> Outcomes::add(std::string_view name, Test test) {
  return detail::or_no_memory([&]() -> Result<void> {
    if (!test) return Error{Errc::InvalidArgument, "outcomes.add: there is no test"};
    return keep(name, {{}, std::move(test), {}});
  });
}
Result<void> Outcomes::add(std::string_view name, std::error_code code) {
  return detail::or_no_memory([&] {
    return keep(name, {{}, {}, [code](const std::error_code& c) { return c == code; }});
  });
}
Result<void> Outcomes::add(std::string_view name, std::error_condition condition) {
  return detail::or_no_memory([&] {
    return keep(name, {{}, {}, [condition](const std::error_code& c) { return c == condition; }});
  });
}
Result<void> Outcomes::add(std::string_view name, const std::error_category& category) {
  return detail::or_no_memory([&] {
    return keep(name, {{}, {}, [&category](const std::error_code& c) {
                         return c.category() == category && static_cast<bool>(c);
                       }});
  });
}

std::size_t Outcomes::size() const noexcept {
  std::size_t n = 0;
  while (n < kMax && added[n].load(std::memory_order_relaxed) != nullptr) ++n;
  return n;
}

Outcome outcome_of(const std::error_code& code) noexcept {
  for (const std::atomic<const Added*>& place : added) {
    const Added* const one = place.load(std::memory_order_acquire);
    if (one == nullptr || !code) break;
    if (one->matches && one->matches(code)) return Outcome::failure(one->name);
  }
  return built_in(code);
}

namespace {

Outcome built_in(const std::error_code& code) noexcept {
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

}  // namespace
}  // namespace cutwater
