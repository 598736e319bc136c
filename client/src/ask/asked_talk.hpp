// SPDX-License-Identifier: Apache-2.0
// What breakers and bulkheads over the socket have in common: one question, presented first where
// the session is another one, asked again where nothing was asked yet, and what answers when the
// daemon does not. Thread safety: everything from any thread.
#pragma once
#include <algorithm>
#include <cstdint>

#include "src/ask/asking.hpp"
#include "src/daemon_link.hpp"
#include "src/named_record.hpp"

namespace cutwater::detail {

inline std::int64_t told_ns(std::uint64_t ns) noexcept {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(ns, static_cast<std::uint64_t>(kNever.count())));
}

inline client::AskedCall* asked_of(std::uint64_t word) noexcept {
  return reinterpret_cast<client::AskedCall*>(static_cast<std::uintptr_t>(word));
}
inline std::uint64_t word_of(client::AskedCall* call) noexcept {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(call));
}

/// `question(socket, deadline)` ends by its deadline, `patience` after the usual one. True: it was
/// answered. False: `found` is what answers instead.
template <class Record, class Question>
bool converse(Record& record, Found<typename Record::SpotType>& found, Nanos patience,
              Question question) noexcept {
  client::DaemonLink& link = *record.link;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::int64_t usual = link.ask_deadline_ns();
    link.asked_calls().present(*found.socket, usual);
    const client::AskEnd end = question(*found.socket, usual + patience.count());
    if (end == client::AskEnd::Answered) {
      link.on_answered(*found.socket);
      return true;
    }
    if (end == client::AskEnd::Failed) break;
    link.on_unanswered(end, *found.socket);
    if (end != client::AskEnd::Unsent) break;
    found = find_spot(record);
    if (found.socket == nullptr) return false;
  }
  found = absent_spot(record);
  return false;
}

}  // namespace cutwater::detail
