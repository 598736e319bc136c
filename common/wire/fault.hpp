// SPDX-License-Identifier: Apache-2.0
// What is wrong with something a peer sent, ready to be put into an ERROR message.
// A Fault is data about the peer, never about us: nothing here is logged or thrown by itself.
// Thread safety: values.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cutwater::wire {

/// Code of an ERROR message. A number is never given another meaning.
enum class ErrorCode : std::uint16_t {
  BadFrame = 1,         ///< no frame of ours, or no msgpack; the connection is closed
  Version = 2,          ///< no common version; both ranges are in the text; closed
  Unsupported = 3,      ///< unknown type, or one that only the daemon may send; the session stays
  InvalidArgument = 4,  ///< `field` says where, the text what was expected; nothing of it was done
  NotNow = 5,           ///< not allowed in this state, or a request id that does not grow
  NotPermitted = 6,     ///< a right is missing, or the peer could not prove who it is
  Internal = 7,         ///< our fault: out of memory, or an answer that fits no frame; nothing done
  TooMany = 8,          ///< too many sessions of this daemon, uid or identity; closed
};

/// Stable word of a code, e.g. "bad_frame"; "unknown" for a number this version does not know.
std::string_view name_of(ErrorCode code) noexcept;

/// One mistake of a peer. `field` is the path inside the payload, such as `items[0].cost` or
/// `layout.minor`; empty when the mistake is not in a field.
struct Fault {
  ErrorCode code = ErrorCode::Internal;
  std::string field;
  std::string text;

  friend bool operator==(const Fault&, const Fault&) = default;
};

/// A decoded T, or the Fault that kept it from being decoded.
/// Calling value() on a fault or fault() on a value is a mistake of ours and ends the process.
template <class T>
class [[nodiscard]] Decoded {
 public:
  Decoded(T value) : content_(std::move(value)) {}      // NOLINT: implicit on purpose
  Decoded(Fault fault) : content_(std::move(fault)) {}  // NOLINT: implicit on purpose

  bool ok() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() { require(ok()); return *std::get_if<0>(&content_); }
  const T& value() const { require(ok()); return *std::get_if<0>(&content_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Fault& fault() const { require(!ok()); return *std::get_if<1>(&content_); }

 private:
  static void require(bool condition) { if (!condition) std::abort(); }

  std::variant<T, Fault> content_;
};

}  // namespace cutwater::wire
