// SPDX-License-Identifier: Apache-2.0
// Ran: what `run(fn)` of a breaker or a bulkhead gives: the function's value, or why it was not
// called. Exceptions of the function pass through unchanged.
//
//   auto verdict = fraud.run(ask);
//   if (!verdict) return busy(verdict.refusal().retry_after());
//
// Thread safety: a value.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

namespace cutwater {

template <class T, class Refusal>
class [[nodiscard]] Ran {
 public:
  explicit Ran(Refusal refusal) : refusal_(refusal) {}
  explicit Ran(T value) : value_(std::move(value)) {}
  explicit operator bool() const noexcept { return value_.has_value(); }
  bool ok() const noexcept { return value_.has_value(); }
  T& value() & { return value_.value(); }
  T&& value() && { return std::move(value_).value(); }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }
  /// Of a refused one; of one that ran it means nothing.
  const Refusal& refusal() const noexcept { return refusal_; }
  /// The value, or what `fallback` makes of the refusal.
  template <class Fallback>
  T or_else(Fallback&& fallback) && {
    if (ok()) return std::move(*value_);
    if constexpr (std::is_invocable_v<Fallback, const Refusal&>) {
      return std::forward<Fallback>(fallback)(refusal_);
    } else {
      return std::forward<Fallback>(fallback)();
    }
  }

 private:
  std::optional<T> value_;
  Refusal refusal_;
};

template <class Refusal>
class [[nodiscard]] Ran<void, Refusal> {
 public:
  Ran() : ok_(true) {}
  explicit Ran(Refusal refusal) : refusal_(refusal) {}
  explicit operator bool() const noexcept { return ok_; }
  bool ok() const noexcept { return ok_; }
  const Refusal& refusal() const noexcept { return refusal_; }

 private:
  bool ok_ = false;
  Refusal refusal_;
};

}  // namespace cutwater
