// SPDX-License-Identifier: Apache-2.0
#include "top_keys.hpp"

#include "memory.hpp"
#include "rule/limit_settings.hpp"
#include "shm/limit/tops.hpp"

namespace cutwater::server {

void TopKeys::decided(const shm::AdmitAsk& ask, bool allowed) {
  const bool all = in_tick_ < kAllPerTick;
  if (all) ++in_tick_;
  else if (++beyond_ % kOneOf != 0) return;
  const shm::View& view = memory_.view();
  if (ask.limit.index >= view.limit_count) return;
  const auto& config = view.limit_config(view.current(), ask.limit.index);
  const bool shown = config.show_keys == static_cast<std::uint8_t>(rule::ShowKeys::Shown);
  shm::note_top(view, {.limit = ask.limit.index,
                       .key = ask.key.hash,
                       .text = shown ? ask.key.text : std::string_view{},
                       .weight = all ? 1 : kOneOf,
                       .refused = !allowed});
}

}  // namespace cutwater::server
