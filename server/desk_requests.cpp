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
  Line::Asker asker{from.weak_from_this(), from.notes.session, asked.request, from.notes.row,
                    from.session().remembers()};
  steering_.carry_out(asked.message, who(from),
                      [this, asker = std::move(asker)](const wire::SteerAnswer& answer) {
                        deliver(asker, answer, {});
                      });
}

/// Its connection may have been cut: then it is kept for whoever takes the session over.
template <class Answer>
void Desk::deliver(const Line::Asker& asker, const Answer& answer, wire::Receipts receipts) {
  const auto give = [&](Connection& to) {
    if constexpr (std::is_same_v<Answer, wire::EnterAnswer>) {
      asking_.note_holding(to);
      to.perform(to.session().answer(asker.request, answer, std::move(receipts)));
    } else {
      to.perform(to.session().answer(asker.request, answer));
    }
  };
  const auto connection = asker.connection.lock();
  if (connection && connections_.contains(connection->id())) return give(*connection);
  for (const auto& [id, other] : connections_) {
    if (!other->notes.welcome || other->notes.session != asker.session) continue;
    const auto taken = other;
    return give(*taken);
  }
  if (wire::AnswerMemory* memory = store_.find(asker.session)) {
    static_cast<void>(wire::remember_answer(*memory, asker.request, answer,
                                            {.receipts = std::move(receipts)}));
  }
}

template void Desk::deliver(const Line::Asker&, const wire::EnterAnswer&, wire::Receipts);

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
