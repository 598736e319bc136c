// SPDX-License-Identifier: Apache-2.0
#include <cutwater/error.hpp>

namespace cutwater {

std::string_view name_of(Errc code) noexcept {
  switch (code) {
    case Errc::Ok: return "ok";
    case Errc::NoDaemon: return "no_daemon";
    case Errc::NotPermitted: return "not_permitted";
    case Errc::Timeout: return "timeout";
    case Errc::UnknownName: return "unknown_name";
    case Errc::KeyTooLong: return "key_too_long";
    case Errc::InvalidArgument: return "invalid_argument";
    case Errc::InvalidConfig: return "invalid_config";
    case Errc::LayoutMismatch: return "layout_mismatch";
    case Errc::ClockMismatch: return "clock_mismatch";
    case Errc::Damaged: return "damaged";
    case Errc::NoMemory: return "no_memory";
    case Errc::NotTmpfs: return "not_tmpfs";
    case Errc::NotOurs: return "not_ours";
    case Errc::Busy: return "busy";
    case Errc::Protocol: return "protocol";
    case Errc::System: return "system";
    case Errc::Unsupported: return "unsupported";
    case Errc::TooLate: return "too_late";
    case Errc::AlreadyUsed: return "already_used";
  }
  return "unknown";
}

}  // namespace cutwater
