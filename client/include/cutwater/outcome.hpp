// SPDX-License-Identifier: Apache-2.0
// Outcome: how a call ended, told by its value or its exception.
//
// Values: outcome_of() knows std::error_code, Result and anything with has_value() or ok() and
// error(), and status types with ok() and code(); any other value is a success, an empty optional
// too. A program teaches it its own types by an overload in their namespace:
//
//   cutwater::Outcome outcome_of(const Reply& r) {
//     using cutwater::Outcome;
//     return r.status < 500 ? Outcome::success() : Outcome::failure("http-503");
//   }
//
// Exceptions: std::system_error goes by its code, std::bad_alloc is `local`, others are
// `exception`; outcomes() adds names of the program's own:
//
//   cutwater::outcomes().add("invalid-upi", [](const std::exception& e) {
//     return dynamic_cast<const InvalidUpi*>(&e) != nullptr;
//   });
//
// Nested exceptions (std::throw_with_nested) are walked to depth 16, and any cause may match. Which
// of several names decides: an added one before a built-in one; of those added the one that the
// breaker ignores, then one that it records, then the one added first. Asked over the socket, the
// one added first.
// Thread safety: values; outcomes() from any thread, also while calls end.
#pragma once
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <cutwater/export.hpp>
#include <cutwater/result.hpp>

namespace cutwater {

class Outcome {
 public:
  static Outcome success() noexcept { return Outcome(true, {}); }
  /// `outcome_class`: see Call::failed(); cut at 63 bytes.
  static Outcome failure(std::string_view outcome_class) noexcept {
    return Outcome(false, outcome_class);
  }
  bool is_success() const noexcept { return success_; }
  std::string_view failure_class() const noexcept { return {class_, length_}; }

 private:
  Outcome(bool success, std::string_view name) noexcept
      : success_(success), length_(name.size() < sizeof class_ ? name.size() : sizeof class_) {
    if (length_ != 0) std::memcpy(class_, name.data(), length_);
  }
  bool success_;
  std::size_t length_;
  char class_[63] = {};
};

/// Names of the program's own, for exceptions and error codes: of this process and all its clients.
/// There is one; this is a handle to it. Nothing is ever taken away again; a forked child has those
/// of its parent.
class CUTWATER_EXPORT Outcomes {
 public:
  using Test = std::function<bool(const std::exception&)>;
  static constexpr std::size_t kMax = 63;    ///< tests of one process

  /// What this test says yes to is of class `name`: 1..63 bytes, one of the program's own or a
  /// built-in one; several tests may have one name. The test is called while an exception is being
  /// handled, by any thread; one that throws says no. InvalidArgument: no name, a longer one, or no
  /// test. Busy: there are kMax already.
  Result<void> add(std::string_view name, Test test);
  /// For std::system_error and for values of std::error_code: exactly this code, ...
  Result<void> add(std::string_view name, std::error_code code);
  /// ... all that are equivalent to this condition (std::errc::...), ...
  Result<void> add(std::string_view name, std::error_condition condition);
  /// ... all of this category, which lives as long as the process.
  Result<void> add(std::string_view name, const std::error_category& category);

  std::size_t size() const noexcept;
};
inline Outcomes outcomes() noexcept { return {}; }

/// The class of an error: an added one, else "timeout", "connect", "reset", "local", "cancelled",
/// else "errno:NAME" for the system's categories, "exception" for others.
CUTWATER_EXPORT Outcome outcome_of(const std::error_code& code) noexcept;

namespace detail {
/// The class of a status by its number: 400..599 "http-NNN", 1..16 "grpc:NAME", else "result".
CUTWATER_EXPORT Outcome outcome_of_status(long long code) noexcept;

template <class Error>
Outcome outcome_of_error(const Error& error) noexcept {
  if constexpr (std::convertible_to<const Error&, std::error_code>) {
    const Outcome outcome = outcome_of(std::error_code(error));
    return outcome.is_success() ? Outcome::failure("result") : outcome;
  } else {
    return Outcome::failure("result");
  }
}
template <class Code>
Outcome outcome_of_code(const Code& code) noexcept {
  if constexpr (std::is_enum_v<Code> && !std::is_error_code_enum_v<Code>) {
    return outcome_of_status(static_cast<long long>(code));
  } else if constexpr (std::is_integral_v<Code>) {
    return outcome_of_status(static_cast<long long>(code));
  } else {
    return outcome_of_error(code);
  }
}
}  // namespace detail

template <class T>
Outcome outcome_of(const T& value) {
  if constexpr (requires { { value.has_value() } -> std::convertible_to<bool>; value.error(); }) {
    return value.has_value() ? Outcome::success() : detail::outcome_of_error(value.error());
  } else if constexpr (requires { { value.ok() } -> std::convertible_to<bool>; value.code(); }) {
    return value.ok() ? Outcome::success() : detail::outcome_of_code(value.code());
  } else if constexpr (requires { { value.ok() } -> std::convertible_to<bool>; value.error(); }) {
    return value.ok() ? Outcome::success() : detail::outcome_of_error(value.error());
  } else {
    return Outcome::success();
  }
}

namespace detail {
/// A result that is not there yet.
template <class T>
inline constexpr bool kIsLater =
    requires(T value) { value.wait(); value.get(); } ||
    requires(T value) { value.await_ready(); } ||
    requires(T value) { value.operator co_await(); } ||
    requires { typename std::coroutine_traits<T>::promise_type; };
}  // namespace detail

}  // namespace cutwater
