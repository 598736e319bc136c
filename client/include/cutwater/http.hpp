// SPDX-License-Identifier: Apache-2.0
// From a Decision, or from what refused a call, to an HTTP answer: status, Retry-After, RateLimit
// fields, problem+json.
//
//   if (auto d = api.try_acquire(user); !d) {
//     const HttpAnswer answer = http_answer(d);     // 429, fields and body, ready to send
//     response.status(answer.status);
//     for (const HttpField& f : answer.fields) response.set(f.name, f.value);
//     response.body(answer.body);
//   }
//   auto e = client.enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{api, user}}});
//   if (!e) return send(http_answer(e));            // of whichever part refused
//   if (!place) return send(http_answer(place.refusal()));
//
// Status: 429 where the caller asked too much (limit, never, banned), 503 where our own side is in
// trouble or busy (full, open, probing, expired, degraded): a limiter that cannot decide is never a
// 429. 400 for a key that is too long, 500 for a cost no limit takes.
// Retry-After: whole seconds, rounded up, at least 1 (C088); left out where no wait helps (never, a
// ban without an end).
// RateLimit and RateLimit-Policy: structured fields as in draft-ietf-httpapi-ratelimit-headers-10;
// they name the limit that decided. `r` whole tokens left, `t` seconds until more is there: after a
// refusal until the asked cost is, so Retry-After is never before it. `q` is the burst and `w` the
// seconds in which as much comes back.
// A limiter that did not decide (degraded, bad arguments) knows none of them: its answer has
// neither, and no `violated-policies`.
// A full bulkhead is a 503, not a 429: this caller did nothing too often, our side has no room, and
// a client that slows itself down on 429 would be punished for the load of others.
// Body: RFC 9457, with the registered problem types and `violated-policies` naming the limit. Of a
// breaker or a bulkhead instead: `part`, `name`, `reason`, of a breaker `state`, of a bulkhead
// `in_use`, `limit` and `waiting`, and `retry_after` in seconds where a wait helps. What made a
// breaker open is not in it: rates of a dependency are no concern of callers from outside.
// No text of the caller's (no key) gets into an answer. Thread safety: pure functions of a value;
// they allocate. Errors: none; a number too large for a structured field is cut to the largest.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/admission.hpp>
#include <cutwater/breaker.hpp>
#include <cutwater/bulkhead.hpp>
#include <cutwater/decision.hpp>
#include <cutwater/enter.hpp>
#include <cutwater/export.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

struct HttpField {
  std::string name;
  std::string value;
};

struct HttpAnswer {
  int status = 200;
  std::vector<HttpField> fields;     ///< in the order to send; Content-Type when there is a body
  std::string body;                  ///< problem+json; empty when allowed
};

/// One item of RateLimit-Policy.
struct HttpPolicy {
  std::string name;                  ///< of the limit
  std::uint64_t quota = 0;           ///< tokens
  Nanos window{0};                   ///< in which they come back, rounded up to s; 0 = not said
};

struct HttpOptions {
  /// All policies that apply here, for RateLimit-Policy. Empty: the one the decision itself shows;
  /// a decision over several windows shows none.
  std::vector<HttpPolicy> policies{};
  bool rate_limit = true;            ///< RateLimit and RateLimit-Policy
  /// The fields of older drafts too, RateLimit-Limit, -Remaining and -Reset, which proxies still
  /// send and clients still read.
  bool older_fields = false;
  /// Says `detail` in the body: one English sentence with the wait.
  bool detail = true;
};

CUTWATER_EXPORT int http_status(Reason reason) noexcept;

/// Seconds for Retry-After: rounded up, at least 1. Nothing for kNever.
CUTWATER_EXPORT std::optional<std::uint64_t> retry_after_seconds(Nanos wait) noexcept;

/// Value of RateLimit: `"api";r=4;t=2`. `t` is left out when nothing more can come (a full bucket).
/// Empty: the decision has no limit to speak of.
CUTWATER_EXPORT std::string rate_limit_field(const Decision& decision);

/// The policy a decision shows by itself; nothing for one over several windows. Over the socket, of
/// several limits at once, of a charge or a shadow's: that of a limit with one rate for all keys,
/// over the socket as it was when the limit was first asked for.
CUTWATER_EXPORT std::optional<HttpPolicy> policy_of(const Decision& decision);

/// Value of RateLimit-Policy: `"burst";q=100;w=60, "daily";q=1000;w=86400`.
CUTWATER_EXPORT std::string rate_limit_policy_field(std::span<const HttpPolicy> policies);

/// Body of a refusal; empty when allowed.
CUTWATER_EXPORT std::string problem_json(const Decision& decision, const HttpOptions& options = {});

/// All of it. An allowed decision has status 200, RateLimit fields and no body.
CUTWATER_EXPORT HttpAnswer http_answer(const Decision& decision, const HttpOptions& options = {});
/// Of the limit that decided: the one that refuses with the longest wait.
CUTWATER_EXPORT HttpAnswer http_answer(const Admission& admission, const HttpOptions& options = {});

/// Of a breaker that did not let a call through: 503. Retry-After is left out where only a hand
/// helps (FORCED_OPEN without an end). Of HttpOptions `detail` counts.
CUTWATER_EXPORT HttpAnswer http_answer(const BreakerRefusal& refusal,
                                       const HttpOptions& options = {});
/// Of a bulkhead without a place: 503.
CUTWATER_EXPORT HttpAnswer http_answer(const BulkheadRefusal& refusal,
                                       const HttpOptions& options = {});
/// Of the part that refused; of its limits where they did, or where it was granted.
CUTWATER_EXPORT HttpAnswer http_answer(const Entry& entry, const HttpOptions& options = {});

}  // namespace cutwater
