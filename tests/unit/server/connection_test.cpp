// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace cutwater::server {
namespace {

using wire::MessageType;
const std::uint64_t kIdleNs = wire::ServerSettings{}.idle_ns;

/// A host with a clock moved by hand; it welcomes everybody.
class Host final : public SessionHost {
 public:
  void on_hello(Connection& from, const wire::HelloReceived&) override {
    wire::Welcome welcome;
    welcome.instance = "main";
    welcome.daemon = welcome.session = std::string(wire::kIdSize, 'x');
    welcome.rights = wire::kRightLook;
    if (with_row) {
      welcome.row_index = 2;
      from.notes.row = {2, 1};
      from.notes.mapped = true;
    }
    from.perform(from.session().welcome(std::move(welcome), now_ns));
  }
  void on_request(Connection& from, wire::ServerAction& action) override {
    const auto* asked = std::get_if<wire::ReadRequested>(&action);
    if (asked == nullptr) return;
    wire::ReadAnswer answer;
    answer.rows.push_back(wire::Value::map({{"text", std::string(30'000, 'x')}}));
    from.perform(from.session().answer(asked->request, answer));
  }
  void on_fault(Connection&, const wire::PeerFault&) override { ++faults; }
  void on_closed(Connection&, bool said_bye) override {
    ++closed;
    bye = said_bye;
  }
  wire::Moment moment() const override { return {now_ns, 0}; }

  std::uint64_t now_ns = 1'000'000'000;
  bool with_row = false;
  int faults = 0, closed = 0;
  bool bye = false;
};

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    peer_.reset(pair[0]);
    Connection::Socket socket(loop_, asio::local::stream_protocol(), pair[1]);
    connection_ = std::make_shared<Connection>(std::move(socket), 1, PeerProcess{}, host_);
    connection_->start();
  }
  ~ConnectionTest() override { connection_->drop(); }

  void turn() {
    loop_.restart();
    while (loop_.poll() > 0) {}
  }
  void say(MessageType type, std::uint32_t request, const std::string& payload) {
    const std::string bytes = wire::encode_frame({.type = type, .request = request}, payload);
    EXPECT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    turn();
  }
  void greet() { say(MessageType::Hello, 1, *wire::encode(wire::Hello{})); }
  /// Types of all frames that came, and whether the end came.
  std::string heard() {
    turn();
    std::string out;
    char piece[65536];
    while (true) {
      const ssize_t n = ::recv(peer_.get(), piece, sizeof piece, 0);
      if (n == 0) ended_ = true;
      if (n <= 0) break;
      bytes_.append(piece, static_cast<std::size_t>(n));
      turn();
    }
    wire::FrameReader reader(wire::kMaxFrameLargest);
    std::string_view rest = bytes_;
    while (true) {
      auto frame = reader.next(rest);
      if (!frame || !*frame) break;
      if ((*frame)->header.type == MessageType::Welcome) out += 'W';
      if ((*frame)->header.type == MessageType::Goaway) out += 'G';
      if ((*frame)->header.type == MessageType::ByeOk) out += 'B';
      if ((*frame)->header.type == MessageType::ReadAnswer) out += 'R';
      if ((*frame)->header.type == MessageType::Error) out += 'E';
      if ((*frame)->header.type == MessageType::Busy) out += 'b';
    }
    if (ended_) out += '.';
    return out;
  }
  void tick_after(std::uint64_t ns) {
    host_.now_ns += ns;
    connection_->tick(host_.moment());
  }

  asio::io_context loop_;
  Host host_;
  shm::UniqueFd peer_;
  std::shared_ptr<Connection> connection_;
  std::string bytes_;
  bool ended_ = false;
};

TEST_F(ConnectionTest, ASessionThatHoldsAPlaceIsSilentWhileItsCallRuns) {
  greet();
  connection_->notes.holds = true;
  tick_after(kIdleNs);
  EXPECT_EQ(heard(), "W");

  connection_->notes.holds = false;
  tick_after(1);

  EXPECT_EQ(heard(), "WG.");
}

TEST_F(ConnectionTest, ASessionWithoutARowEndsAfterFiveIdleMinutes) {
  greet();

  tick_after(kIdleNs - 1);
  EXPECT_EQ(heard(), "W");
  tick_after(1);

  EXPECT_EQ(heard(), "WG.");
  EXPECT_EQ(host_.closed, 1);
}

TEST_F(ConnectionTest, ASessionWithARowIsSilentForItsWholeLife) {
  host_.with_row = true;
  greet();

  for (int day = 0; day < 3; ++day) tick_after(86'400'000'000'000);

  EXPECT_EQ(heard(), "W");
}

TEST_F(ConnectionTest, AByteKeepsASessionAlive) {
  greet();
  tick_after(kIdleNs - 1);
  say(MessageType::Ping, 0, *wire::encode(wire::Ping{1}));

  tick_after(kIdleNs - 1);

  EXPECT_FALSE(heard().ends_with("."));
}

TEST_F(ConnectionTest, NoHelloInTimeEndsIt) {
  tick_after(2'000'000'000);

  EXPECT_EQ(heard(), ".");
}

TEST_F(ConnectionTest, ByeIsAnsweredAndTold) {
  greet();
  say(MessageType::Bye, 0, *wire::encode(wire::Bye{}));

  EXPECT_EQ(heard(), "WB.");
  EXPECT_TRUE(host_.bye);
}

TEST_F(ConnectionTest, AnEndWithoutByeIsToldAsSuch) {
  greet();
  peer_.reset();
  turn();

  EXPECT_EQ(host_.closed, 1);
  EXPECT_FALSE(host_.bye);
}

TEST_F(ConnectionTest, WhoNeverReadsIsNotReadFromAndThenLetGo) {
  greet();
  wire::Read asked;
  asked.what = "limits";
  const std::string payload = *wire::encode(asked);
  std::uint32_t request = 1;
  for (int i = 0; i < 200; ++i) {
    const std::string bytes =
        wire::encode_frame({.type = MessageType::Read, .request = ++request}, payload);
    if (::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;
    turn();
  }
  EXPECT_EQ(host_.closed, 0);

  tick_after(2'000'000'000);                    // no progress: GOAWAY
  tick_after(Connection::kLingerNs);            // and nobody takes that either

  EXPECT_EQ(host_.closed, 1);
}

TEST_F(ConnectionTest, ShutDownSaysGoodbye) {
  greet();

  connection_->shut_down();

  EXPECT_EQ(heard(), "WG.");
}

TEST_F(ConnectionTest, ShutDownAnswersWhatLiesInTheSocketBusy) {
  greet();
  wire::Read read;
  read.what = "limits";
  const std::string bytes =
      wire::encode_frame({.type = MessageType::Read, .request = 2}, *wire::encode(read));
  ASSERT_GT(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);

  connection_->shut_down();

  EXPECT_EQ(heard(), "WGb.");
}

TEST_F(ConnectionTest, LongReadsKeepTheOrderOfTheirBytes) {
  greet();
  constexpr std::uint64_t kPings = 20'000;
  std::string bytes;
  for (std::uint64_t i = 0; i < kPings; ++i) {
    bytes += wire::encode_frame({.type = MessageType::Ping, .request = 0},
                                *wire::encode(wire::Ping{i}));
  }
  wire::FrameReader reader(wire::kMaxFrameLargest);
  std::uint64_t answered = 0;
  std::size_t sent = 0;
  while (answered < kPings) {
    const std::size_t most = std::min<std::size_t>(bytes.size() - sent, 9'999);
    const ssize_t n = ::send(peer_.get(), bytes.data() + sent, most, MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    turn();
    char piece[65536];
    const ssize_t got = ::recv(peer_.get(), piece, sizeof piece, 0);
    ASSERT_NE(got, 0);
    std::string_view rest(piece, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    while (!rest.empty()) {
      const auto frame = reader.next(rest);
      ASSERT_TRUE(frame);
      if (!*frame) break;
      if ((*frame)->header.type != MessageType::Pong) continue;
      const auto pong = wire::decode<wire::Pong>((*frame)->payload);
      ASSERT_TRUE(pong);
      ASSERT_EQ(pong->value, answered++);
    }
  }
}

TEST_F(ConnectionTest, DescriptorsOfAPeerEndItsSession) {
  greet();
  std::string bytes = wire::encode_frame({.type = MessageType::Ping, .request = 0},
                                         *wire::encode(wire::Ping{1}));
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int given = peer_.get();
  std::memcpy(CMSG_DATA(head), &given, sizeof given);

  ASSERT_GT(::sendmsg(peer_.get(), &message, MSG_NOSIGNAL), 0);

  EXPECT_EQ(heard(), "WE.");
}

TEST_F(ConnectionTest, BadBytesAreAnsweredOnceAndEnd) {
  const std::string bytes(16, 'x');
  ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 16);

  EXPECT_EQ(heard(), "E.");
  EXPECT_EQ(host_.faults, 1);
}

}  // namespace
}  // namespace cutwater::server
