// SPDX-License-Identifier: Apache-2.0
// RefusalRoom: room for a refusal in an answer that is mostly a grant. Until make() nothing is
// constructed there, and what is not there is not copied. For Entered and Placed; not for programs.
//
// `Refusal` is copied byte by byte, needs no destructor, and its default means nothing.
// Errors: none. Thread safety: a value.
#pragma once
#include <memory>
#include <type_traits>

namespace cutwater::detail {

template <class Refusal>
class RefusalRoom {
 public:
  RefusalRoom() noexcept {}
  RefusalRoom(const RefusalRoom& other) noexcept { *this = other; }
  RefusalRoom& operator=(const RefusalRoom& other) noexcept {
    there_ = other.there_;
    if (there_) refusal_ = other.refusal_;
    return *this;
  }
  ~RefusalRoom() = default;

  /// The refusal, a default one until then.
  Refusal& make() noexcept {
    if (!there_) std::construct_at(&refusal_);
    there_ = true;
    return refusal_;
  }
  /// What was made, else one that means nothing.
  const Refusal& get() const noexcept {
    static_assert(std::is_trivially_copyable_v<Refusal> &&
                  std::is_trivially_destructible_v<Refusal>);
    static const Refusal nothing;
    return there_ ? refusal_ : nothing;
  }

 private:
  bool there_ = false;
  union {
    Refusal refusal_;
  };
};

}  // namespace cutwater::detail
