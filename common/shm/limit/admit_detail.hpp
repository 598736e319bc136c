// SPDX-License-Identifier: Apache-2.0
// What the admit files share: by which rules a key is judged, and one look or charge of all its
// windows. Not for anybody else.
#pragma once
#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm::detail {

/// By what a key is judged at one reading of clock and rules.
enum class SubjectKind : std::uint8_t { Bucket, Unlimited, Banned };

struct Subject {
  std::int64_t t = 0;                  ///< the stamp
  std::uint64_t c = 0;                 ///< `current` it was read under
  SubjectKind kind = SubjectKind::Bucket;
  std::uint8_t windows = 0;            ///< of a Bucket: 1..kMaxWindows
  bool shadow = false;
  bool overridden = false;
  std::uint16_t rule[kMaxWindows] = {};
  std::int64_t banned_until = 0;       ///< of a Banned; kBanForever without an end
};

/// Whether a ban judges a key before its rules do.
enum class Bans : std::uint8_t { Judge, Ignore };

/// Reads clock, `current` and what judges the key. Answered: `out` is whole. Changed: `current`
/// moved meanwhile, ask again.
Outcome read_subject(const View& view, const AdmitAsk& ask, Bans bans, Subject& out) noexcept;

/// What several windows came to.
enum class Tried : std::uint8_t {
  Granted,
  Refused,       ///< by what the look found; nothing was written
  Lost,          ///< another took it between look and charge; what was charged was given back
  Changed,       ///< the rules moved; what was charged was given back
  Gone,
  Superseded,
};

/// Looks at the subject: fills `out` as the answer, without a receipt.
Tried look_subject(const View& view, const AdmitAsk& ask, const Subject& subject,
                   DecisionData& out) noexcept;
/// Charges every window of the subject, or none. With more than one window the caller has looked
/// before; Refused comes from one window alone.
Tried charge_subject(const View& view, const AdmitAsk& ask, const Subject& subject,
                     DecisionData& out) noexcept;

/// A refusal of a shadow limit becomes allowed, flagged, with nothing charged.
void soften(DecisionData& out) noexcept;

/// The outcome that ends an ask; Answered for Granted, Refused and Lost.
Outcome outcome_of(Tried tried) noexcept;

/// Fills an answer that no bucket gave. The four: remaining, retry_after, reset_after, ns.
struct FixedAnswer {
  Reason reason = Reason::Allowed;
  std::uint8_t flags = 0;
  std::uint64_t remaining = 0;
  std::int64_t retry_after_ns = 0;
  std::int64_t reset_after_ns = 0;
};
void fill_fixed(const FixedAnswer& answer, std::int64_t t, DecisionData& out) noexcept;

/// The answers of all windows of a limit as one, with the receipts of all.
void join(const DecisionData* answer, std::size_t windows, DecisionData& out) noexcept;

/// Joins the answers of several windows or limits into one: see admit.hpp. Add each in order; the
/// first of equals stays.
class Joined {
 public:
  void add(const DecisionData& answer) noexcept;
  bool refused() const noexcept { return refused_; }
  /// Place of the one that says why, in the order added.
  std::size_t decisive() const noexcept { return decisive_; }
  std::uint8_t flags() const noexcept { return flags_; }
  /// remaining smallest, retry_after of what refuses largest, reset_after and starts_in largest.
  rule::Report report() const noexcept;

 private:
  rule::Report report_;
  std::uint64_t decisive_remaining_ = 0;
  std::size_t decisive_ = 0;
  std::size_t count_ = 0;
  std::uint8_t flags_ = 0;
  bool refused_ = false;
};

/// Out of rounds: somebody scribbles, or the clock stands.
void answer_contended(const View& view, DecisionData& out) noexcept;

}  // namespace cutwater::shm::detail
