// SPDX-License-Identifier: Apache-2.0
// HTTP answers of breakers, bulkheads and admissions over several parts.
#include <cutwater/http.hpp>

#include "src/http_problem.hpp"

namespace cutwater {
namespace {

using detail::digits;
using detail::quoted;

/// What a part that is no limit refused with.
struct Refused {
  EnterPart part = EnterPart::None;
  std::string_view name;
  Reason reason = Reason::Degraded;
  Nanos wait{0};
  bool hint = false;
  std::string_view what;                 ///< first sentence of the detail
  std::string more{};                    ///< further members, each with a comma in front
};

std::string_view sentence_of(Reason reason) noexcept {
  switch (reason) {
    case Reason::Open: return "A service that this request needs is not available.";
    case Reason::Probing:
      return "A service that this request needs is being tried again, with few requests.";
    case Reason::Full:
      return "A service that this request needs is busy: all its places are taken.";
    case Reason::Expired: return "The time for this request was over before it could begin.";
    case Reason::InvalidArgument: return "The request was put in a way that nothing takes.";
    default: return "The request cannot be taken now.";
  }
}

std::string body_of(const Refused& refused, const HttpOptions& options) {
  std::string out = detail::problem_head(refused.reason);
  const auto wait = retry_after_seconds(refused.wait);
  if (options.detail) {
    std::string text(refused.what);
    if (wait) {
      text += refused.hint ? " Come back in about " : " Come back in ";
      text += digits(*wait) + (*wait == 1 ? " second." : " seconds.");
    }
    out += ",\"detail\":" + quoted(text);
  }
  if (refused.part != EnterPart::None) {
    out += ",\"part\":" + quoted(name_of(refused.part)) + ",\"name\":" + quoted(refused.name);
  }
  out += ",\"reason\":" + quoted(name_of(refused.reason)) + refused.more;
  if (wait) out += ",\"retry_after\":" + digits(*wait);
  return out + '}';
}

HttpAnswer answer_of(const Refused& refused, const HttpOptions& options) {
  HttpAnswer out;
  out.status = http_status(refused.reason);
  if (const auto wait = retry_after_seconds(refused.wait)) {
    out.fields.push_back({"Retry-After", digits(*wait)});
  }
  out.body = body_of(refused, options);
  detail::add_body_fields(out);
  return out;
}

}  // namespace

HttpAnswer http_answer(const BreakerRefusal& refusal, const HttpOptions& options) {
  Refused refused{EnterPart::Breaker, refusal.breaker_name(), refusal.reason(),
                  refusal.retry_after(), refusal.is_hint(), sentence_of(refusal.reason())};
  const bool by_hand = refusal.state() == BreakerStatus::ForcedOpen;
  if (refusal.reason() == Reason::Open && by_hand) {
    refused.what = "A service that this request needs was taken out of use by its operator.";
  }
  // Where no breaker was looked at there is no state.
  if (refusal.reason() != Reason::Degraded) {
    refused.more = ",\"state\":" + quoted(name_of(refusal.state()));
  }
  return answer_of(refused, options);
}

HttpAnswer http_answer(const BulkheadRefusal& refusal, const HttpOptions& options) {
  Refused refused{EnterPart::Bulkhead, refusal.bulkhead_name(), refusal.reason(),
                  refusal.retry_after(), refusal.is_hint(), sentence_of(refusal.reason())};
  if (refusal.reason() != Reason::Degraded) {
    refused.more = ",\"in_use\":" + digits(refusal.in_use()) +
                   ",\"limit\":" + digits(refusal.limit()) +
                   ",\"waiting\":" + digits(refusal.waiting());
  }
  return answer_of(refused, options);
}

HttpAnswer http_answer(const Entry& entry, const HttpOptions& options) {
  const bool of_limits = entry.granted() ? !entry.limits().each().empty()
                                         : entry.refused_by() == EnterPart::Limit;
  if (of_limits) return http_answer(entry.limits(), options);
  if (entry.granted()) return {};
  switch (entry.refused_by()) {
    case EnterPart::Breaker: return http_answer(entry.breaker_refusal(), options);
    case EnterPart::Bulkhead: return http_answer(entry.bulkhead_refusal(), options);
    default: break;
  }
  const Reason reason = entry.reason();
  return answer_of({EnterPart::None, {}, reason, entry.retry_after(), entry.is_hint(),
                    sentence_of(reason)}, options);
}

}  // namespace cutwater
