// SPDX-License-Identifier: Apache-2.0
// Answers what sessions ask of limits: ACQUIRE, PEEK, ENTER, CANCEL, REFUND. It decides by exactly
// the functions the mapped clients use (shm/admit.hpp), so the same question gets the same answer,
// field by field, whichever way it is asked. Nothing here waits: an answer with a later start says
// `wait_ns`, and the caller waits.
//
// Receipts stay with the session, in its Receipts; without one (the session does not remember
// answers) nothing can be given back. Counted like a mapped client counts, on the daemon's stripe.
// Bounds: those of the messages. After the first request of a kind nothing is allocated for limits
// that exist and answers without a text.
// Thread safety: the loop's thread.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "limit_names.hpp"
#include "receipts.hpp"
#include "shm/counters.hpp"
#include "wire/ask_message.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::server {

class Memory;

/// Hears of decisions for the sketch of top keys.
class KeyWitness {
 public:
  virtual void decided(shm::LimitRef limit, std::string_view key, bool allowed) = 0;

 protected:
  ~KeyWitness() = default;
};

class Decider {
 public:
  explicit Decider(Memory& memory);
  void set_witness(KeyWitness* witness) noexcept { witness_ = witness; }
  /// The memory is another one: names and stripe are looked for anew.
  void memory_replaced();

  /// Whose request it is, and where its receipts go (nullptr: nowhere).
  struct Asker {
    Receipts* receipts = nullptr;
    std::uint32_t request = 0;
  };
  /// The answers are valid until the next call.
  const wire::AcquireAnswer& acquire(const wire::Acquire& asked, Asker asker);
  const wire::PeekAnswer& peek(const wire::Peek& asked);
  const wire::EnterAnswer& enter(const wire::Enter& asked, Asker asker);
  /// `asked.ttl_ns` ran out before it was begun: nothing is charged.
  const wire::AcquireAnswer& expired(const wire::Acquire& asked);
  const wire::EnterAnswer& expired(const wire::Enter& asked);

  wire::CancelAnswer cancel(const wire::Cancel& asked, Receipts& receipts);
  wire::RefundAnswer refund(const wire::Refund& asked, Receipts& receipts);

 private:
  struct Found {
    const shm::LimitHandle* limit = nullptr;
    std::string_view name;
  };
  struct Charge {
    shm::LimitRef limit;
    std::string_view key;
    std::uint64_t cost = 0;
  };
  bool prepare(const wire::Item& item, Found& found, shm::AdmitAsk& ask,
               wire::DecisionAnswer& out);
  std::string unknown(std::string_view name);
  void decide(const wire::Item& item, const shm::AdmitAsk& ask, std::uint16_t index, Asker asker,
              wire::DecisionAnswer& out);
  void enter_limits(const wire::Enter& asked, Asker asker, wire::Admission& out);
  void leave_behind(const Charge& charge, std::uint16_t index, const DecisionData& data,
                    Asker asker);
  void fill(const DecisionData& data, wire::DecisionAnswer& out) const;
  void count(std::uint32_t limit, std::uint64_t cost, const DecisionData& data) const;
  wire::Returned give_back(Receipts::Entry& entry, std::uint64_t tokens);
  static DecisionData gone(const shm::View& view);
  static std::int64_t wait_of(std::uint64_t max_wait_ns) noexcept;

  Memory& memory_;
  KeyWitness* witness_ = nullptr;
  LimitNames names_;
  shm::StripeHandle stripe_;
  wire::AcquireAnswer acquired_;
  wire::PeekAnswer peeked_;
  wire::EnterAnswer entered_;
  shm::AdmitAnswer all_;
  std::size_t told_ = 0;               // unknown names of this request that were looked for
};

}  // namespace cutwater::server
