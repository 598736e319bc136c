// SPDX-License-Identifier: Apache-2.0
// Result<T>: how everything in cutwater fails. It holds either
// a value or an Error; nothing of ours throws.
//
//   auto client = cutwater::Client::open();
//   if (!client) { std::cerr << client.error().text() << '\n'; return 1; }
//   client->limit("api-per-user");
//
// A refusal of a limit is an answer, not an error: it comes back as a Decision.
// Thread safety: as a value type; distinct objects are independent.
#pragma once
#include <cstdlib>
#include <optional>
#include <utility>

#include <cutwater/error.hpp>

namespace cutwater {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                    // NOLINT: implicit on purpose
  Result(Error error) : error_(std::move(error)) {}                // NOLINT: implicit on purpose

  /// True when there is a value.
  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  /// The value. Calling it on an error ends the process: check first.
  T& value() & { require(); return *value_; }
  const T& value() const& { require(); return *value_; }
  T&& value() && { require(); return std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The error; an Error with code Errc::Ok when there is a value.
  const Error& error() const noexcept { return error_; }

 private:
  void require() const { if (!value_) std::abort(); }

  std::optional<T> value_;
  Error error_;
};

/// What can fail without producing anything.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}                // NOLINT: implicit on purpose
  bool ok() const noexcept { return error_.code() == Errc::Ok; }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace cutwater
