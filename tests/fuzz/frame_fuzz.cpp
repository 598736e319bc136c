// SPDX-License-Identifier: Apache-2.0
// Bytes of a peer against the frame reader, the decoder and both session machines.
// Input: one byte that chooses (bit 0: a client's machine, bit 1: already welcomed, bit 2: answer
// requests, bits 3-7: length of the pieces, 0 = all at once), then the stream.
// Beyond crashes it checks: whatever we send can be read, what we hold is bounded, and the pieces
// in which bytes come change nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "support/plain_answers.hpp"
#include "wire/session.hpp"

namespace {

using namespace cutwater::wire;

void require(bool condition) {
  if (!condition) std::abort();
}

Hello hello() {
  Hello out;
  out.client_name = "fuzz";
  out.features = kFeatureRemember;
  return out;
}

Welcome welcome() {
  Welcome out;
  out.features = kFeatureRemember;
  out.instance = "main";
  out.daemon = out.session = std::string(kIdSize, 'x');
  out.rights = kRightUse | kRightLook | kRightSteer;
  out.credit_items = 16;
  return out;
}

template <class Message>
std::string frame(const Message& message, std::uint32_t request) {
  return encode_frame({.type = Message::kType, .request = request}, *encode(message));
}

struct Choice {
  bool client;
  bool welcomed;
  bool answers;
  std::size_t piece;
};

/// Everything sent; checks that it is frames of readable payloads.
std::string sent(const ServerActions& actions) {
  std::string out;
  for (const auto& action : actions) {
    if (const auto* send = std::get_if<SendBytes>(&action)) out += send->bytes;
  }
  FrameReader reader(kMaxFrameLargest);
  for (std::string_view rest = out; !rest.empty();) {
    const auto next = reader.next(rest);
    require(next.ok() && next->has_value() && decode_value((*next)->payload).ok());
  }
  return out;
}

/// Allows everything.
class Allows final : public AcquireServer {
 public:
  const AcquireAnswer& acquire_now(const AcquireView& asked, Receipts* receipts) override {
    answer_.decisions.resize(asked.items.size());
    for (const ItemView& item : asked.items) {
      require(item.cost <= kMaxCost && item.flags <= kKnownItemFlags);
      if (receipts != nullptr) receipts->add(item.key);
    }
    return answer_;
  }

 private:
  AcquireAnswer answer_;
};

std::string serve(Choice choice, std::string_view stream, AcquireServer* acquires = nullptr) {
  ServerSession session({}, 0);
  session.set_acquires(acquires);
  std::string out;
  if (choice.welcomed) {
    (void)session.feed(frame(hello(), 1), {});
    out += sent(session.welcome(welcome(), 0));
  }
  while (!stream.empty()) {
    const auto actions = session.feed(stream.substr(0, choice.piece), {});
    stream.remove_prefix(std::min(choice.piece, stream.size()));
    out += sent(actions);
    for (const auto& action : actions) {
      if (std::holds_alternative<HelloReceived>(action)) out += sent(session.welcome(welcome(), 0));
      if (choice.answers) out += sent(answer_plainly(session, action));
    }
    require(session.waiting_requests() <= 16);
    const bool runs = session.state() != SessionState::Closed && session.wants_input();
    require(!runs || session.deadline_ns().has_value());
  }
  (void)session.tick(1'000'000'000'000);
  (void)session.tick(2'000'000'000'000);  // the first may only have noticed that reading goes on
  require(session.state() == SessionState::Closed || !session.wants_input());
  return out;
}

std::size_t ask(Choice choice, std::string_view stream) {
  ClientSession client;
  std::size_t actions = 0;
  const auto said = client.hello(hello());
  if (choice.welcomed) {
    actions += client.feed(frame(welcome(), said->request)).size();
    Read read;
    read.what = "limits";
    Steer steer;
    steer.verb = "config.reload";
    (void)client.read(read);
    (void)client.steer(steer);
    (void)client.ask(Acquire{0, 0, {{"a", "k", 1, 0}, {"b", "k", 1, 0}}});
    (void)client.ask(Peek{{{"a", "k", 1, 0}}});
    (void)client.ask(Resolve{{{NameKind::Limit, "a"}}});
    (void)client.ask(Refund{{{4, 0, {}}}});
    (void)client.ask(Cancel{4});
    (void)client.ask(Enter{});
    (void)client.ask(Outcome{{OutcomeReport{}}});
    (void)client.ask(Present{{"t"}});
    (void)client.ask(Watch{1, "", 0, 1});
    (void)client.ping(1);
    (void)client.bye();
  }
  while (!stream.empty()) {
    actions += client.feed(stream.substr(0, choice.piece)).size();
    stream.remove_prefix(std::min(choice.piece, stream.size()));
    require(client.waiting_requests() <= 18);
  }
  return actions;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = data[0] >> 3;
  Choice choice{.client = (data[0] & 1) != 0,
                .welcomed = (data[0] & 2) != 0,
                .answers = (data[0] & 4) != 0,
                .piece = piece == 0 ? stream.size() : piece};
  if (choice.client) {
    const std::size_t in_pieces = ask(choice, stream);
    choice.piece = stream.size();
    require(ask(choice, stream) == in_pieces);
    return 0;
  }
  // With ACQUIREs decided at once, what is sent depends on the pieces, but all of it can be read.
  Allows allows;
  (void)serve(choice, stream, &allows);
  const std::string in_pieces = serve(choice, stream);
  // Before WELCOME, and with answers in between, the pieces do matter.
  if (!choice.welcomed || choice.answers) return 0;
  choice.piece = stream.size();
  require(serve(choice, stream) == in_pieces);
  return 0;
}
