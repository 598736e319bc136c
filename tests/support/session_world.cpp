// SPDX-License-Identifier: Apache-2.0
#include "support/session_world.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cutwater::test {

using client::AskEnd;
using client::Call;
using wire::MessageType;

namespace {

constexpr std::size_t kMostCalls = 24;   // at once
constexpr std::uint32_t kCreditItems = 300;
constexpr std::size_t kRounds = 100'000;  // to come to the end; far more than it takes

std::string key_of(std::uint64_t number) { return "call " + std::to_string(number); }

/// 0 for a key that was spoilt on its way.
std::uint64_t number_of(std::string_view key) {
  return std::strtoull(std::string(key.substr(std::min<std::size_t>(key.size(), 5))).c_str(),
                       nullptr, 10);
}

wire::Welcome greeting(bool resumed) {
  wire::Welcome welcome;
  welcome.features = wire::kFeatureRemember;
  welcome.instance = "main";
  welcome.daemon = welcome.session = std::string(wire::kIdSize, 's');
  welcome.resumed = resumed;
  welcome.rights = wire::kRightUse | wire::kRightLook;
  welcome.credit_items = kCreditItems;
  return welcome;
}

}  // namespace

struct SessionWorld::Asked : Call {
  std::uint64_t number = 0;
  std::string bytes;
  std::string answer;   // payload as it came
  bool ended = false;
};

struct SessionWorld::Pending {
  std::uint32_t request = 0;
  wire::ServerAction action;
};

SessionWorld::SessionWorld(Choose choose) : choose_(std::move(choose)) { connect(); }
SessionWorld::~SessionWorld() = default;

void SessionWorld::fault(std::string what) {
  if (fault_.empty()) fault_ = std::move(what);
}

std::string SessionWorld::run(std::size_t steps) {
  for (std::size_t i = 0; i < steps && fault_.empty(); ++i) step();
  settle();
  return fault_;
}

void SessionWorld::step() {
  now_ns_ += choose_(1000);
  switch (choose_(16)) {
    case 0: case 1: case 2: case 3: return make_call();
    case 4: case 5: case 6: case 7: case 8: return move_bytes(false);
    case 9: case 10: case 11: return answer_one();
    case 12: return give_up_one();
    case 13: return move_bytes(true);
    case 14:
      cut();
      return connect();
    default:
      if (server_ && choose_(4) == 0) {
        carry_out(server_->go_away(wire::GoawayReason::RightsChanged, "", now_ns_));
      }
  }
}

void SessionWorld::make_call() {
  if (calls_.size() >= kMostCalls) return;
  auto asked = std::make_unique<Asked>();
  asked->number = ++tally_.calls;
  asked->bytes.assign(wire::kHeaderSize, '\0');
  const std::uint32_t kind = choose_(10);
  const std::size_t items = choose_(12) == 0 ? 1 + choose_(wire::kMaxItems) : 1;
  const std::vector<wire::Item> all(items, {"a", key_of(asked->number), 1, 0});
  std::string payload;
  if (kind == 0) {
    asked->type = MessageType::Peek;
    payload = *wire::encode(wire::Peek{all});
    const std::uint32_t wrong = choose_(8);  // nothing of it is counted: a byte, or its type
    if (wrong == 0) {
      const std::size_t reach = std::min<std::size_t>(payload.size(), 64);
      payload[choose_(static_cast<std::uint32_t>(reach))] = static_cast<char>(choose_(256));
    }
    if (wrong == 1) asked->type = static_cast<MessageType>(choose_(256));
  } else if (kind <= 2 && !answered_requests_.empty()) {
    const std::uint32_t of =
        answered_requests_[choose_(static_cast<std::uint32_t>(answered_requests_.size()))];
    asked->type = kind == 1 ? MessageType::Refund : MessageType::Cancel;
    payload = kind == 1 ? *wire::encode(wire::Refund{{{of, 0, {}}}})
                        : *wire::encode(wire::Cancel{of});
  } else if (kind == 3) {
    asked->type = MessageType::Enter;
    wire::Enter enter;
    enter.items.assign(1, all[0]);
    payload = *wire::encode(enter);
  } else if (kind == 4) {
    asked->type = MessageType::Outcome;
    asked->quiet = choose_(2) == 0;
    asked->posted = choose_(2) == 0;
    wire::Outcome outcome{std::vector<wire::OutcomeReport>(1)};
    outcome.reports[0].ticket = key_of(asked->number);
    payload = *wire::encode(outcome);
  } else {
    asked->type = MessageType::Acquire;
    payload = *wire::encode(wire::Acquire{choose_(4) == 0 ? 500U : 0U, 0, all});
    if (choose_(32) == 0) payload[1] = '\xa0';  // a string for its ttl: a fault, or a bad frame
  }
  const bool batch = kind == 0 || asked->type == MessageType::Acquire;
  asked->items = static_cast<std::uint32_t>(batch ? items : 1);
  asked->bytes += payload;
  asked->frame = &asked->bytes;
  asked->take = [](Call& call, std::string_view answer) {
    static_cast<Asked&>(call).answer = answer;
    return true;
  };
  client_.enqueue(*asked);
  calls_.push_back(std::move(asked));
  finish_calls();
}

// A piece from the client, then one to it; `all`: whatever there is.
void SessionWorld::move_bytes(bool all) {
  for (;;) {
    const auto bytes = client_.unsent();
    if (bytes.empty()) break;
    const std::size_t piece =
        all ? bytes.size()
            : 1 + choose_(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 200)));
    to_server_.append(bytes.substr(0, piece));
    client_.sent(std::min(piece, bytes.size()));
    if (!all) break;
  }
  if (server_ && server_->wants_input() && !to_server_.empty()) {
    const std::size_t piece = all ? to_server_.size()
                                  : 1 + choose_(static_cast<std::uint32_t>(to_server_.size()));
    const std::string bytes = to_server_.substr(0, piece);
    to_server_.erase(0, bytes.size());
    carry_out(server_->feed(bytes, {now_ns_, now_ns_}));
  }
  if (!to_client_.empty()) {
    const std::size_t piece = all ? to_client_.size()
                                  : 1 + choose_(static_cast<std::uint32_t>(to_client_.size()));
    input_.append(to_client_, 0, piece);
    to_client_.erase(0, piece);
    input_.erase(0, client_.feed(input_));
  }
  finish_calls();
  const bool over = client_.is_broken() || client_.drained() ||
                    (server_ && server_->state() == wire::SessionState::Closed);
  if (over && to_client_.empty()) {
    cut();
    connect();
  }
}

void SessionWorld::carry_out(wire::ServerActions actions) {
  for (auto& action : actions) {
    if (const auto* send = std::get_if<wire::SendBytes>(&action)) {
      to_client_ += send->bytes;
    } else if (!std::holds_alternative<wire::PeerFault>(action) &&
               !std::holds_alternative<wire::CloseConnection>(action)) {
      execute(action);
    }
  }
  if (server_ && server_->waiting_requests() > kCreditItems) fault("more waits than the credit");
}

// The application decides at once and answers now or later.
void SessionWorld::execute(const wire::ServerAction& action) {
  const auto request = std::visit(
      [](const auto& asked) -> std::uint32_t {
        if constexpr (requires { asked.message; }) return asked.request;
        else return 0;
      },
      action);
  const auto run = [&](std::string_view key) {
    ++tally_.executed;
    if (++executed_[number_of(key)] > 1) fault(std::string(key) + " was executed twice");
  };
  if (choose_(16) == 0) return carry_out(server_->busy(request, 1));
  const wire::Fault full{wire::ErrorCode::Internal, "", "no memory"};
  if (choose_(32) == 0) return carry_out(server_->fail(request, full));
  if (const auto* acquire = std::get_if<wire::AcquireRequested>(&action)) {
    if (acquire->begin_by_ns < now_ns_) {
      return carry_out(server_->answer(request, wire::expired_answer(acquire->message)));
    }
    run(acquire->message.items.at(0).key);
  } else if (const auto* enter = std::get_if<wire::EnterRequested>(&action)) {
    run(enter->message.items.at(0).key);
  } else if (const auto* outcome = std::get_if<wire::OutcomeRequested>(&action)) {
    run(outcome->message.reports.at(0).ticket);
    return give_answer({request, action});           // never later: it holds nobody up
  }
  if (choose_(3) == 0) give_answer({request, action});
  else pending_.push_back({request, action});
}

void SessionWorld::answer_one() {
  if (pending_.empty()) return;
  const std::size_t at = choose_(static_cast<std::uint32_t>(pending_.size()));
  Pending pending = std::move(pending_[at]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
  give_answer(std::move(pending));
}

// `remaining` of an answer is the number of its call, so that a mix-up shows.
void SessionWorld::give_answer(Pending pending) {
  const bool asks = std::holds_alternative<wire::AcquireRequested>(pending.action) ||
                    std::holds_alternative<wire::EnterRequested>(pending.action);
  if (!server_ && !asks) return pending_.push_back(std::move(pending));
  const auto deliver = [&](const auto& answer, std::size_t items, wire::Receipts receipts) {
    if (server_) {
      carry_out(server_->answer(pending.request, answer, std::move(receipts)));
    } else if (memory_) {
      (void)wire::remember_answer(*memory_, pending.request, answer, {items, std::move(receipts)});
    }
  };
  const auto spend = [&](const std::string& receipt) {
    if (receipt.empty()) return;
    const std::uint64_t number = number_of(receipt);
    if (spendable_[number] == 0) return fault("a receipt of " + receipt + " was spent twice");
    --spendable_[number];
    ++tally_.refunded;
  };
  if (const auto* acquire = std::get_if<wire::AcquireRequested>(&pending.action)) {
    const auto& items = acquire->message.items;
    wire::AcquireAnswer answer;
    wire::Receipts receipts;
    answer.decisions.resize(items.size());
    for (auto& decision : answer.decisions) decision.remaining = number_of(items[0].key);
    for (const auto& item : items) receipts.add(item.key);
    spendable_[number_of(items[0].key)] += static_cast<std::uint32_t>(items.size());
    answered_requests_.push_back(pending.request);
    deliver(answer, items.size(), std::move(receipts));
  } else if (const auto* peek = std::get_if<wire::PeekRequested>(&pending.action)) {
    wire::PeekAnswer answer;
    answer.decisions.resize(peek->message.items.size());
    for (auto& decision : answer.decisions) {
      decision.remaining = number_of(peek->message.items[0].key);
    }
    carry_out(server_->answer(pending.request, answer));
  } else if (const auto* enter = std::get_if<wire::EnterRequested>(&pending.action)) {
    wire::EnterAnswer answer;
    answer.admission.remaining = number_of(enter->message.items[0].key);
    deliver(answer, 1, {});
  } else if (std::holds_alternative<wire::OutcomeRequested>(pending.action)) {
    carry_out(server_->answer(pending.request, wire::OutcomeAnswer{{0}}));
  } else if (const auto* refund = std::get_if<wire::RefundRequested>(&pending.action)) {
    wire::RefundAnswer answer;
    for (const auto& part : server_->take_for(pending.request, refund->message)) {
      const bool late = part.code == 0 && choose_(8) == 0;
      if (part.code == 0 && !late) spend(part.receipt);
      answer.items.push_back({late ? std::uint16_t{71} : part.code, 0});
    }
    carry_out(server_->answer(pending.request, answer));
  } else if (const auto* cancel = std::get_if<wire::CancelRequested>(&pending.action)) {
    for (const auto& receipt : server_->take_for(cancel->message).receipts) spend(receipt);
    carry_out(server_->answer(pending.request, wire::CancelAnswer{}));
  }
}

void SessionWorld::give_up_one() {
  if (calls_.empty()) return;
  Asked& asked = *calls_[choose_(static_cast<std::uint32_t>(calls_.size()))];
  if (asked.ended || choose_(3) != 0) return;
  client_.abandon(asked);
  asked.ended = true;
  ++tally_.late;
  finish_calls();
}

// The line is gone with all that was on it. The daemon keeps the session's memory.
void SessionWorld::cut() {
  ++tally_.cuts;
  client_.disconnected();
  to_server_.clear();
  to_client_.clear();
  input_.clear();
  if (server_) {
    server_->ended();
    memory_ = server_->take_memory();
    if (memory_->items() > wire::kRememberedItems) fault("too many items are remembered");
    if (memory_->bytes() > wire::kRememberedBytes) fault("too many bytes are remembered");
    server_.reset();
  }
  // Between two connections the application may go on.
  for (std::uint32_t more = choose_(3); more > 0; --more) answer_one();
}

void SessionWorld::connect() {
  const bool resumed = memory_.has_value() && choose_(8) != 0;
  wire::AnswerMemory memory;
  if (resumed) {
    memory = std::move(*memory_);
    ++tally_.resumed;
  } else {
    pending_.clear();
    answered_requests_.clear();
  }
  memory_.reset();
  // What only looks, or undoes, ended with its connection; a repeat carries it out anew.
  std::erase_if(pending_, [](const Pending& pending) {
    return std::holds_alternative<wire::PeekRequested>(pending.action);
  });
  server_.emplace(wire::ServerSettings{}, now_ns_);
  wire::Hello hello;
  hello.features = wire::kFeatureRemember;
  (void)server_->feed(wire::encode_frame({.type = MessageType::Hello, .request = 1},
                                         *wire::encode(hello)),
                      {now_ns_, now_ns_});
  const auto welcome = greeting(resumed);
  (void)server_->welcome(welcome, now_ns_, std::move(memory));
  client_.connected(welcome, resumed);
  finish_calls();
}

void SessionWorld::finish_calls() {
  while (Call* const call = client_.finished()) {
    const auto at = std::find_if(calls_.begin(), calls_.end(),
                                 [&](const auto& asked) { return asked.get() == call; });
    if (at == calls_.end() || (*at)->ended) return fault("a call ended twice");
    check(**at);
    (*at)->ended = true;
  }
  std::erase_if(calls_, [](const auto& asked) { return asked->ended; });
}

void SessionWorld::check(Asked& asked) {
  const std::uint32_t times = executed_.contains(asked.number) ? executed_[asked.number] : 0;
  const bool counts = asked.type == MessageType::Acquire || asked.type == MessageType::Enter ||
                      asked.type == MessageType::Outcome;
  const std::string name = key_of(asked.number);
  switch (asked.end) {
    case AskEnd::Answered: ++tally_.answered; break;
    case AskEnd::Busy: ++tally_.busy; break;
    case AskEnd::Failed: ++tally_.failed; break;
    default: ++tally_.lost;
  }
  if (!counts) return;
  // A quiet one is as good as answered once it went out, and may be lost with its connection.
  if (asked.end == AskEnd::Answered && asked.quiet) return;
  if (asked.end == AskEnd::Answered) {
    std::uint16_t reason = 0;
    std::uint64_t remaining = 0;
    if (asked.type == MessageType::Acquire) {
      const auto answer = wire::decode<wire::AcquireAnswer>(asked.answer);
      if (!answer || answer->decisions.size() != asked.items) {
        return fault(name + ": no answer");
      }
      reason = answer->decisions.back().reason;
      remaining = answer->decisions.back().remaining;
    } else if (asked.type == MessageType::Outcome) {
      const auto answer = wire::decode<wire::OutcomeAnswer>(asked.answer);
      if (!answer || answer->codes.size() != 1) return fault(name + ": no answer");
      reason = answer->codes[0];
      remaining = asked.number;
    } else {
      const auto answer = wire::decode<wire::EnterAnswer>(asked.answer);
      if (!answer) return fault(name + ": no answer");
      reason = answer->admission.reason;
      remaining = answer->admission.remaining;
    }
    if (reason == static_cast<std::uint16_t>(wire::ItemError::Stale)) ++tally_.stale;
    if (reason == wire::kReasonAllowed && (times != 1 || remaining != asked.number)) {
      fault(name + " got an answer that is not its own");
    }
    if (reason == wire::kReasonExpired && times != 0) fault(name + " expired and was executed");
  } else if (asked.end != AskEnd::Lost && times != 0) {
    fault(name + " was executed, but it was told that it was not");
  }
}

// No more cuts: everything that was asked comes to its end.
void SessionWorld::settle() {
  for (std::size_t i = 0; i < kRounds && fault_.empty(); ++i) {
    if (calls_.empty() && pending_.empty()) return;
    move_bytes(true);
    answer_one();
  }
  if (fault_.empty()) fault("calls do not come to their end");
}

}  // namespace cutwater::test
