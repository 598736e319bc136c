// SPDX-License-Identifier: Apache-2.0
// SessionWorld: a client with many callers, a daemon, and a line between them that cuts at any
// byte, all in one thread and driven by a stream of choices. The machines are the real ones
// (client AskSession, wire::ServerSession); the application behind the daemon is a naive model that
// counts what it executed. One history: calls (some of them wrong in a byte), pieces of bytes,
// answers in any order, BUSY, ERROR, GOAWAY, calls given up, cuts, sessions taken over or
// forgotten, in the order the choices say.
//
// What must hold, whatever the choices, or the history reports it:
//   no call is executed twice, and no call ends twice
//   Answered: executed once, with the answer of this call;  Busy, Failed, Unsent: not executed
//   no receipt is spent twice, and none that was never given
//   what the machines hold is within their bounds
// Thread safety: none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/ask/ask_session.hpp"
#include "wire/server_session.hpp"

namespace cutwater::test {

class SessionWorld {
 public:
  /// A number below its argument, at least 1.
  using Choose = std::function<std::uint32_t(std::uint32_t)>;

  struct Tally {
    std::size_t calls = 0, answered = 0, busy = 0, failed = 0, lost = 0, late = 0;
    std::size_t executed = 0, cuts = 0, resumed = 0, stale = 0, refunded = 0;
  };

  explicit SessionWorld(Choose choose);
  ~SessionWorld();

  /// Runs `steps` steps, then lets everything come to its end. Empty: all held; else what did not.
  std::string run(std::size_t steps);
  const Tally& tally() const noexcept { return tally_; }

 private:
  struct Asked;     // a call, its frame and what became of it
  struct Pending;   // a request the daemon's application has not answered yet

  void step();
  void make_call();
  void move_bytes(bool all);
  void answer_one();
  void give_up_one();
  void cut();
  void connect();
  void settle();
  void carry_out(wire::ServerActions actions);
  void execute(const wire::ServerAction& action);
  void give_answer(Pending pending);
  void finish_calls();
  void check(Asked& asked);
  void fault(std::string what);

  Choose choose_;
  std::string fault_;
  Tally tally_;
  client::AskSession client_;
  std::optional<wire::ServerSession> server_;
  std::optional<wire::AnswerMemory> memory_;   // of the session while no connection has it
  std::string to_server_, to_client_, input_;  // on the line; received and not a whole frame
  std::uint64_t now_ns_ = 0;
  std::vector<std::unique_ptr<Asked>> calls_;
  std::deque<Pending> pending_;
  std::map<std::uint64_t, std::uint32_t> executed_;  // call number -> how often
  std::map<std::uint64_t, std::uint32_t> spendable_;  // call number -> receipts not spent
  std::vector<std::uint32_t> answered_requests_;      // of ACQUIREs of this session
};

}  // namespace cutwater::test
