// SPDX-License-Identifier: Apache-2.0
// Serves what sessions ask of names: RESOLVE, ACQUIRE, PEEK, ENTER, OUTCOME, PRESENT, CANCEL,
// REFUND. It brings the decider (what is the answer) and the session machine (who asked, what is
// remembered) together.
// Every answer comes at once, but that of an ENTER which waits in line for a place (line.hpp).
//
// What an ENTER holds is the session's row's. PRESENT takes over what a former row of the same uid
// holds, once that row has no connection any more (rows of an earlier daemon, and of a session that
// was not resumed). Guards are unknown names.
// Thread safety: the loop's thread.
#pragma once
#include <functional>

#include "ask/decider.hpp"
#include "ask/line.hpp"
#include "connection.hpp"
#include "row_book.hpp"
#include "running.hpp"

namespace cutwater::server {

class Asking final : public wire::AcquireServer {
 public:
  Asking(Memory& memory, const Running& running, const RowBook& rows)
      : memory_(memory),
        running_(running),
        rows_(rows),
        decider_(memory),
        line_(memory, decider_) {}

  Decider& decider() noexcept { return decider_; }
  Line& line() noexcept { return line_; }
  /// Hears of a former row whose client presents something of it.
  void set_came_back(std::function<void(shm::RowGrant)> heard) { came_back_ = std::move(heard); }
  /// After anything that may have changed what its session holds.
  void note_holding(Connection& from) { from.notes.holds = holder_of(from).holding != 0; }

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
  wire::Resolved resolve_limit(const std::string& name) const;
  wire::Resolved resolve_breaker(const std::string& name) const;
  wire::Resolved resolve_bulkhead(const std::string& name) const;
  bool end_wait(Connection& from, std::uint32_t request);
  std::string present(Connection& from, const std::string& ticket);
  Holder& holder_of(Connection& from) { return decider_.holders().of(from.notes.row); }

  Memory& memory_;
  const Running& running_;
  const RowBook& rows_;
  Decider decider_;
  Line line_;
  std::function<void(shm::RowGrant)> came_back_;
};

}  // namespace cutwater::server
