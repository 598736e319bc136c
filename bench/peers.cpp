// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

#include <cutwater/client.hpp>

#include "reference.hpp"

namespace cutwater::bench {
namespace {

constexpr int kStartTries = 500, kStartWaitMs = 10;

/// GCRA as limiter libraries ship it for Redis (redis-gcra, go-redis/redis_rate and their kin):
/// time of Redis's clock in seconds, one GET, one SET that expires with the debt, and an answer of
/// four fields, the two durations as text since a script cannot return a fraction. ARGV: burst,
/// tokens, seconds, cost. Written for this bench; always admits here.
constexpr std::string_view kScript =
    "local interval = ARGV[3] / ARGV[2] "
    "local cost = tonumber(ARGV[4]) "
    "local t = redis.call('TIME') "
    "local now = (t[1] - 1500000000) + t[2] / 1000000 "
    "local tat = tonumber(redis.call('GET', KEYS[1]) or now) "
    "if tat < now then tat = now end "
    "local new_tat = tat + interval * cost "
    "local spare = now - (new_tat - interval * ARGV[1]) "
    "if spare < 0 then return {0, 0, tostring(-spare), tostring(tat - now)} end "
    "local reset = new_tat - now "
    "redis.call('SET', KEYS[1], string.format('%.9f', new_tat), 'PX', math.ceil(reset * 1000)) "
    "return {cost, math.floor(spare / interval), '-1', tostring(reset)}";
constexpr int kScriptLines = 7;  // of its answer

/// The least a script can do and still be GCRA: one number back, microseconds, no text.
constexpr std::string_view kBareScript =
    "local t = redis.call('TIME') "
    "local now = t[1] * 1000000 + t[2] "
    "local tat = tonumber(redis.call('GET', KEYS[1]) or now) "
    "if tat < now then tat = now end "
    "local next = tat + tonumber(ARGV[2]) "
    "if next - now > tonumber(ARGV[1]) then return 0 end "
    "redis.call('SET', KEYS[1], string.format('%.3f', next), 'EX', 100) "
    "return 1";

std::string make_folder() {
  // The daemon keeps its memory in there, so a tmpfs.
  char folder[] = "/dev/shm/cutwater-bench.XXXXXX";
  return mkdtemp(folder) == nullptr ? std::string{} : std::string(folder);
}

void be_quiet() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup2(nothing, fd);
}

[[noreturn]] void serve_echo(int listener) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int poll_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = listener;
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &wanted);
  std::array<epoll_event, 64> ready;
  std::array<char, 65536> bytes;
  for (;;) {
    const int n = epoll_wait(poll_fd, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = ready[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        wanted.data.fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (wanted.data.fd >= 0) epoll_ctl(poll_fd, EPOLL_CTL_ADD, wanted.data.fd, &wanted);
        continue;
      }
      const ssize_t got = read(fd, bytes.data(), bytes.size());
      if (got <= 0 || write(fd, bytes.data(), static_cast<std::size_t>(got)) != got) close(fd);
    }
  }
}

/// A connection that is closed with the last copy of its client.
std::shared_ptr<int> held_connection(const Peer& peer) {
  const int fd = connect_to(peer.socket());
  if (fd < 0) return nullptr;
  return {new int(fd), [](int* held) {
            close(*held);
            delete held;
          }};
}

bool write_all(int fd, std::string_view bytes) {
  return write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

std::string command_of(const std::vector<std::string>& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return out;
}

/// Sends `request` and reads until a line has ended; a bulk answer is two lines.
std::string call_redis(int fd, std::string_view request, int lines = 1) {
  std::string answer;
  if (!write_all(fd, request)) return answer;
  std::array<char, 512> bytes;
  while (lines > 0) {
    const ssize_t got = read(fd, bytes.data(), bytes.size());
    if (got <= 0) return {};
    answer.append(bytes.data(), static_cast<std::size_t>(got));
    int ended = 0;
    for (const char c : answer) ended += c == '\n' ? 1 : 0;
    if (ended >= lines) break;
  }
  return answer;
}

}  // namespace

const std::string_view kAskConfig =
    "capacity: { keys: 16384 }\n"
    "limits: { api: { rate: 10000000/s, burst: 1000000000 } }\n";

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return -1;
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

std::string program_beside(const char* name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  const std::string path(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1) + name;
}

Peer::Peer(Peer&& other) noexcept
    : folder_(std::move(other.folder_)), socket_(std::move(other.socket_)), pid_(other.pid_) {
  other.folder_.clear();
  other.pid_ = 0;
}

Peer::~Peer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

double Peer::cpu_ns() const {
  clockid_t clock;
  timespec reading{};
  if (pid_ <= 0 || clock_getcpuclockid(pid_, &clock) != 0) return 0;
  clock_gettime(clock, &reading);
  return static_cast<double>(reading.tv_sec) * 1e9 + static_cast<double>(reading.tv_nsec);
}

namespace {

/// True once somebody listens; false when the process ended or took too long.
bool wait_for(const std::string& socket, pid_t pid) {
  for (int i = 0; i < kStartTries; ++i) {
    const int fd = connect_to(socket);
    if (fd >= 0) {
      close(fd);
      return true;
    }
    if (waitpid(pid, nullptr, WNOHANG) == pid) return false;
    poll(nullptr, 0, kStartWaitMs);
  }
  return false;
}

}  // namespace

Peer Peer::echo() {
  return of("echo", [](int listener) { serve_echo(listener); });
}

Peer Peer::of(const char* name, const std::function<void(int)>& serve) {
  Peer peer;
  peer.folder_ = make_folder();
  peer.socket_ = peer.folder_ + "/" + name + ".sock";
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  peer.socket_.copy(address.sun_path, sizeof address.sun_path - 1);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 128) != 0) {
    std::fprintf(stderr, "cutwater-bench: %s: %m\n", name);
    close(listener);
    return peer;
  }
  peer.pid_ = fork();
  if (peer.pid_ == 0) serve(listener);
  close(listener);
  return peer;
}

Peer Peer::redis() {
  Peer peer;
  peer.folder_ = make_folder();
  peer.socket_ = peer.folder_ + "/redis.sock";
  peer.pid_ = fork();
  if (peer.pid_ == 0) {
    be_quiet();
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", peer.socket_.c_str(),
           "--save", "", "--appendonly", "no", "--dir", peer.folder_.c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  if (!wait_for(peer.socket_, peer.pid_)) {
    std::fprintf(stderr, "cutwater-bench: no redis-server here: nothing is compared with Redis\n");
    peer.pid_ = 0;
  }
  return peer;
}

Peer Peer::daemon(const char* program, std::string_view yaml) {
  Peer peer;
  peer.folder_ = make_folder();
  peer.socket_ = peer.folder_ + "/cutwater.sock";
  const std::string config = peer.folder_ + "/cutwater.yaml";
  std::ofstream(config) << "instance: { memory-directory: " << peer.folder_ << " }\n" << yaml;
  peer.pid_ = fork();
  if (peer.pid_ == 0) {
    be_quiet();
    unsetenv("NOTIFY_SOCKET");
    execl(program, program, "--config", config.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  if (!wait_for(peer.socket_, peer.pid_)) {
    std::fprintf(stderr, "cutwater-bench: %s does not serve\n", program);
    peer.pid_ = 0;
  }
  return peer;
}

RoundTrip echo_client(const Peer& peer, std::size_t bytes) {
  auto fd = held_connection(peer);
  if (!fd) return {};
  auto frame = std::make_shared<std::vector<char>>(bytes, 'x');
  return [fd, frame](std::uint64_t) {
    const ssize_t size = static_cast<ssize_t>(frame->size());
    if (write(*fd, frame->data(), frame->size()) != size) return false;
    ssize_t got = 0;
    while (got < size) {
      const ssize_t more = read(*fd, frame->data(), frame->size());
      if (more <= 0) return false;
      got += more;
    }
    return true;
  };
}

RoundTrip redis_client(const Peer& peer, RedisCommand command) {
  auto fd = held_connection(peer);
  if (!fd) return {};
  auto requests = std::make_shared<std::vector<std::string>>();
  const bool whole = command == RedisCommand::Evalsha, bare = command == RedisCommand::BareEvalsha;
  std::string sha;
  if (whole || bare) {
    const std::string script(whole ? kScript : kBareScript);
    const std::string answer = call_redis(*fd, command_of({"SCRIPT", "LOAD", script}), 2);
    if (answer.size() < 47) return {};
    sha = answer.substr(5, 40);
  }
  const Keys names(kBatchKeys);
  for (std::size_t i = 0; i < kBatchKeys; ++i) {
    const std::string key(names[i]);
    switch (command) {
      case RedisCommand::Ping:
        requests->push_back(command_of({"PING"}));
        break;
      case RedisCommand::Incr:
        requests->push_back(command_of({"INCR", key}));
        break;
      case RedisCommand::Evalsha:
        // As the daemon's limit: 10 million a second, a burst of 1000 million.
        requests->push_back(
            command_of({"EVALSHA", sha, "1", "g" + key, "1000000000", "10000000", "1", "1"}));
        break;
      case RedisCommand::BareEvalsha:
        requests->push_back(command_of({"EVALSHA", sha, "1", "b" + key, "1000000000", "0.1"}));
        break;
    }
  }
  return [fd, requests, lines = whole ? kScriptLines : 1](std::uint64_t i) {
    const std::string answer = call_redis(*fd, (*requests)[i % kBatchKeys], lines);
    return !answer.empty() && answer[0] != '-' && answer != ":0\r\n" &&
           !answer.starts_with("*4\r\n:0");
  };
}

namespace {

/// A client that asks over the socket, its limit and names.
struct Asking {
  explicit Asking(Client opened)
      : client(std::move(opened)), limit(client.limit("api").value()), names(kBatchKeys) {
    for (std::size_t i = 0; i < kBatchKeys; ++i) keys[i] = names[i];
  }
  Client client;
  Limit limit;
  Keys names;
  std::array<std::string_view, kBatchKeys> keys;
  std::array<Decision, kBatchKeys> answers;
};

std::shared_ptr<Asking> open_asking(const Peer& peer) {
  // A crowded machine answers late; what is measured is how late.
  auto client =
      Client::open("unix:" + peer.socket() + "?ask", {.timeout = std::chrono::seconds{20},
                                                      .ask_timeout = std::chrono::seconds{20},
                                                      .log = [](std::string_view) {}});
  if (!client) {
    std::fprintf(stderr, "cutwater-bench: %s\n", client.error().text().c_str());
    return nullptr;
  }
  if (!client->limit("api")) return nullptr;
  return std::make_shared<Asking>(std::move(*client));
}

}  // namespace

RoundTrip ask_client(const Peer& peer) {
  auto asking = open_asking(peer);
  if (!asking) return {};
  return [asking](std::uint64_t i) {
    return asking->limit.try_acquire(asking->keys[i % kBatchKeys]).allowed();
  };
}

RoundTrip batch_client(const Peer& peer) {
  auto asking = open_asking(peer);
  if (!asking) return {};
  return [asking](std::uint64_t) {
    asking->limit.acquire_batch(asking->keys, asking->answers);
    return asking->answers[kBatchKeys - 1].allowed();
  };
}

}  // namespace cutwater::bench
