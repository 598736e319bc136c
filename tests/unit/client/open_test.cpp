// SPDX-License-Identifier: Apache-2.0
// Client::open() against a scripted daemon that hands out a real memory.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/fork_page.hpp"
#include "shm/directory.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "src/core.hpp"
#include "unit/client/ask_daemon.hpp"

namespace cutwater::test {
namespace {

using namespace std::chrono_literals;

class OpenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/dev/shm/cutwater-open-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    folder_fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    shm::SegmentOptions options;
    options.capacity = {.keys = 1024, .limits = 16, .processes = 16, .stripes = 4, .events = 1024};
    auto made = shm::Segment::create_files(folder_fd, options);
    ASSERT_TRUE(made) << made.error().text();
    segment = std::make_unique<shm::Segment>(std::move(*made));
    rows = std::make_unique<shm::RowTable>(segment->view(), true);
    row = rows->grant({.pid = static_cast<std::uint32_t>(getpid()), .name = "tests"}).value();
    shm::Publisher publisher(segment->view());
    rule::LimitSettings limit;
    limit.windows.resize(1);
    limit.name = "api";
    limit.windows[0].rate_count = 1;
    limit.windows[0].rate_period_ns = rule::kNanosPerDay;
    limit.windows[0].burst = 5;
    ASSERT_TRUE(publisher.publish({limit}, 1));
  }
  void TearDown() override {
    close(folder_fd);
    std::filesystem::remove_all(folder);
  }

  /// A greeting that maps the memory; `false`: descriptors of nothing of ours.
  HelloPlan plan(bool right_files = true) {
    HelloPlan made{usual_welcome(), {}, {}, false};
    made.welcome.mode = wire::Want::Map;
    made.welcome.descriptors = {"rules", "state", "stats"};
    made.welcome.row_index = row.index;
    made.welcome.row_generation = row.generation;
    made.welcome.clock_ns = static_cast<std::uint64_t>(segment->view().clock.now());
    const auto files = shm::open_descriptors(folder_fd, false).value();
    for (const int fd : files) made.files.push_back(right_files ? fd : dup(files[1]));
    if (!right_files) for (const int fd : files) close(fd);
    return made;
  }

  static std::vector<std::string> open_files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      names.push_back(std::filesystem::read_symlink(entry.path(), gone).string());
    }
    return names;
  }

  std::string folder;
  int folder_fd = -1;
  std::unique_ptr<shm::Segment> segment;
  std::unique_ptr<shm::RowTable> rows;
  shm::RowGrant row;
};

TEST_F(OpenTest, DecidesInTheDaemonsMemoryAndKeepsNoDescriptorOfIt) {   // T25
  HelloPlan greeting = plan();
  const std::vector<int> sent = greeting.files;
  FakeDaemon daemon(std::move(greeting));

  auto client = Client::open(daemon.address(), {.name = "tests"});
  for (const int fd : sent) close(fd);          // the daemon's own

  ASSERT_TRUE(client) << client.error().text();
  for (const std::string& name : open_files()) {
    EXPECT_FALSE(name.ends_with("/rules") || name.ends_with("/state") || name.ends_with("/stats"))
        << name;
  }
  Limit api = client->limit("api").value();
  EXPECT_EQ(api.try_acquire("k").remaining(), 4U);
  EXPECT_EQ(api.try_acquire("k").decided_by(), DecidedBy::Memory);
  EXPECT_EQ(client->core().row().index, row.index);
  EXPECT_EQ(client->instance(), "main");
  EXPECT_EQ(shm::sum_counters(segment->view(), 0)[0], 2U) << "seen from the daemon's mapping";
  EXPECT_EQ(shm::stripes_in_use(segment->view()), 1U);
  EXPECT_EQ(client->reload("").error().code(), Errc::Unsupported);
}

TEST_F(OpenTest, RulesCannotBeMadeWritable) {   // T25
  FakeDaemon daemon(plan());
  auto client = Client::open(daemon.address());
  ASSERT_TRUE(client) << client.error().text();

  void* rules = client->core().view().rules_control;

  EXPECT_EQ(mprotect(rules, 4096, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST_F(OpenTest, ForkedChildDropsTheConnectionAndGoesOn) {   // C067
  FakeDaemon daemon(plan());
  auto client = Client::open(daemon.address());
  ASSERT_TRUE(client) << client.error().text();
  Limit api = client->limit("api").value();
  const int socket = client->core().connection()->fd();

  const pid_t pid = fork();
  if (pid == 0) {
    const bool dropped = client->core().connection() == nullptr && fcntl(socket, F_GETFD) == -1;
    const bool decides = api.try_acquire("k").allowed();
    const bool no_row = client->core().row().index == 0;
    { Client inherited = std::move(*client); }      // its destructor says no BYE
    _exit(dropped && decides && no_row ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);

  EXPECT_EQ(status, 0);
  EXPECT_TRUE(client->core().connection()->ping(1, client::Deadline::in(60s)));
  EXPECT_EQ(api.try_acquire("k").remaining(), 3U);
}

/// A client at a daemon that can be asked, and lets map what `greeting` says.
class AsksInsteadTest : public OpenTest {
 protected:
  AskDaemon daemon;
  std::vector<std::string> lines;

  void open_with(HelloPlan greeting) {
    const auto features = daemon.welcome.features;
    daemon.welcome = greeting.welcome;
    daemon.welcome.features = features;
    daemon.files = greeting.files;
    ClientOptions options;
    options.timeout = options.ask_timeout = 60s;
    options.log = [this](std::string_view line) { lines.emplace_back(line); };
    client.emplace(Client::open(daemon.address(), options));
    for (const int fd : greeting.files) close(fd);
  }
  std::optional<Result<Client>> client;

  /// It asks, told why once, and keeps nothing of the memory.
  void expect_asking(const std::string& why) {
    ASSERT_TRUE(*client) << client->error().text();
    Client& asker = client->value();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(asker.limit("api")->try_acquire("k").decided_by(), DecidedBy::Socket);
    }
    EXPECT_EQ(asker.status().way, ClientWay::Socket);
    EXPECT_NE(asker.status().why.find(why), std::string::npos) << asker.status().why;
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].find(why), std::string::npos) << lines[0];
    for (const std::string& name : open_files()) {
      EXPECT_FALSE(name.ends_with("/rules") || name.ends_with("/state")) << name;
    }
  }
};

TEST_F(AsksInsteadTest, OfFilesThatAreNoMemory) {
  open_with(plan(false));
  expect_asking("rules");
}

TEST_F(AsksInsteadTest, OfAMemoryWhoseClockIsNotOurs) {   // C032
  HelloPlan greeting = plan();
  greeting.welcome.clock_ns += 5'000'000'000;
  open_with(std::move(greeting));
  expect_asking("clock");
}

TEST_F(AsksInsteadTest, OfAnotherNumberOfDescriptors) {
  HelloPlan greeting = plan();
  close(greeting.files.back());
  greeting.files.pop_back();
  open_with(std::move(greeting));
  expect_asking("it sent 2 descriptors where 3 were announced");
}

TEST_F(AsksInsteadTest, WhereTheDaemonGivesLess) {   // C032, C051, C065
  for (const char* const why : {"uid 1001 is not in access.map", "clocks differ by 86400 s",
                                "layout 3 here, 2 there"}) {
    lines.clear();
    HelloPlan greeting{usual_welcome(), {}, {}, false};
    greeting.welcome.why = why;
    open_with(greeting);
    expect_asking(why);
  }
}

TEST_F(AsksInsteadTest, ButNotWithoutTheRightToUseIt) {
  HelloPlan greeting{usual_welcome(), {}, {}, false};
  greeting.welcome.rights = wire::kRightLook;
  greeting.welcome.why = "uid 1001 is not in access.map";
  open_with(greeting);

  EXPECT_EQ(client->error().code(), Errc::NotPermitted);
  EXPECT_NE(client->error().text().find("uid 1001 is not in access.map"), std::string::npos);
}

TEST_F(OpenTest, StuckDaemonIsATimeout) {
  HelloPlan greeting{usual_welcome(), {}, {}, true};
  FakeDaemon daemon(greeting);

  const auto client = Client::open(daemon.address(), {.timeout = 20ms});

  EXPECT_EQ(client.error().code(), Errc::Timeout);
}

TEST_F(OpenTest, NameBeyond64BytesIsInvalid) {
  const auto client = Client::open("unix:/nowhere", {.name = std::string(65, 'x')});

  EXPECT_EQ(client.error().code(), Errc::InvalidArgument);
}

}  // namespace
}  // namespace cutwater::test
