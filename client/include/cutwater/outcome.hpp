// SPDX-License-Identifier: Apache-2.0
// Outcome: how a call ended, told by its value. outcome_of() knows std::error_code, Result,
// anything with has_value() and error(), and status types with ok() and code(); any other value is
// a success. A program teaches it its own types by an overload in their namespace:
//
//   cutwater::Outcome outcome_of(const Reply& r) {
//     using cutwater::Outcome;
//     return r.status < 500 ? Outcome::success() : Outcome::failure("http-503");
//   }
// Thread safety: values.
#pragma once
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <future>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <cutwater/export.hpp>

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

/// The class of an error: "timeout", "connect", "reset", "local", else "errno:NUMBER" for the
/// system's categories, "exception" for others.
CUTWATER_EXPORT Outcome outcome_of(const std::error_code& code) noexcept;

template <class T>
Outcome outcome_of(const T& value) {
  if constexpr (requires { { value.has_value() } -> std::convertible_to<bool>; value.error(); }) {
    if (value.has_value()) return Outcome::success();
    if constexpr (std::convertible_to<decltype(value.error()), std::error_code>) {
      return outcome_of(std::error_code(value.error()));
    } else {
      return Outcome::failure("result");
    }
  } else if constexpr (requires { { value.ok() } -> std::convertible_to<bool>; value.error(); } ||
                       requires { { value.ok() } -> std::convertible_to<bool>; value.code(); }) {
    return value.ok() ? Outcome::success() : Outcome::failure("result");
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
