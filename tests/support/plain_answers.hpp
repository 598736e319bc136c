// SPDX-License-Identifier: Apache-2.0
// An application that answers every request of a ServerSession at once and in the plainest way: all
// is allowed, nothing is found. For tests that are about the session and not about deciding.
#pragma once
#include <type_traits>
#include <variant>

#include "wire/server_session.hpp"

namespace cutwater::wire {

/// The answer to one request; no actions for anything else.
inline ServerActions answer_plainly(ServerSession& session, const ServerAction& action) {
  return std::visit(
      [&]<class Asked>(const Asked& asked) -> ServerActions {
        const auto one_each = [&](auto answer, auto part, std::size_t asked_for) {
          (answer.*part).resize(asked_for);
          if constexpr (requires { asked.request; }) return session.answer(asked.request, answer);
        };
        if constexpr (std::is_same_v<Asked, ResolveRequested>) {
          return one_each(ResolveAnswer{}, &ResolveAnswer::names, asked.message.names.size());
        } else if constexpr (std::is_same_v<Asked, AcquireRequested>) {
          return one_each(AcquireAnswer{}, &AcquireAnswer::decisions, asked.message.items.size());
        } else if constexpr (std::is_same_v<Asked, PeekRequested>) {
          return one_each(PeekAnswer{}, &PeekAnswer::decisions, asked.message.items.size());
        } else if constexpr (std::is_same_v<Asked, CancelRequested>) {
          (void)session.take_for(asked.message);
          return session.answer(asked.request, CancelAnswer{});
        } else if constexpr (std::is_same_v<Asked, RefundRequested>) {
          RefundAnswer answer;
          for (const auto& part : session.take_for(asked.request, asked.message)) {
            answer.items.push_back({part.code, 0});
          }
          return session.answer(asked.request, answer);
        } else if constexpr (std::is_same_v<Asked, EnterRequested>) {
          return session.answer(asked.request, EnterAnswer{});
        } else if constexpr (std::is_same_v<Asked, OutcomeRequested>) {
          return one_each(OutcomeAnswer{}, &OutcomeAnswer::codes, asked.message.reports.size());
        } else if constexpr (std::is_same_v<Asked, PresentRequested>) {
          return one_each(PresentAnswer{}, &PresentAnswer::tickets, asked.message.tickets.size());
        } else if constexpr (std::is_same_v<Asked, ReadRequested>) {
          return session.answer(asked.request, ReadAnswer{});
        } else if constexpr (std::is_same_v<Asked, SteerRequested>) {
          return session.answer(asked.request, SteerAnswer{});
        } else if constexpr (std::is_same_v<Asked, WatchRequested>) {
          return session.answer(asked.request, WatchAnswer{asked.watch, 1});
        } else {
          return {};
        }
      },
      action);
}

/// True for the requests above.
inline bool is_request(const ServerAction& action) {
  return !std::holds_alternative<SendBytes>(action) &&
         !std::holds_alternative<HelloReceived>(action) &&
         !std::holds_alternative<PeerFault>(action) &&
         !std::holds_alternative<CloseConnection>(action);
}

}  // namespace cutwater::wire
