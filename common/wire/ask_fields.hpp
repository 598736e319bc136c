// SPDX-License-Identifier: Apache-2.0
// The description of items, which ACQUIRE, PEEK and ENTER share. Thread safety: as fields.hpp.
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

}  // namespace cutwater::wire
