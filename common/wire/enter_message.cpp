// SPDX-License-Identifier: Apache-2.0
#include "wire/enter_message.hpp"

#include "wire/ask_fields.hpp"

namespace cutwater::wire {
namespace {

constexpr auto kEnter = [](auto& io, auto& m) {
  io.number("ttl_ns", m.ttl_ns);
  io.number("max_wait_ns", m.max_wait_ns);
  item_fields(io, m.items, {0, kMaxEnterItems});
  io.subject_or_nil("bulkhead", m.bulkhead);
  io.subject_or_nil("breaker", m.breaker);
  if (io.more(m.apart || m.call_ns != 0)) io.number("call_ns", m.call_ns);
  if (io.more(m.apart)) io.flag("apart", m.apart);
};

constexpr auto kAdmission = [](auto& in, auto& a) {
  in.number("reason", a.reason);
  if (a.is_error()) return in.told("text", a.text, kMaxErrorText);
  in.number("part", a.part);
  in.number("index", a.index);
  in.number("remaining", a.remaining);
  in.number("retry_after_ns", a.retry_after_ns);
  in.number("reset_after_ns", a.reset_after_ns);
  in.number("wait_ns", a.wait_ns);
  in.number("window", a.window);
  in.answer_bits("flags", a.flags, kKnownAnswerFlags | kAnswerTimed);
  in.number("state", a.state);
  in.number("epoch", a.epoch);
  in.binary("ticket", a.ticket, kMaxTicket);
  in.number("deadline_ns", a.deadline_ns);
  in.number("holding", a.holding);
  in.number("oldest_ns", a.oldest_ns);
  in.number("waiting", a.waiting);
  in.number("since_ns", a.since_ns);
  in.told("why", a.why, kMaxErrorText);
  const bool shared = !a.pattern.empty();
  const bool apart = shared || !a.place_ticket.empty();
  const bool each = apart || !a.each.empty();
  const bool timed = each || a.clock_ns != 0;
  const bool waited = timed || a.waited_ns != 0;
  if (in.more(waited || a.places != 0)) in.number("places", a.places);
  if (in.more(waited)) in.number("waited_ns", a.waited_ns);
  if (in.more(timed)) in.number("clock_ns", a.clock_ns);
  if (in.more(each)) {
    in.list("each", a.each, {0, kMaxEnterItems}, [](auto& list, auto& d) {
      list.tuple("", [&](auto& fields) { decision_fields(fields, d); });
    });
  }
  if (in.more(apart)) in.binary("place_ticket", a.place_ticket, kMaxTicket);
  if (in.more(shared)) in.told("pattern", a.pattern, kMaxErrorText);
};

constexpr auto kEnterAnswer = [](auto& io, auto& m) {
  io.tuple("admission", [&](auto& in) { kAdmission(in, m.admission); });
};

constexpr auto kClass = [](auto& in, auto& name) { in.text("", name, kMaxClass); };

constexpr auto kOutcome = [](auto& io, auto& m) {
  io.list("reports", m.reports, {1, kMaxOutcomes}, [](auto& list, auto& report) {
    list.tuple("", [&](auto& in) {
      const bool others = !report.others.empty();
      const bool waits = others || report.retry_after_ns != kNever;
      const bool classed = waits || !report.outcome_class.empty();
      const bool opens = classed || report.open_for_ns != 0;
      in.binary("ticket", report.ticket, kMaxTicket);
      in.number("outcome", report.outcome, 0, 4);
      if (in.more(opens || report.duration_ns != kNever)) {
        in.number("duration_ns", report.duration_ns);
      }
      if (in.more(opens)) in.number("open_for_ns", report.open_for_ns);
      if (in.more(classed)) in.text("class", report.outcome_class, kMaxClass);
      if (in.more(waits)) in.number("retry_after_ns", report.retry_after_ns);
      if (in.more(others)) in.list("others", report.others, {0, kMaxOtherClasses}, kClass);
    });
  });
};

constexpr auto kOutcomeAnswer = [](auto& io, auto& m) {
  io.list("codes", m.codes, {0, kMaxOutcomes}, [](auto& in, auto& code) { in.number("", code); });
};

constexpr auto kTicket = [](auto& in, auto& ticket) { in.binary("", ticket, kMaxTicket); };

constexpr auto kPresent = [](auto& io, auto& m) {
  io.list("tickets", m.tickets, {1, kMaxOutcomes}, kTicket);
};

constexpr auto kPresentAnswer = [](auto& io, auto& m) {
  io.list("tickets", m.tickets, {0, kMaxOutcomes}, kTicket);
};

}  // namespace

Admission Admission::error(ItemError code, std::string text) {
  Admission out;
  out.reason = static_cast<std::uint16_t>(code);
  out.text = std::move(text);
  return out;
}

template <>
Decoded<Enter> decode<Enter>(std::string_view payload) {
  return read_message<Enter>(payload, kEnter);
}
template <>
Decoded<EnterAnswer> decode<EnterAnswer>(std::string_view payload) {
  return read_message<EnterAnswer>(payload, kEnterAnswer);
}
template <>
Decoded<Outcome> decode<Outcome>(std::string_view payload) {
  return read_message<Outcome>(payload, kOutcome);
}
template <>
Decoded<OutcomeAnswer> decode<OutcomeAnswer>(std::string_view payload) {
  return read_message<OutcomeAnswer>(payload, kOutcomeAnswer);
}
template <>
Decoded<Present> decode<Present>(std::string_view payload) {
  return read_message<Present>(payload, kPresent);
}
template <>
Decoded<PresentAnswer> decode<PresentAnswer>(std::string_view payload) {
  return read_message<PresentAnswer>(payload, kPresentAnswer);
}

Result<std::string> encode(const Enter& m) { return write_message(m, kEnter); }
Result<std::string> encode(const EnterAnswer& m) { return write_message(m, kEnterAnswer); }
Result<std::string> encode(const Outcome& m) { return write_message(m, kOutcome); }
Result<std::string> encode(const OutcomeAnswer& m) { return write_message(m, kOutcomeAnswer); }
Result<std::string> encode(const Present& m) { return write_message(m, kPresent); }
Result<std::string> encode(const PresentAnswer& m) { return write_message(m, kPresentAnswer); }

}  // namespace cutwater::wire
