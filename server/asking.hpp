// SPDX-License-Identifier: Apache-2.0
// Serves what sessions ask of names: RESOLVE, ACQUIRE, PEEK, ENTER, CANCEL, REFUND. It brings the
// decider (what is the answer) and the session machine (who asked, what is remembered) together.
// Every answer comes at once; nothing waits here.
//
// OUTCOME and PRESENT are about tickets, and no ticket is given out yet: each is none of this
// session's. Breakers, bulkheads and guards are unknown names.
// Thread safety: the loop's thread.
#pragma once
#include "connection.hpp"
#include "decider.hpp"
#include "running.hpp"

namespace cutwater::server {

class Asking final : public wire::AcquireServer {
 public:
  Asking(Memory& memory, const Running& running)
      : memory_(memory), running_(running), decider_(memory) {}

  Decider& decider() noexcept { return decider_; }

  /// For the sessions: an ACQUIRE that needs no more than its decisions.
  const wire::AcquireAnswer& acquire_now(const wire::AcquireView& asked,
                                         wire::Receipts* receipts) override {
    return decider_.acquire(asked, receipts);
  }

  void serve(Connection& from, const wire::ResolveRequested& asked);
  void serve(Connection& from, const wire::AcquireRequested& asked);
  void serve(Connection& from, const wire::PeekRequested& asked);
  void serve(Connection& from, const wire::EnterRequested& asked);
  void serve(Connection& from, const wire::CancelRequested& asked);
  void serve(Connection& from, const wire::RefundRequested& asked);
  void serve(Connection& from, const wire::OutcomeRequested& asked);
  void serve(Connection& from, const wire::PresentRequested& asked);

 private:
  wire::Resolved resolve(const wire::NameAsk& asked) const;

  Memory& memory_;
  const Running& running_;
  Decider decider_;
};

}  // namespace cutwater::server
