// SPDX-License-Identifier: Apache-2.0
// Errc and Error: a thing someone must repair or retry. Each
// value names its cause; the text of an Error names the input, the place and the remedy, in one
// sentence that can be shown to an operator as it is. Thread safety: values; no global state.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include <cutwater/export.hpp>

namespace cutwater {

/// Why a call could not be carried out. Numbers are stable.
enum class Errc : int {
  Ok = 0,
  NoDaemon = 1,      ///< nothing answers at the address (connect failed, or closed before WELCOME)
  NotPermitted = 2,  ///< the peer refused us: not in the access list, or the right is missing
  Timeout = 3,       ///< the daemon did not answer within the deadline
  UnknownName = 4,   ///< no limit of that name; the text lists the nearest ones
  KeyTooLong = 5,    ///< a key over 4096 bytes; nothing was charged
  InvalidArgument = 6,  ///< a value outside its documented range
  InvalidConfig = 7,   ///< the configuration was refused; the text has every error with line:column
  LayoutMismatch = 8,  ///< library and memory were built with different layouts
  ClockMismatch =
      9,  ///< the process lives in another time namespace, or its clock differs by 1 s or more
  Damaged = 10,      ///< a memory file is truncated, foreign, older, or scribbled over
  NoMemory = 11,     ///< not enough room on the tmpfs; the text names needed and available bytes
  NotTmpfs = 12,     ///< the memory directory is not on a tmpfs
  NotOurs = 13,      ///< a directory or file belongs to somebody else, or is a link
  Busy = 14,         ///< another daemon holds the lock of this memory directory, or a table is full
  Protocol = 15,     ///< the peer sent something that is no frame of ours
  System = 16,       ///< the operating system refused; the text has its message
  Unsupported = 17,  ///< known, but not in this build or on this connection
  TooLate = 18,      ///< undo: somebody charged after the receipt; the tokens stay spent
  AlreadyUsed = 19,  ///< undo: the receipt was spent before
};

/// Short stable word of a code, e.g. "key_too_long".
CUTWATER_EXPORT std::string_view name_of(Errc code) noexcept;

class Error {
 public:
  Error() = default;
  Error(Errc code, std::string text) : code_(code), text_(std::move(text)) {}

  Errc code() const noexcept { return code_; }
  const std::string& text() const noexcept { return text_; }

 private:
  Errc code_ = Errc::Ok;
  std::string text_;
};

}  // namespace cutwater
