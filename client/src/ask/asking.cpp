// SPDX-License-Identifier: Apache-2.0
#include "src/ask/asking.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <memory>

#include "base/clock.hpp"

namespace cutwater::client {
namespace {

/// Longest real time between two looks at a stepped clock.
constexpr std::int64_t kStepLookNs = 2'000'000;
/// A wait that certainly is too long, and fits a sum with a moment.
constexpr auto kLongest = static_cast<std::uint64_t>(kNever.count() / 2);

void sleep_until_boottime(std::int64_t at_ns) noexcept {
  const timespec until{at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr) == EINTR) {}
}

/// A call and the buffer of its frame, which goes back to the socket at the end.
template <class Call>
class Frame {
 public:
  Frame(AskSocket& socket, Call& call) noexcept : socket_(socket), call_(call) {
    call.frame = socket.take_frame();
  }
  ~Frame() { if (call_.frame != nullptr) socket_.give_frame(call_.frame); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Writes and asks until it is not Busy any more, or there is no time for another attempt.
  template <class Write>
  AskEnd run(std::int64_t deadline_ns, Write write) noexcept {
    if (call_.frame == nullptr) return AskEnd::Unsent;
    for (;;) {
      try {
        call_.frame->resize(wire::kHeaderSize);
        write(*call_.frame);
      } catch (const std::exception&) {
        return AskEnd::Unsent;             // no memory for the frame
      }
      socket_.ask(call_, deadline_ns);
      if (call_.end != AskEnd::Busy) return call_.end;
      const std::int64_t again =
          boottime_ns() + static_cast<std::int64_t>(std::min(call_.retry_after_ns, kLongest));
      if (again >= deadline_ns) return AskEnd::Busy;
      sleep_until_boottime(again);
      call_.end = AskEnd::Pending;
      call_.request = 0;
      call_.repeat = false;
    }
  }

 private:
  AskSocket& socket_;
  Call& call_;
};

struct DecisionsCall : Call {
  DecisionTaking taking;
  AskSocket* socket = nullptr;

  static bool on_answer(Call& call, std::string_view payload) {
    auto& self = static_cast<DecisionsCall&>(call);
    self.taking.stamp_ns = boottime_ns() + self.socket->clock_offset_ns();
    return take_decisions(payload, self.taking, {self.request, self.socket->session_number()});
  }
};

struct EnterCall : Call {
  AllTaking* taking = nullptr;
  AskSocket* socket = nullptr;

  static bool on_answer(Call& call, std::string_view payload) {
    auto& self = static_cast<EnterCall&>(call);
    self.taking->stamp_ns = boottime_ns() + self.socket->clock_offset_ns();
    return take_admission(payload, {self.request, self.socket->session_number()}, *self.taking);
  }
};

struct RefundCall : Call {
  RefundTold told;
  static bool on_answer(Call& call, std::string_view payload) {
    auto& told = static_cast<RefundCall&>(call).told;
    return take_refund(payload, told.code, told.tokens);
  }
};

struct ResolveCall : Call {
  wire::Resolved told;
  static bool on_answer(Call& call, std::string_view payload) {
    auto answer = wire::decode<wire::ResolveAnswer>(payload);
    if (!answer || answer->names.size() != 1) return false;
    static_cast<ResolveCall&>(call).told = std::move(answer->names[0]);
    return true;
  }
};

struct AdmissionCall : Call {
  AdmissionTold told;
  AskSocket* socket = nullptr;
  static bool on_answer(Call& call, std::string_view payload) {
    auto& self = static_cast<AdmissionCall&>(call);
    auto answer = wire::decode<wire::EnterAnswer>(payload);
    if (!answer) return false;
    self.told.admission = std::move(answer->admission);
    self.told.request = self.request;
    self.told.session = self.socket->session_number();
    self.told.stamp_ns = boottime_ns() + self.socket->clock_offset_ns();
    return true;
  }
};

struct PresentCall : Call {
  std::vector<std::string> tickets;
  AskSocket* socket = nullptr;
  std::uint32_t session = 0;
  static bool on_answer(Call& call, std::string_view payload) {
    auto& self = static_cast<PresentCall&>(call);
    auto answer = wire::decode<wire::PresentAnswer>(payload);
    if (!answer || answer->tickets.size() != self.items) return false;
    self.tickets = std::move(answer->tickets);
    self.session = self.socket->session_number();
    return true;
  }
};

struct PingCall : Call {
  std::int64_t clock_ns = 0;
  static bool on_answer(Call& call, std::string_view payload) {
    const auto pong = wire::decode<wire::Pong>(payload);
    if (!pong) return false;
    static_cast<PingCall&>(call).clock_ns = static_cast<std::int64_t>(pong->clock_ns);
    return true;
  }
};

std::uint64_t time_left(std::int64_t deadline_ns) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(deadline_ns - boottime_ns(), 1));
}

}  // namespace

AskEnd ask_decisions(AskSocket& socket, detail::LimitState& state,
                     std::span<const std::string_view> keys, const Wanted& wanted,
                     std::span<Decision> out, std::size_t& done,
                     std::int64_t deadline_ns) noexcept {
  done = wanted.look ? 1 : keys_of_frame(keys, socket.max_frame());
  DecisionsCall call;
  call.type = wanted.look ? wire::MessageType::Peek : wire::MessageType::Acquire;
  call.items = static_cast<std::uint32_t>(done);
  call.take = DecisionsCall::on_answer;
  call.socket = &socket;
  call.taking = {.state = &state,
                 .out = out.first(done),
                 .cost = wanted.cost,
                 .look = wanted.look,
                 .stamp_ns = 0};
  Frame frame(socket, call);
  return frame.run(deadline_ns, [&](std::string& bytes) {
    const std::string_view name = state.owner.name;
    const NamedAsk looked{name, keys[0], wanted.cost};
    if (wanted.look) return put_peek(bytes, {&looked, 1});
    const auto wait =
        static_cast<std::uint64_t>(std::max<std::int64_t>(wanted.max_wait.count(), 0));
    const AcquireHead head{time_left(deadline_ns), wait};
    if (wanted.after_the_fact) return put_charge(bytes, head, looked);
    put_acquire(bytes, head, name, keys.first(done), wanted.cost);
  });
}

AskEnd ask_enter(AskSocket& socket, AllTaking& taking, std::int64_t deadline_ns) noexcept {
  EnterCall call;
  call.type = wire::MessageType::Enter;
  call.items = static_cast<std::uint32_t>(taking.asks.size());
  call.take = EnterCall::on_answer;
  call.socket = &socket;
  call.taking = &taking;
  Frame frame(socket, call);
  return frame.run(deadline_ns, [&](std::string& bytes) {
    put_enter(bytes, {time_left(deadline_ns), 0}, taking.asks);
  });
}

AskEnd ask_peek(AskSocket& socket, std::span<const NamedAsk> asks, std::span<Decision> out,
                std::int64_t deadline_ns) noexcept {
  DecisionsCall call;
  call.type = wire::MessageType::Peek;
  call.items = static_cast<std::uint32_t>(asks.size());
  call.take = DecisionsCall::on_answer;
  call.socket = &socket;
  call.taking.out = out;
  call.taking.look = true;
  Frame frame(socket, call);
  return frame.run(deadline_ns, [&](std::string& bytes) { put_peek(bytes, asks); });
}

AskEnd ask_refund(AskSocket& socket, const DecisionData& data, RefundTold& told,
                  std::int64_t deadline_ns) noexcept {
  RefundCall call;
  call.type = wire::MessageType::Refund;
  call.take = RefundCall::on_answer;
  Frame frame(socket, call);
  const AskEnd end = frame.run(deadline_ns, [&](std::string& bytes) {
    put_refund(bytes, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data.slot)),
               static_cast<std::uint32_t>(data.tag));
  });
  if (end == AskEnd::Answered) told = call.told;
  return end;
}

AskEnd ask_admission(AskSocket& socket, const AdmissionAsk& ask, AdmissionTold& told,
                     std::int64_t deadline_ns) noexcept {
  AdmissionCall call;
  call.type = wire::MessageType::Enter;
  call.items = static_cast<std::uint32_t>(std::max<std::size_t>(ask.limits.size(), 1));
  call.take = AdmissionCall::on_answer;
  call.cancels = true;
  call.socket = &socket;
  Frame frame(socket, call);
  const AskEnd end = frame.run(deadline_ns, [&](std::string& bytes) {
    const auto wait = static_cast<std::uint64_t>(std::max<std::int64_t>(ask.max_wait.count(), 0));
    const bool configured = ask.max_wait == kNever;      // as long as the daemon lets it wait
    put_admission(bytes, {time_left(deadline_ns), configured ? wire::kNever : wait}, ask);
  });
  if (end == AskEnd::Answered) told = std::move(call.told);
  return end;
}

AskEnd ask_present(AskSocket& socket, const wire::Present& present,
                   std::vector<std::string>& tickets, std::uint32_t& session,
                   std::int64_t deadline_ns) noexcept {
  PresentCall call;
  call.type = wire::MessageType::Present;
  call.items = static_cast<std::uint32_t>(present.tickets.size());
  call.take = PresentCall::on_answer;
  call.socket = &socket;
  Frame frame(socket, call);
  const AskEnd end = frame.run(deadline_ns, [&](std::string& bytes) {
    const auto payload = wire::encode(present);
    if (payload) bytes += *payload;
  });
  if (end == AskEnd::Answered) {
    tickets = std::move(call.tickets);
    session = call.session;
  }
  return end;
}

bool post_outcome(AskSocket& socket, const wire::OutcomeReport& report, bool holds,
                  std::uint32_t session) noexcept {
  try {
    auto posted = std::make_unique<AskSocket::Posted>();
    posted->type = wire::MessageType::Outcome;
    posted->quiet = !holds;              // what holds a cell is repeated until it is answered
    posted->take = [](Call&, std::string_view payload) {
      return wire::decode<wire::OutcomeAnswer>(payload) ? true : false;
    };
    put_outcome(posted->bytes, report);
    return socket.post(posted, session);
  } catch (const std::exception&) {
    return false;                        // no memory for it
  }
}

AskEnd ask_resolve(AskSocket& socket, wire::NameKind kind, std::string_view name,
                   wire::Resolved& told, std::int64_t deadline_ns) noexcept {
  ResolveCall call;
  call.type = wire::MessageType::Resolve;
  call.take = ResolveCall::on_answer;
  Frame frame(socket, call);
  const AskEnd end = frame.run(deadline_ns, [&](std::string& bytes) {
    wire::Resolve message;
    message.names.push_back({kind, std::string(name)});
    const auto payload = wire::encode(message);
    if (payload) bytes += *payload;
  });
  if (end == AskEnd::Answered) told = std::move(call.told);
  return end;
}

AskEnd ask_clock(AskSocket& socket, std::int64_t& clock_ns, std::int64_t deadline_ns) noexcept {
  PingCall call;
  call.type = wire::MessageType::Ping;
  call.take = PingCall::on_answer;
  Frame frame(socket, call);
  const AskEnd end = frame.run(deadline_ns, [&](std::string& bytes) {
    const auto payload = wire::encode(wire::Ping{1});
    if (payload) bytes += *payload;
  });
  if (end == AskEnd::Answered) clock_ns = call.clock_ns;
  return end;
}

void sleep_for_place(AskSocket& socket, Nanos starts_in, Nanos ask_timeout) noexcept {
  const auto longest = std::min(starts_in.count(), static_cast<std::int64_t>(kLongest));
  if (!socket.stepped()) return sleep_until_boottime(boottime_ns() + longest);
  std::int64_t now = 0, start = -1;
  for (;;) {
    const std::int64_t deadline = boottime_ns() + ask_timeout.count();
    if (ask_clock(socket, now, deadline) != AskEnd::Answered) return;
    // A reading of no clock there is would not fit the sum either.
    now = std::clamp(now, std::int64_t{0}, static_cast<std::int64_t>(kLongest));
    if (start < 0) start = now + longest;
    if (now >= start) return;
    sleep_until_boottime(boottime_ns() + kStepLookNs);
  }
}

}  // namespace cutwater::client
