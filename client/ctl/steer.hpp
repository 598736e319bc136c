// SPDX-License-Identifier: Apache-2.0
// STEER from the command line: one question to the daemon, its verdict as text and exit code.
// An operator's act is never carried out by reading or writing memory: without a daemon it fails.
// Thread safety: one thread.
#pragma once
#include <string>

#include "ctl/exit_code.hpp"
#include "ctl/settings.hpp"
#include "wire/message.hpp"

namespace cutwater::ctl {

/// Sends it and prints the daemon's text, or `done` when it said nothing, and the id of an act that
/// stands by it. As JSON: done, text, generation; act where one stands; saved (saved, pending,
/// failed) where a reboot matters. In force and not saved is still Exit::Ok. A refusal goes to
/// standard error with its exit code (ctl/exit_code.hpp). `patience`: how long the daemon may take;
/// after that it may still carry it out, and the error says so.
/// `remark`: said behind it when it was done, `note` as JSON.
Exit steer(const Settings& settings, const wire::Steer& message, const std::string& done,
           Nanos patience, const std::string& remark = {});
inline Exit steer(const Settings& settings, const wire::Steer& message, const std::string& done) {
  return steer(settings, message, done, settings.timeout);
}

}  // namespace cutwater::ctl
