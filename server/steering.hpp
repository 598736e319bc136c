// SPDX-License-Identifier: Apache-2.0
// Carries out STEER: what an operator changes. Rights were checked by the session; every act is an
// event in the memory.
//
//   config.reload {dry}        the verdict with every error: code 0 or 4
//   limit.reset name key       the key's bucket is full again: code 0; 6: no such limit
//   clock.step {to_ns}         stepped segments only, never backwards: else code 5. The text of the
//                              answer is the clock's value, in decimal
//   anything else              code 4, naming the verbs there are
// Thread safety: the loop's thread.
#pragma once
#include <functional>

#include "log.hpp"
#include "memory.hpp"
#include "reload.hpp"
#include "wire/message.hpp"

namespace cutwater::server {

class Steering {
 public:
  using Answer = std::function<void(wire::SteerAnswer)>;

  Steering(Memory& memory, Reloader& reloader, Log& log)
      : memory_(memory), reloader_(reloader), log_(log) {}

  /// `answer` is called exactly once, now or from a later turn of the loop. `who`: for the log.
  void carry_out(const wire::Steer& asked, const std::string& who, Answer answer);

 private:
  wire::SteerAnswer reset(const wire::Steer& asked, const std::string& who);
  wire::SteerAnswer step_clock(const wire::Steer& asked);
  wire::SteerAnswer say(std::uint16_t code, std::string text) const;

  Memory& memory_;
  Reloader& reloader_;
  Log& log_;
};

}  // namespace cutwater::server
