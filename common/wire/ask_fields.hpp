// SPDX-License-Identifier: Apache-2.0
// The description of items and decisions, which ACQUIRE, PEEK and ENTER share.
// Thread safety: as fields.hpp.
#pragma once
#include <vector>

#include "wire/ask_message.hpp"
#include "wire/fields.hpp"

namespace cutwater::wire {

template <class Io, class Items>
void item_fields(Io& io, Items& items, Span count) {
  io.list("items", items, count, [](auto& list, auto& item) {
    list.tuple("", [&](auto& in) {
      in.name_or_nil("limit", item.limit);
      in.item_key("key", item.key);
      if (in.more(item.cost != 1 || item.flags != 0)) in.number("cost", item.cost, 0, kMaxCost);
      if (in.more(item.flags != 0)) in.number("flags", item.flags, 0, kKnownItemFlags);
    });
  });
  if (!items.empty() && !items[0].limit) io.refuse("items[0].limit", kNameForm, "nil");
}

template <class In, class Decision>
void decision_fields(In& in, Decision& d) {
  in.number("reason", d.reason);
  if (d.is_error()) return in.told("text", d.text, kMaxErrorText);
  in.number("remaining", d.remaining);
  in.number("retry_after_ns", d.retry_after_ns);
  in.number("reset_after_ns", d.reset_after_ns);
  in.number("wait_ns", d.wait_ns);
  in.number("window", d.window);
  in.answer_bits("flags", d.flags, kKnownAnswerFlags);
  const bool timed = d.clock_ns != 0;
  const bool charged = timed || d.charged != kChargedAsAsked;
  if (in.more(charged || d.would != 0)) in.number("would", d.would);
  if (in.more(charged)) in.number("charged", d.charged);
  if (in.more(timed)) in.number("clock_ns", d.clock_ns);
}

}  // namespace cutwater::wire
