// SPDX-License-Identifier: Apache-2.0
#include <cutwater/http.hpp>

#include <algorithm>

#include "rule/bucket_rule.hpp"
#include "shm/limit/rule_reader.hpp"
#include "src/http_problem.hpp"
#include "src/limit_state.hpp"

namespace cutwater {

using detail::digits;
using detail::quoted;

namespace {

/// The largest integer of a structured field.
constexpr std::uint64_t kLargest = 999'999'999'999'999;
constexpr std::uint64_t kNanosOfSecond = 1'000'000'000;

std::uint64_t seconds_up(Nanos wait) noexcept {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(wait.count(), 0));
  return ns / kNanosOfSecond + (ns % kNanosOfSecond != 0 ? 1 : 0);
}

rule::Piece line_of(const DecisionData& d) noexcept {
  return {d.mult, d.base_t, d.base_n, d.burst, 0, 0, d.shift};
}

/// Until one more token is there than now; nothing when the bucket is full.
std::optional<Nanos> until_more(const Decision& decision) noexcept {
  const DecisionData& d = decision.data();
  if (decision.reset_after() == Nanos{0}) return std::nullopt;
  if (d.computed || d.mult == 0) return decision.reset_after();
  const auto tokens = static_cast<rule::Units>((decision.remaining() + 1) << d.f);
  const std::int64_t due = rule::time_when(line_of(d), d.level - d.burst + tokens);
  if (due == rule::kNeverNs) return std::nullopt;
  return Nanos{std::max<std::int64_t>(due - d.t, 1)};
}

/// Seconds until more is there: for a refusal, until the asked cost is.
std::optional<std::uint64_t> more_in(const Decision& decision) noexcept {
  if (!decision.allowed()) return retry_after_seconds(decision.retry_after());
  const std::optional<Nanos> wait = until_more(decision);
  return wait ? retry_after_seconds(*wait) : std::nullopt;
}

/// What a line holds, and the time in which as much comes back.
std::optional<HttpPolicy> policy_by(std::string_view name, rule::Piece line, unsigned f) {
  if (line.burst <= 0) return std::nullopt;
  HttpPolicy out{std::string(name), static_cast<std::uint64_t>(line.burst) >> f, Nanos{0}};
  line.base_t = line.base_n = 0;
  const std::int64_t window = line.mult == 0 ? rule::kNeverNs : rule::time_when(line, line.burst);
  if (window != rule::kNeverNs) out.window = Nanos{window};
  return out;
}

struct Problem {
  const char* type;                    ///< registered with IANA
  const char* title;
};

Problem problem_of(Reason reason) noexcept {
  switch (http_status(reason)) {
    case 429:
      if (reason == Reason::Banned) {
        return {"https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
                "Request not satisfied due to detection of abnormal request pattern"};
      }
      return {"https://iana.org/assignments/http-problem-types#quota-exceeded",
              "Request cannot be satisfied as assigned quota has been exceeded"};
    case 503:
      return {"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
              "Request cannot be satisfied due to temporary server capacity constraints"};
    case 400: return {"about:blank", "Bad Request"};
    default: return {"about:blank", "Internal Server Error"};
  }
}

std::string detail_of(const Decision& decision) {
  std::string out;
  switch (decision.reason()) {
    case Reason::Never: return "The request asks for more than the quota ever holds.";
    case Reason::KeyTooLong: return "The name to count this request by is too long.";
    case Reason::InvalidArgument:
      if (decision.limit_name().empty()) {
        return "The list of quotas to ask is empty, too long, or not of one client.";
      }
      return "The request asks for an amount no quota has.";
    case Reason::Banned: out = "The caller is banned."; break;
    case Reason::Limit: out = "The quota is used up."; break;
    default: out = "The request cannot be taken now."; break;
  }
  const auto wait = retry_after_seconds(decision.retry_after());
  if (!wait) return out;
  out += decision.is_hint() ? " Come back in about " : " Come back in ";
  return out + digits(*wait) + (*wait == 1 ? " second." : " seconds.");
}

/// No rule was looked at: nothing is known of what is left, and no quota was violated.
bool is_undecided(const Decision& decision) noexcept {
  switch (decision.reason()) {
    case Reason::Degraded:
    case Reason::KeyTooLong:
    case Reason::InvalidArgument: return true;
    default: break;
  }
  // A rule of this process may stand in: what it spent comes back.
  return decision.degraded() && decision.data().computed && decision.remaining() == 0 &&
         decision.reset_after() == Nanos{0};
}

/// Of a limit in memory that has one rate for all keys: what the daemon tells of it over the
/// socket. For answers that came with finished numbers and no line.
std::optional<HttpPolicy> plain_policy(const detail::LimitState& state, std::string_view name) {
  constexpr int kReads = 8;
  constexpr std::uint8_t kNotPlain = shm::kLimitHasOverrides | shm::kLimitHasPatterns |
                                     shm::kLimitUnlimited | shm::kLimitBlocked |
                                     shm::kLimitManyWindows | shm::kLimitCalendar;
  if (state.view == nullptr) return std::nullopt;
  const shm::View& view = *state.view;
  // relaxed: a number that carries its whole meaning.
  const shm::LimitRef ref = detail::unpack_ref(state.ref.load(std::memory_order_relaxed));
  for (int read = 0; read < kReads && ref.index < view.limit_count; ++read) {
    const std::uint64_t current = view.current();
    const shm::LimitConfig& config = view.limit_config(current, ref.index);
    const bool plain = shm::read_once(config.windows) == 1 &&
                       shm::read_once(config.incarnation) == ref.incarnation &&
                       (shm::read_once(config.flags) & kNotPlain) == 0;
    const std::uint16_t id = shm::read_once(config.rule[0]);
    if (plain && id >= view.rule_count) return std::nullopt;
    rule::Piece line{};
    unsigned f = 0;
    if (plain) {
      line = shm::read_after(view.rule(current, id));
      f = shm::read_once(view.rule(current, id).f) & 63U;
    }
    if (view.current() != current) continue;
    if (!plain) return std::nullopt;
    return policy_by(name, line, f);
  }
  return std::nullopt;
}

}  // namespace

namespace detail {

std::string digits(std::uint64_t number) { return std::to_string(std::min(number, kLargest)); }

/// Names have no byte that would need an escape; a name that is not ours gets them all the same.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return out + '"';
}

std::string problem_head(Reason reason) {
  const Problem problem = problem_of(reason);
  return std::string("{\"type\":\"") + problem.type + "\",\"title\":\"" + problem.title +
         "\",\"status\":" + std::to_string(http_status(reason));
}

void add_body_fields(HttpAnswer& answer) {
  if (answer.body.empty()) return;
  answer.fields.push_back({"Content-Type", "application/problem+json"});
  answer.fields.push_back({"Cache-Control", "no-store"});
}

}  // namespace detail

int http_status(Reason reason) noexcept {
  switch (reason) {
    case Reason::Allowed: return 200;
    case Reason::Limit:
    case Reason::Never:
    case Reason::Banned: return 429;
    case Reason::KeyTooLong: return 400;
    case Reason::InvalidArgument: return 500;
    case Reason::Full:
    case Reason::Open:
    case Reason::Probing:
    case Reason::Expired:
    case Reason::Degraded: return 503;
  }
  return 503;
}

std::optional<std::uint64_t> retry_after_seconds(Nanos wait) noexcept {
  if (wait == kNever) return std::nullopt;
  return std::max<std::uint64_t>(1, seconds_up(wait));
}

std::string rate_limit_field(const Decision& decision) {
  if (decision.limit_name().empty() || is_undecided(decision)) return {};
  std::string out = quoted(decision.limit_name()) + ";r=" + digits(decision.remaining());
  if (const auto more = more_in(decision)) out += ";t=" + digits(*more);
  return out;
}

std::optional<HttpPolicy> policy_of(const Decision& decision) {
  const DecisionData& d = decision.data();
  if (is_undecided(decision)) return std::nullopt;
  if (d.decided_by == DecidedBy::Socket && d.owner != nullptr) {
    const detail::ToldLimit& told = static_cast<const detail::LimitState*>(d.owner)->told;
    if (told.quota == 0) return std::nullopt;
    return HttpPolicy{std::string(decision.limit_name()), told.quota, Nanos{told.window_ns}};
  }
  if (decision.limit_name().empty()) return std::nullopt;
  if (!d.computed) return policy_by(decision.limit_name(), line_of(d), d.f);
  if (d.owner == nullptr) return std::nullopt;
  return plain_policy(*static_cast<const detail::LimitState*>(d.owner), decision.limit_name());
}

std::string rate_limit_policy_field(std::span<const HttpPolicy> policies) {
  std::string out;
  for (const HttpPolicy& policy : policies) {
    if (!out.empty()) out += ", ";
    out += quoted(policy.name) + ";q=" + digits(policy.quota);
    if (policy.window > Nanos{0}) out += ";w=" + digits(seconds_up(policy.window));
  }
  return out;
}

std::string problem_json(const Decision& decision, const HttpOptions& options) {
  if (decision.allowed()) return {};
  std::string out = detail::problem_head(decision.reason());
  if (options.detail) out += ",\"detail\":\"" + detail_of(decision) + '"';
  if (!decision.limit_name().empty() && !is_undecided(decision)) {
    out += ",\"violated-policies\":[" + quoted(decision.limit_name()) + ']';
  }
  return out + '}';
}

HttpAnswer http_answer(const Decision& decision, const HttpOptions& options) {
  HttpAnswer out;
  out.status = http_status(decision.reason());
  if (!decision.allowed()) {
    if (const auto wait = retry_after_seconds(decision.retry_after())) {
      out.fields.push_back({"Retry-After", digits(*wait)});
    }
  }
  std::vector<HttpPolicy> policies = options.policies;
  if (policies.empty()) {
    if (auto own = policy_of(decision)) policies.push_back(std::move(*own));
  }
  if (std::string state = rate_limit_field(decision); options.rate_limit && !state.empty()) {
    if (!policies.empty()) {
      out.fields.push_back({"RateLimit-Policy", rate_limit_policy_field(policies)});
    }
    out.fields.push_back({"RateLimit", std::move(state)});
  }
  const bool told = !decision.limit_name().empty() && !is_undecided(decision);
  if (options.older_fields && told) {
    if (!policies.empty()) out.fields.push_back({"RateLimit-Limit", digits(policies[0].quota)});
    out.fields.push_back({"RateLimit-Remaining", digits(decision.remaining())});
    if (const auto more = more_in(decision)) {
      out.fields.push_back({"RateLimit-Reset", digits(*more)});
    }
  }
  out.body = problem_json(decision, options);
  detail::add_body_fields(out);
  return out;
}

HttpAnswer http_answer(const Admission& admission, const HttpOptions& options) {
  return http_answer(admission.verdict(), options);
}

}  // namespace cutwater
