// SPDX-License-Identifier: Apache-2.0
#include "ctl/exit_code.hpp"

namespace cutwater::ctl {

Exit exit_of(Errc code) noexcept {
  switch (code) {
    case Errc::Ok:
      return Exit::Ok;
    case Errc::NotPermitted:
    case Errc::NotOurs:
      return Exit::NotPermitted;
    case Errc::UnknownName:
      return Exit::NoSuchName;
    case Errc::KeyTooLong:
    case Errc::InvalidArgument:
      return Exit::Usage;
    case Errc::InvalidConfig:
    case Errc::LayoutMismatch:
    case Errc::ClockMismatch:
    case Errc::Damaged:
    case Errc::NotTmpfs:
      return Exit::Invalid;
    default:
      return Exit::NoConnection;
  }
}

}  // namespace cutwater::ctl
