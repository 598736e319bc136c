// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "wire/collect_actions.hpp"
#include "wire/message_table.hpp"
#include "wire/server_session.hpp"

namespace cutwater::wire {
namespace {

std::string our_range() {
  return "this daemon speaks versions " + std::to_string(kVersion) + " .. " +
         std::to_string(kVersion);
}

}  // namespace

ServerSession::ServerSession(ServerSettings settings, std::uint64_t now_ns)
    : settings_(settings),
      state_since_ns_(now_ns),
      last_frame_ns_(now_ns),
      seen_ns_(now_ns) {}

ServerActions ServerSession::feed(std::string_view bytes, Moment moment) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    resume(moment.now_ns);
    bool began_before = reader_.inside_frame();
    while (state_ != SessionState::Closed) {
      auto frame = reader_.next_view(bytes);
      if (!frame) {
        Fault fault = frame.fault();
        if (fault.code == ErrorCode::Version) fault.text += "; " + our_range();
        complain(0, fault, true, out);
        break;
      }
      if (!frame.value()) break;
      began_before = false;
      last_frame_ns_ = moment.now_ns;
      on_frame(*frame.value(), !bytes.empty(), moment, out);
    }
    if (reader_.inside_frame() && !began_before) frame_since_ns_ = moment.now_ns;
  });
}

void ServerSession::on_frame(const FrameView& frame, bool more_input, Moment moment,
                             ServerActions& out) {
  if ((frame.header.flags & ~kKnownFlags) != 0) {
    return complain(frame.header.request,
                    {ErrorCode::InvalidArgument, "flags",
                     "flags must be 0 .. " + std::to_string(kKnownFlags) + ", got " +
                         std::to_string(frame.header.flags)},
                    false, out);
  }
  if (state_ == SessionState::New) return on_new(frame, more_input, out);
  on_open(frame, moment, out);
}

void ServerSession::on_new(const FrameView& frame, bool more_input, ServerActions& out) {
  const std::uint32_t request = frame.header.request;
  if (hello_ || frame.header.type != MessageType::Hello || more_input) {
    const std::string what = frame.header.type == MessageType::Hello && !hello_
                                 ? "bytes behind HELLO"
                                 : describe(frame.header.type);
    return complain(request, {ErrorCode::NotNow, "", what + " before WELCOME"}, true, out);
  }
  auto hello = decode<Hello>(frame.payload);
  if (!hello) {
    const bool lost = hello.fault().code == ErrorCode::BadFrame;
    return complain(request, hello.fault(), lost, out);
  }
  if (hello->min_version > kVersion || hello->max_version < kVersion) {
    const std::string theirs =
        std::to_string(hello->min_version) + " .. " + std::to_string(hello->max_version);
    return complain(request,
                    {ErrorCode::Version, "",
                     "no common version: the client speaks " + theirs + ", " + our_range()},
                    true, out);
  }
  hello_ = request;
  offered_features_ = hello->features;
  out.push_back(HelloReceived{request, std::move(*hello)});
}

void ServerSession::on_open(const FrameView& frame, Moment moment, ServerActions& out) {
  const MessageType type = frame.header.type;
  const std::uint32_t request = frame.header.request;
  switch (type) {
    case MessageType::Hello:
    case MessageType::Auth:
      return complain(request, {ErrorCode::NotNow, "", describe(type) + " after WELCOME"}, false,
                      out);
    case MessageType::Ping: return on_ping(frame, moment, out);
    case MessageType::Bye: return on_bye(frame, moment, out);
    default: break;
  }
  const MessageRow* row = find_message(type);
  const bool from_daemon = (static_cast<std::uint8_t>(type) & kFromDaemon) != 0;
  if (row != nullptr && row->built && !from_daemon) return on_request(frame, moment, out);
  std::string why = " is not known here";
  if (from_daemon) why = " is sent by the daemon only";
  else if (row != nullptr) why = " is not answered by this version";
  complain(request, {ErrorCode::Unsupported, "", describe(type) + why}, false, out);
}

void ServerSession::on_ping(const FrameView& frame, Moment moment, ServerActions& out) {
  const auto ping = decode<Ping>(frame.payload);
  if (!ping) {
    const bool lost = ping.fault().code == ErrorCode::BadFrame;
    return complain(frame.header.request, ping.fault(), lost, out);
  }
  const auto pong = encode(Pong{ping->value, moment.clock_ns});
  if (!pong) return close(pong.error().text(), out);
  send(MessageType::Pong, frame.header.request, *pong, out);
}

void ServerSession::on_bye(const FrameView& frame, Moment moment, ServerActions& out) {
  const auto bye = decode<Bye>(frame.payload);
  if (!bye) {
    const bool lost = bye.fault().code == ErrorCode::BadFrame;
    return complain(frame.header.request, bye.fault(), lost, out);
  }
  if (bye_) {
    return complain(frame.header.request, {ErrorCode::NotNow, "", "BYE was said before"}, false,
                    out);
  }
  bye_ = frame.header.request;
  bye_quiet_ = (frame.header.flags & kFlagQuiet) != 0;
  if (state_ == SessionState::Ready) {
    state_ = SessionState::Draining;
    state_since_ns_ = moment.now_ns;
  }
  finish_bye(out);
}

ServerActions ServerSession::got_descriptors() {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ == SessionState::Closed) return;
    complain(0, {ErrorCode::BadFrame, "", "descriptors are never sent by a client"}, true, out);
  });
}

ServerActions ServerSession::unsent(std::size_t bytes, std::uint64_t now_ns) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    if (state_ == SessionState::Closed) return;
    if (bytes < unsent_bytes_ || unsent_bytes_ == 0) unsent_since_ns_ = now_ns;
    unsent_bytes_ = bytes;
    if (bytes >= kUnsentPause) paused_ = true;
    if (bytes >= settings_.unsent_max) {
      say_goaway(GoawayReason::SlowReader, 0, "answers are not taken", out);
      close("slow reader", out);
      return;
    }
    resume(now_ns);
    send_events(out);
  });
}

void ServerSession::ended() noexcept {
  state_ = SessionState::Closed;
  waiting_.clear();
  credit_.clear();
  watches_.clear();
  parked_ = 0;
}

std::optional<std::uint64_t> ServerSession::deadline_ns() const noexcept {
  std::optional<std::uint64_t> first;
  const auto consider = [&](std::uint64_t since_ns, std::uint64_t span_ns) {
    first = std::min(first.value_or(kNever), since_ns + span_ns);
  };
  if (state_ == SessionState::Closed) return first;
  if (state_ == SessionState::New) consider(state_since_ns_, settings_.hello_ns);
  if (state_ == SessionState::Draining) consider(state_since_ns_, settings_.drain_ns);
  if (unsent_bytes_ > 0) consider(unsent_since_ns_, settings_.stalled_ns);
  if (paused_) {
    if (wants_input()) consider(seen_ns_, 0);  // reading went on: tick() starts its deadlines anew
    return first;
  }
  if (state_ == SessionState::Ready) consider(last_frame_ns_, settings_.idle_ns);
  if (reader_.inside_frame()) consider(frame_since_ns_, settings_.inside_frame_ns);
  return first;
}

ServerActions ServerSession::tick(std::uint64_t now_ns) {
  return collect_actions<ServerAction>(*this, [&](ServerActions& out) {
    resume(now_ns);
    send_events(out);
    const auto first = deadline_ns();
    if (!first || now_ns < *first) return;
    const auto passed = [&](std::uint64_t since_ns, std::uint64_t span_ns) {
      return now_ns >= since_ns + span_ns;
    };
    if (state_ == SessionState::New && passed(state_since_ns_, settings_.hello_ns)) {
      close("no WELCOME within hello-timeout", out);
    } else if (state_ == SessionState::Draining && passed(state_since_ns_, settings_.drain_ns)) {
      close("drained", out);
    } else if (unsent_bytes_ > 0 && passed(unsent_since_ns_, settings_.stalled_ns)) {
      say_goaway(GoawayReason::SlowReader, 0, "answers are not taken", out);
      close("slow reader", out);
    } else if (!paused_ && reader_.inside_frame() &&
               passed(frame_since_ns_, settings_.inside_frame_ns)) {
      close("half a frame, then silence", out);
    } else if (!paused_ && state_ == SessionState::Ready &&
               passed(last_frame_ns_, settings_.idle_ns)) {
      say_goaway(GoawayReason::Idle, 0, "no frame for too long", out);
      close("idle", out);
    }
  });
}

bool ServerSession::wants_input() const noexcept {
  return state_ != SessionState::Closed && !over_credit_ && unsent_bytes_ < kUnsentPause;
}

// What the peer could not deliver while we did not read is not held against it.
void ServerSession::resume(std::uint64_t now_ns) {
  seen_ns_ = std::max(seen_ns_, now_ns);
  if (!paused_ || !wants_input()) return;
  paused_ = false;
  last_frame_ns_ = now_ns;
  frame_since_ns_ = now_ns;
}

void ServerSession::send(MessageType type, std::uint32_t request, std::string_view payload,
                         ServerActions& out) {
  out.push_back(SendBytes{
      encode_frame({.version = version_, .type = type, .request = request}, payload), false});
}

void ServerSession::complain(std::uint32_t request, const Fault& fault, bool closing,
                             ServerActions& out) {
  const auto payload = encode(ErrorMessage{fault.code, fault.field, fault.text, closing});
  if (payload) send(MessageType::Error, request, *payload, out);
  if (fault.code != ErrorCode::Internal) {
    out.push_back(PeerFault{fault.code, fault.text, state_ == SessionState::New});
  }
  if (closing) close(std::string(name_of(fault.code)) + ": " + fault.text, out);
}

void ServerSession::say_goaway(GoawayReason reason, std::uint64_t within_ns, std::string text,
                               ServerActions& out) {
  const auto payload = encode(Goaway{reason, within_ns, std::move(text)});
  if (payload) send(MessageType::Goaway, 0, *payload, out);
}

void ServerSession::close(std::string why, ServerActions& out) {
  if (state_ == SessionState::Closed) return;
  ended();
  out.push_back(CloseConnection{std::move(why)});
}

}  // namespace cutwater::wire
