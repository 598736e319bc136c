// SPDX-License-Identifier: Apache-2.0
// Carries out STEER: what an operator changes. Rights were checked by the session; every act is an
// event in the memory.
//
//   config.reload {dry}        the verdict with every error: code 0 or 4
//   limit.reset name key       the key's bucket is full again
//   limit.drain name key       the tokens there now are spent; a debt stays a debt
//   limit.credit name key {n}  n tokens more, at most a full bucket; outside P1
//   limit.ban, unban, override, shadow, journal.undo       acts that last: acts.hpp
//   breaker.force-open, disable, metrics-only, auto, reset (with breaker. in front)  name, note;
//                              for_ns of the first three: acts.hpp
//   breaker.transition name {to}  to OPEN (for_ns: its wait), HALF_OPEN or CLOSED; no note
//   log.level {level}          until the next change of `log` by a reload
//   clock.step {to_ns}         stepped segments only, never backwards: else code 5. The text of the
//                              answer is the clock's value, in decimal
//   anything else              code 4, naming the verbs there are
// Codes: 0 done, 4 invalid, 5 not permitted, 6 no such name, 72 no room.
// Thread safety: the loop's thread.
#pragma once
#include <functional>

#include "acts/acts.hpp"
#include "log.hpp"
#include "memory.hpp"
#include "reload.hpp"
#include "shm/limit/admit.hpp"
#include "wire/message.hpp"

namespace cutwater::server {

class Steering {
 public:
  using Answer = std::function<void(wire::SteerAnswer)>;

  Steering(Memory& memory, const Running& running, Reloader& reloader, Acts& acts, Log& log)
      : memory_(memory), running_(running), reloader_(reloader), acts_(acts), log_(log) {}

  /// `answer` is called exactly once, now or from a later turn of the loop. `who`: for the log and
  /// the journal.
  void carry_out(const wire::Steer& asked, const std::string& who, Answer answer);

 private:
  /// The key an act is about; `fault` is the answer when there is none.
  struct Subject { shm::AdmitAsk ask; wire::SteerAnswer fault; bool found = false; };
  Subject subject_of(const wire::Steer& asked) const;
  void reload(const wire::Steer& asked, const std::string& who, Answer answer);
  void act(const wire::Steer& asked, const std::string& who, Answer answer);
  void act_on_breaker(shm::Steer what, const wire::Steer& asked, const std::string& who,
                      Answer answer);
  void move_breaker(const wire::Steer& asked, const std::string& who, Answer answer);
  wire::SteerAnswer change_key(const wire::Steer& asked, const std::string& who);
  wire::SteerAnswer step_clock(const wire::Steer& asked);
  wire::SteerAnswer set_level(const wire::Steer& asked, const std::string& who);
  wire::SteerAnswer say(const ActVerdict& verdict) const;
  wire::SteerAnswer say(std::uint16_t code, std::string text) const;

  Memory& memory_;
  const Running& running_;
  Reloader& reloader_;
  Acts& acts_;
  Log& log_;
};

}  // namespace cutwater::server
