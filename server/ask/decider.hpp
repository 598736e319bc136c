// SPDX-License-Identifier: Apache-2.0
// Answers what sessions ask of limits, breakers and bulkheads: ACQUIRE, PEEK, ENTER, OUTCOME,
// PRESENT, CANCEL, REFUND. It decides by exactly the functions the mapped clients use
// (shm/limit/admit.hpp, shm/breaker/breaker.hpp, shm/enter.hpp), so the same question gets the same
// answer, field by field, whichever way it is asked. Nothing here sleeps: an answer with a later
// start says `wait_ns`, and the caller waits; who stands in line for a place is kept by line.hpp
// and resumed.
//
// What an ENTER holds belongs to the row of the session that asked (holder.hpp) and is told by its
// ticket (ticket.hpp). A session without a row may use breakers: its probes come back by their
// result or their deadline.
//
// What can be undone is given back to the caller as bytes (receipt_bytes.hpp); the session machine
// keeps them. Counted like a mapped client counts, on the daemon's stripe.
// Bounds: those of the messages. After the first request of a kind nothing is allocated for limits
// that exist and answers without a text.
// Thread safety: the loop's thread.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ask/holder.hpp"
#include "ask/limit_names.hpp"
#include "ask/ticket.hpp"
#include "shm/counters.hpp"
#include "shm/enter.hpp"
#include "wire/acquire_view.hpp"
#include "wire/answer_memory.hpp"
#include "wire/ask_message.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::server {

class Memory;

/// Hears of decisions for the sketch of top keys.
class KeyWitness {
 public:
  virtual void decided(const shm::AdmitAsk& ask, bool allowed) = 0;

 protected:
  ~KeyWitness() = default;
};

/// An admission under way that may wait in line, with everything it asks for.
struct WaitingEnter {
  explicit WaitingEnter(wire::Enter message) : asked(std::move(message)) {}
  WaitingEnter(const WaitingEnter&) = delete;
  WaitingEnter& operator=(const WaitingEnter&) = delete;

  const wire::Enter asked;             ///< names and keys lie here
  std::array<shm::AdmitAsk, shm::kMaxAdmitItems> limits;
  shm::Entering entering;
};

class Decider {
 public:
  explicit Decider(Memory& memory);
  void set_witness(KeyWitness* witness) noexcept { witness_ = witness; }
  /// The memory is another one: names and stripe are looked for anew.
  void memory_replaced();

  /// The answers are valid until the next call. `receipts`: one for each item that charged, and
  /// empty ones before it; nullptr when the session remembers nothing.
  const wire::AcquireAnswer& acquire(const wire::AcquireView& asked, wire::Receipts* receipts);
  const wire::PeekAnswer& peek(const wire::Peek& asked);
  /// nullptr: it waits in line for a place; `waits` is then what to resume.
  const wire::EnterAnswer* enter(const wire::Enter& asked, Holder& holder,
                                 wire::Receipts* receipts, std::unique_ptr<WaitingEnter>& waits);
  /// It came too late to be begun: counted.
  void note_late(const wire::Enter& asked);
  /// nullptr: it still waits.
  const wire::EnterAnswer* resume(WaitingEnter& waits, Holder& holder, wire::Receipts* receipts);
  /// Whether resume() may find something new; cheap.
  bool is_due(const WaitingEnter& waits) const;
  /// Out of the line. The answer of a session that has too many there already, and of a cancelled
  /// one.
  const wire::EnterAnswer& refuse_to_wait(WaitingEnter& waits, Holder& holder);
  const wire::EnterAnswer& cancel_wait(WaitingEnter& waits, Holder& holder);
  /// Nobody wants its answer any more.
  void abandon(WaitingEnter& waits, Holder& holder);
  /// The memory is another one: stands in its line from now on. Not nullptr: answered instead.
  const wire::EnterAnswer* begin_again(WaitingEnter& waits, Holder& holder,
                                       wire::Receipts* receipts);
  /// Ends a ticket. 0 recorded, else a wire::ItemError: Stale, InvalidArgument.
  std::uint16_t outcome(const wire::OutcomeReport& report, Holder& holder);
  /// The same for a call that did not take place.
  std::uint16_t cancel(std::string_view ticket, Holder& holder);
  /// The ticket of a former row of this client as one of `holder`; empty: gone. The caller has
  /// looked whether that row was this client's.
  std::string present(const Ticket& ticket, Holder& holder);
  /// nullopt: it is none of this memory's form.
  std::optional<Ticket> read_ticket(std::string_view bytes) const;
  HolderBook& holders() noexcept { return holders_; }

  /// Undoes the last `tokens` of a charge, or gives a ticket back as if it had not been given out.
  /// code: 0, TooLate; empty bytes: nothing was charged.
  wire::Returned give_back(std::string_view receipt, std::uint64_t tokens, Holder& holder);

 private:
  struct Found {
    const shm::LimitHandle* limit = nullptr;
    std::string_view name;
  };
  bool prepare(const wire::ItemView& item, Found& found, shm::AdmitAsk& ask,
               wire::DecisionAnswer& out);
  bool prepare(const wire::Item& item, Found& found, shm::AdmitAsk& ask,
               wire::DecisionAnswer& out) {
    return prepare(wire::view_of(item), found, ask, out);
  }
  std::string unknown(std::string_view name);
  void decide(const wire::ItemView& item, const shm::AdmitAsk& ask, wire::Receipts* receipts,
              wire::DecisionAnswer& out);
  void enter_limits(const wire::Enter& asked, wire::Receipts* receipts, wire::Admission& out);
  bool find_parts(const wire::Enter& asked, shm::EnterAsk& ask, wire::Admission& out);
  bool find_limits(const wire::Enter& asked, std::array<shm::AdmitAsk, shm::kMaxAdmitItems>& asks,
                   wire::Admission& out);
  void enter_breaker(const wire::Enter& asked, shm::BreakerRef ref, Holder& holder,
                     wire::Admission& out);
  const wire::EnterAnswer* begin(WaitingEnter& entering, Holder& holder, wire::Receipts* receipts);
  const wire::EnterAnswer* tell(shm::EnterStep step, const WaitingEnter& entering, Holder& holder,
                                wire::Receipts* receipts);
  void tell_limits(const WaitingEnter& entering);
  void tell_grant(const WaitingEnter& entering, Holder& holder, wire::Receipts* receipts);
  void tell_shared(shm::BulkheadRef ref, wire::Admission& out) const;
  void tell_refusal(const WaitingEnter& entering);
  void tell_call(shm::BreakerRef ref, const shm::BreakerCall& call, std::int64_t now,
                 Ticket& ticket, wire::Admission& out);
  std::string give_ticket(Ticket& ticket, std::int64_t now, Holder& holder);
  void refuse_breaker(shm::BreakerRef ref, const shm::BreakerEntry& entry, wire::Admission& out);
  void keep_tickets(const wire::Enter& asked, wire::Receipts* receipts);
  bool end_ticket(const Ticket& ticket, const wire::OutcomeReport& report, Holder& holder);
  bool end_cells(const Ticket& ticket, const wire::OutcomeReport& report, Holder& holder);
  shm::BreakerCaller caller_of(Holder& holder, shm::BreakerRef ref);
  shm::BulkheadCaller place_caller(const Holder& holder) const noexcept {
    return {holder.row.index, holder.row.generation, stripe_};
  }
  shm::EnterCaller enter_caller(Holder& holder, shm::BreakerRef ref);
  void leave_behind(const shm::AdmitAsk& ask, std::uint64_t cost, const DecisionData& data);
  static DecisionData gone(const shm::View& view);
  static std::int64_t wait_of(std::uint64_t max_wait_ns) noexcept;

  Memory& memory_;
  KeyWitness* witness_ = nullptr;
  LimitNames names_;
  HolderBook holders_;
  shm::StripeHandle stripe_;
  wire::AcquireAnswer acquired_;
  wire::PeekAnswer peeked_;
  wire::EnterAnswer entered_;
  shm::AdmitAnswer all_;
  shm::EnterAnswer met_;
  std::uint32_t mark_ = 0;             // of the memory: its tickets are mixed with it
  std::uint32_t life_ = 0;             // of the memory: receipts of another one are void
  std::size_t told_ = 0;               // unknown names of this request that were looked for
};

}  // namespace cutwater::server
