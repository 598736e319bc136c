// SPDX-License-Identifier: Apache-2.0
// The machine of asking over cut connections: every byte, and a storm of everything.
#include <random>

#include "unit/client/ask_session_support.hpp"

namespace cutwater::client {
namespace {

/// Three calls over a connection that is cut behind `sent` bytes out and `heard` bytes back.
void cut_and_resume(std::size_t sent, std::size_t heard, bool resumed) {
  AskSession session;
  session.connected(welcome(), false);
  std::deque<Asked> calls;
  for (int i = 0; i < 3; ++i) session.enqueue(calls.emplace_back());
  Peer peer;
  std::string answers;
  for (std::size_t left = sent; left != 0;) {
    const std::string_view bytes = session.unsent();
    const std::size_t part = std::min(left, bytes.size());
    answers += peer.take(bytes.substr(0, part));
    session.sent(part);
    left -= part;
  }
  session.feed(std::string_view(answers).substr(0, heard));
  const auto answered = [&] {
    return std::ranges::count_if(calls, [](const Asked& c) { return c.end == AskEnd::Answered; });
  };
  const auto answered_before = answered();

  session.disconnected();
  peer.in.clear();
  const std::size_t executed_before = peer.executed.size();
  if (!resumed) peer.executed.clear();
  session.connected(welcome(), resumed);
  session.feed(peer.take(drain(session)));

  for (const Asked& call : calls) {
    EXPECT_EQ(call.end == AskEnd::Lost, !resumed && call.end != AskEnd::Answered);
  }
  if (resumed) {
    EXPECT_EQ(answered(), 3);
    EXPECT_EQ(peer.executed.size(), 3U) << "each once";
    EXPECT_TRUE(std::ranges::is_sorted(peer.executed)) << "and in order";
  } else {
    EXPECT_LE(static_cast<std::size_t>(answered_before), executed_before);
  }
  EXPECT_EQ(session.first(), nullptr);
  EXPECT_FALSE(session.is_broken());
}

TEST(AskSessionCut, OnlyWhatDidNotGoOutIsTakenBack) {
  for (const bool quiet : {false, true}) {
    AskSession session;
    session.connected(welcome(1), false);
    Asked first, second;
    first.quiet = second.quiet = quiet;
    session.enqueue(first);
    session.enqueue(second);
    ASSERT_FALSE(session.unsent().empty());          // has its id and the credit

    EXPECT_TRUE(session.take_back(first));
    EXPECT_EQ(first.end, AskEnd::Pending);
    EXPECT_EQ(session.first(), &second);
    session.enqueue(first);
    ASSERT_FALSE(session.unsent().empty()) << "the credit is back";
    session.sent(1);

    EXPECT_FALSE(session.take_back(second)) << "one byte of it is out";
    EXPECT_TRUE(session.take_back(first));
    Peer peer;
    peer.in = second.bytes.substr(0, 1);
    session.feed(peer.take(drain(session)));
    EXPECT_EQ(second.end, AskEnd::Answered);
    EXPECT_FALSE(session.take_back(second));
    EXPECT_EQ(session.first(), nullptr);
    EXPECT_EQ(peer.seen.size(), 1U);
  }
}

TEST(AskSessionCut, ACutBehindAnyByteRepeatsWhatWasSentUnderItsId) {
  const std::size_t frame = wire::kHeaderSize + 2;
  for (std::size_t sent = 0; sent <= 3 * frame; ++sent) {
    for (std::size_t heard = 0; heard <= sent / frame * frame; ++heard) {
      SCOPED_TRACE(testing::Message() << sent << " out, " << heard << " back");
      cut_and_resume(sent, heard, true);
    }
  }
}

TEST(AskSessionCut, AQuietCallIsWhollySentOnceAndWantsNoAnswer) {
  const std::size_t frame = wire::kHeaderSize + 2;
  for (std::size_t sent = 0; sent <= frame; ++sent) {
    for (const bool resumed : {true, false}) {
      SCOPED_TRACE(testing::Message() << sent << " out, resumed " << resumed);
      AskSession session;
      session.connected(welcome(1), false);
      Asked quiet, behind;
      quiet.type = wire::MessageType::Outcome;
      quiet.quiet = quiet.posted = true;
      session.enqueue(quiet);
      session.enqueue(behind);
      Peer peer;
      peer.take(session.unsent().substr(0, sent));
      session.sent(sent);
      EXPECT_EQ(quiet.end, sent == frame ? AskEnd::Answered : AskEnd::Pending);
      session.disconnected();
      peer.in.clear();
      if (!resumed) peer.executed.clear();
      session.connected(welcome(1), resumed);

      session.feed(peer.take(drain(session)));   // it took no credit: what is behind it goes too

      const bool lost = !resumed && sent != frame;
      EXPECT_EQ(quiet.end, lost ? AskEnd::Lost : AskEnd::Answered);
      EXPECT_EQ(behind.end, AskEnd::Answered);
      const auto told = std::ranges::count_if(peer.seen, [](const wire::FrameHeader& header) {
        return (header.flags & wire::kFlagQuiet) != 0;
      });
      EXPECT_EQ(told, lost ? 0 : 1) << "what is about its session is not told to another one";
    }
  }
}

TEST(AskSessionCut, WithoutTheSessionWhatWasSentIsLostAndTheRestGoesOut) {
  AskSession session;
  session.connected(welcome(), false);
  Asked sent, half, unsent;
  for (Asked* call : {&sent, &half, &unsent}) session.enqueue(*call);
  session.sent(session.unsent().size());
  (void)session.unsent();
  session.sent(1);
  session.disconnected();

  session.connected(welcome(), false);
  Peer peer;
  session.feed(peer.take(drain(session)));

  EXPECT_EQ(sent.end, AskEnd::Lost);
  EXPECT_EQ(half.end, AskEnd::Lost) << "it may have arrived: nobody knows how far";
  EXPECT_EQ(unsent.end, AskEnd::Answered);
  EXPECT_EQ(peer.executed, std::vector<std::uint32_t>{2});
}

TEST(AskSessionCut, AFrameWhoseFirstByteNeverWentOutIsNotLost) {
  AskSession session;
  session.connected(welcome(), false);
  Asked call;
  session.enqueue(call);
  (void)session.unsent();                        // the socket took nothing
  session.disconnected();

  session.connected(welcome(), false);
  Peer peer;
  session.feed(peer.take(drain(session)));

  EXPECT_EQ(call.end, AskEnd::Answered);
}

TEST(AskSessionCut, AnythingAnywhereNeverCarriesOutTwice) {   // C127
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  AskSession session;
  session.connected(welcome(8), false);
  Peer peer;
  std::deque<Asked> calls;
  std::string back;
  bool up = true;
  for (int step = 0; step < 20'000; ++step) {
    switch (random() % 8) {
      case 0: session.enqueue(calls.emplace_back("\x91\x01", 1 + random() % 3)); break;
      case 1: case 2: {
        const std::string_view bytes = session.unsent();
        const std::size_t part = bytes.empty() ? 0 : 1 + random() % bytes.size();
        back += peer.take(bytes.substr(0, part));
        if (part != 0) session.sent(part);
        break;
      }
      case 3: case 4: {
        const std::size_t part = back.empty() ? 0 : 1 + random() % back.size();
        back.erase(0, session.feed(std::string_view(back).substr(0, part)));
        break;
      }
      case 5:
        if (random() % 8 == 0 && session.first() != nullptr) {
          std::vector<Call*> line;
          for (Call* at = session.first(); at != nullptr; at = at->behind) line.push_back(at);
          session.abandon(*line[random() % line.size()]);
        }
        break;
      default:
        if (random() % 64 == 0 || session.is_broken()) {
          session.disconnected();
          up = false;
        }
        if (!up) {
          back.clear();
          peer.in.clear();
          session.connected(welcome(8), true);
          up = true;
        }
    }
    finish(session);
  }
  back += peer.take(drain(session));
  session.feed(back);

  EXPECT_GT(peer.executed.size(), 100U);
  for (const Asked& call : calls) {
    EXPECT_LE(std::ranges::count(peer.executed, call.request), call.request == 0 ? 0 : 1);
    if (call.end == AskEnd::Answered) {
      EXPECT_EQ(std::ranges::count(peer.executed, call.request), 1);
    }
  }
}

}  // namespace
}  // namespace cutwater::client
