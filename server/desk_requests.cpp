// SPDX-License-Identifier: Apache-2.0
// What sessions ask for: who answers it, late answers, and events.
#include "desk.hpp"

namespace cutwater::server {

namespace {

template <class Asked>
constexpr bool kIsForDesk = std::is_same_v<Asked, wire::ReadRequested> ||
                            std::is_same_v<Asked, wire::SteerRequested> ||
                            std::is_same_v<Asked, wire::WatchRequested>;
template <class Asked>
constexpr bool kIsForAsking = false;
template <class Message>
constexpr bool kIsForAsking<wire::Requested<Message>> = true;

}  // namespace

void Desk::on_request(Connection& from, wire::ServerAction& action) {
  std::visit(
      [&](const auto& asked) {
        using Asked = std::decay_t<decltype(asked)>;
        if constexpr (kIsForDesk<Asked>) {
          serve(from, asked);
          return;
        }
        if constexpr (std::is_same_v<Asked, wire::EnterRequested>) {
          if (asked.message.breaker || asked.message.bulkhead) need_row(from);
        }
        if constexpr (!kIsForDesk<Asked> && kIsForAsking<Asked>) asking_.serve(from, asked);
      },
      action);
}

void Desk::serve(Connection& from, const wire::ReadRequested& asked) {
  auto answer = reader_->answer(asked.message, from.session().max_frame());
  if (auto* fault = std::get_if<wire::Fault>(&answer)) {
    return from.perform(from.session().fail(asked.request, std::move(*fault)));
  }
  from.perform(from.session().answer(asked.request, std::get<wire::ReadAnswer>(answer)));
}

void Desk::serve(Connection& from, const wire::SteerRequested& asked) {
  steering_.carry_out(asked.message, who(from),
                      [this, weak = from.weak_from_this(), token = from.notes.session,
                       request = asked.request](const wire::SteerAnswer& answer) {
                        steered(weak, token, request, answer);
                      });
}

/// An act may be answered after its asker's connection was cut: then it is kept for whoever takes
/// the session over.
void Desk::steered(const std::weak_ptr<Connection>& asker, const std::string& token,
                   std::uint32_t request, const wire::SteerAnswer& answer) {
  const auto connection = asker.lock();
  if (connection && connections_.contains(connection->id())) {
    return connection->perform(connection->session().answer(request, answer));
  }
  for (const auto& [id, other] : connections_) {
    if (!other->notes.welcome || other->notes.session != token) continue;
    const auto taken = other;
    return taken->perform(taken->session().answer(request, answer));
  }
  if (wire::AnswerMemory* memory = store_.find(token)) {
    static_cast<void>(wire::remember_answer(*memory, request, answer, {}));
  }
}

void Desk::serve(Connection& from, const wire::WatchRequested& asked) {
  const shm::View& view = memory_.view();
  from.notes.watches = asked.watch != 0;
  from.perform(from.session().answer(
      asked.request, wire::WatchAnswer{asked.watch, feed_.next_seq(view)}));
  if (asked.watch == 0 || asked.message.from_seq == 0) return;
  for (const wire::SharedEvent& event : feed_.since(view, asked.message.from_seq)) {
    from.perform(from.session().event_for(asked.watch, event));
  }
}

void Desk::push_events() {
  for (const wire::SharedEvent& event : feed_.look(memory_.view())) {
    for_each_connection([&](Connection& connection) {
      if (connection.notes.watches) connection.perform(connection.session().event(event));
    });
  }
}

}  // namespace cutwater::server
