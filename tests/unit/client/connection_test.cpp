// SPDX-License-Identifier: Apache-2.0
#include "src/connection.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "shm/layout.hpp"
#include "unit/client/fake_daemon.hpp"

namespace cutwater::client {
namespace {

using namespace std::chrono_literals;
using test::FakeDaemon;
using test::HelloPlan;

/// Descriptors this process has open.
std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

Deadline soon() { return Deadline::in(60s); }

HelloPlan welcome_with(std::vector<std::string> names, std::vector<int> files) {
  HelloPlan plan{test::usual_welcome(), std::move(files), {}, false};
  plan.welcome.descriptors = std::move(names);
  if (!plan.welcome.descriptors.empty()) plan.welcome.mode = wire::Want::MapRead;
  return plan;
}

TEST(Connection, SaysWhoItIsAndIsWelcomed) {
  FakeDaemon daemon(welcome_with({}, {}));
  {
    auto link = Connection::connect(daemon.path(), soon());
    ASSERT_TRUE(link) << link.error().text();

    auto greeting = link->hello(hello_for("a client of tests", wire::Want::Map), soon());

    ASSERT_TRUE(greeting) << greeting.error().text();
    EXPECT_EQ(greeting->welcome.instance, "main");
    EXPECT_FALSE(greeting->files[0]);
    EXPECT_LE(greeting->sent_ns, greeting->received_ns);
    EXPECT_EQ(daemon.hello.client_name, "a client of tests");
    EXPECT_EQ(daemon.hello.layout.major, shm::kAbiMajor);
    EXPECT_EQ(daemon.hello.clock_ns, static_cast<std::uint64_t>(greeting->sent_ns));
  }
}

TEST(Connection, TakesExactlyThreeDescriptorsAndClosesThemAtTheEnd) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::size_t before = open_descriptors();
  {
    FakeDaemon daemon(welcome_with({"rules", "state", "stats"}, {null, null, null}));
    auto link = Connection::connect(daemon.path(), soon());
    auto greeting = link->hello(hello_for("t", wire::Want::MapRead), soon());

    ASSERT_TRUE(greeting) << greeting.error().text();
    for (const auto& file : greeting->files) {
      ASSERT_TRUE(file);
      EXPECT_NE(fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
    }
  }
  EXPECT_EQ(open_descriptors(), before);
  close(null);
}

TEST(Connection, AnyOtherNumberOfDescriptorsClosesThemAll) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::size_t before = open_descriptors();
  const std::vector<std::string> three{"rules", "state", "stats"};
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4},
                                 std::size_t{8}}) {
    FakeDaemon daemon(welcome_with(three, std::vector<int>(sent, null)));
    auto link = Connection::connect(daemon.path(), soon());
    auto greeting = link->hello(hello_for("t", wire::Want::MapRead), soon());

    EXPECT_EQ(greeting.error().code(), Errc::Protocol) << sent;
    EXPECT_EQ(link->fd(), -1);
  }
  EXPECT_EQ(open_descriptors(), before);
  close(null);
}

TEST(Connection, DescriptorsNobodyAnnouncedAreClosed) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::size_t before = open_descriptors();
  {
    FakeDaemon daemon(welcome_with({}, {null, null, null}));
    auto link = Connection::connect(daemon.path(), soon());
    auto greeting = link->hello(hello_for("t", wire::Want::Map), soon());

    EXPECT_EQ(greeting.error().code(), Errc::Protocol);
  }
  EXPECT_EQ(open_descriptors(), before);
  close(null);
}

TEST(Connection, RefusalCarriesTheDaemonsReason) {
  HelloPlan plan{test::usual_welcome(), {}, "uid 1001 is not in access.map", false};
  FakeDaemon daemon(plan);
  auto link = Connection::connect(daemon.path(), soon());

  auto greeting = link->hello(hello_for("t", wire::Want::Map), soon());

  EXPECT_EQ(greeting.error().code(), Errc::NotPermitted);
  EXPECT_NE(greeting.error().text().find("uid 1001 is not in access.map"), std::string::npos);
  EXPECT_NE(greeting.error().text().find(daemon.path()), std::string::npos);
  EXPECT_EQ(link->fd(), -1);
}

TEST(Connection, SilentDaemonEndsByTheDeadline) {
  HelloPlan plan{test::usual_welcome(), {}, {}, true};
  FakeDaemon daemon(plan);
  auto link = Connection::connect(daemon.path(), soon());

  auto greeting = link->hello(hello_for("t", wire::Want::Map), Deadline::in(20ms));

  EXPECT_EQ(greeting.error().code(), Errc::Timeout);
  EXPECT_EQ(link->read({}, soon()).ok(), false);
}

TEST(Connection, AsksAndIsAnswered) {
  FakeDaemon daemon(welcome_with({}, {}));
  daemon.on_ask = [](wire::ServerSession& session, const wire::ServerAction& action,
                     wire::ServerActions& out) {
    if (const auto* read = std::get_if<wire::ReadRequested>(&action)) {
      wire::ReadAnswer answer;
      answer.rows.push_back(wire::Value::map({{"what", wire::Value(read->message.what)}}));
      out = session.answer(read->request, answer);
    } else if (const auto* steer = std::get_if<wire::SteerRequested>(&action)) {
      out = steer->message.verb == "busy"
                ? session.busy(steer->request, 5'000'000)
                : session.fail(steer->request, {wire::ErrorCode::InvalidArgument, "verb", "no"});
    }
  };
  auto link = Connection::connect(daemon.path(), soon());
  ASSERT_TRUE(link->hello(hello_for("t", wire::Want::Ask), soon()));

  wire::Read read;
  read.what = "limits";
  const auto rows = link->read(read, soon());
  wire::Steer steer;
  steer.verb = "nonsense";
  const auto failed = link->steer(steer, soon());
  steer.verb = "busy";
  const auto busy = link->steer(steer, soon());
  const auto pong = link->ping(42, soon());

  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(*rows->rows.at(0).find("what")->as_string(), "limits");
  EXPECT_EQ(failed.error().code(), Errc::InvalidArgument);
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  ASSERT_TRUE(pong) << "an answer that is an error leaves the connection usable";
  EXPECT_EQ(pong->value, 42U);
  EXPECT_EQ(pong->clock_ns, 77U);
}

TEST(Connection, PeerThatSpeaksSomethingElseIsAProtocolError) {
  char name[] = "/tmp/cutwater-other-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string path = std::string(name) + "/s";
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  std::strcpy(place.sun_path, path.c_str());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  auto link = Connection::connect(path, soon());
  const int fd = accept(listener, nullptr, nullptr);
  constexpr std::string_view other = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ASSERT_EQ(write(fd, other.data(), other.size()), static_cast<ssize_t>(other.size()));

  auto greeting = link->hello(hello_for("t", wire::Want::Map), soon());

  EXPECT_EQ(greeting.error().code(), Errc::Protocol);
  close(fd);
  close(listener);
  std::filesystem::remove_all(name);
}

TEST(Connection, NobodyThereIsNoDaemon) {
  const auto none = Connection::connect("/tmp/there is no such socket", soon());
  EXPECT_EQ(none.error().code(), Errc::NoDaemon);

  std::string stale;
  {
    FakeDaemon daemon(welcome_with({}, {}));
    stale = daemon.path() + ".old";
    std::filesystem::create_hard_link(daemon.path(), "/tmp/cutwater-stale-" +
                                                         std::to_string(getpid()));
  }
  stale = "/tmp/cutwater-stale-" + std::to_string(getpid());
  const auto refused = Connection::connect(stale, soon());
  EXPECT_EQ(refused.error().code(), Errc::NoDaemon);
  EXPECT_NE(refused.error().text().find("nobody listens"), std::string::npos);
  std::filesystem::remove(stale);
}

TEST(Connection, PathsThatDoNotFitASocketAreInvalid) {
  EXPECT_EQ(Connection::connect("", soon()).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(Connection::connect("/" + std::string(107, 'x'), soon()).error().code(),
            Errc::InvalidArgument);
  EXPECT_EQ(Connection::connect("/" + std::string(106, 'x'), soon()).error().code(),
            Errc::NoDaemon);
}

TEST(Connection, DeadlineCountsDownToZero) {
  EXPECT_TRUE(Deadline::in(0ns).passed());
  EXPECT_TRUE(Deadline::in(-1s).passed());
  EXPECT_GT(Deadline::in(1h).left_ms(), 0);
  EXPECT_GT(Deadline::in(Nanos::max()).left_ms(), 0);
}

}  // namespace
}  // namespace cutwater::client
