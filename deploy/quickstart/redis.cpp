// SPDX-License-Identifier: Apache-2.0
#include "redis.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace cutwater::quickstart {
namespace {

/// A bucket as one number, in microseconds of Redis's clock: the same rule, decided by a server.
constexpr std::string_view kScript =
    "local t = redis.call('TIME') "
    "local now = t[1] * 1000000 + t[2] "
    "local burst, per = tonumber(ARGV[1]), tonumber(ARGV[2]) "
    "local tat = tonumber(redis.call('GET', KEYS[1]) or now) "
    "if tat < now then tat = now end "
    "local next = tat + per "
    "if next - now > burst * per then return 0 end "
    "redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', "
    "math.ceil((next - now) / 1000)) "
    "return 1";

constexpr int kStartTries = 300, kStartWaitMs = 10;
constexpr int kAnswerMs = 5000;
constexpr std::size_t kMaxAnswer = 4096;

Error system_error(const std::string& what) {
  return {Errc::System, what + ": " + std::strerror(errno)};
}

std::string find_program(const char* name) {
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/usr/bin:/usr/local/bin" : path;
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(folder.size() + 1, left.size()));
    std::string candidate = std::string(folder) + '/' + name;
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

shm::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {};
  path.copy(address.sun_path, path.size());
  shm::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  return fd;
}

void put(std::string& out, std::string_view part) {
  out += '$' + std::to_string(part.size()) + "\r\n";
  out += part;
  out += "\r\n";
}

/// In the child: becomes the server, without a word on our outputs. Does not return.
[[noreturn]] void become_server(const std::string& program, const std::string& folder) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(nothing, fd);
  const std::string socket = folder + "/redis.sock";
  ::execl(program.c_str(), "redis-server", "--port", "0", "--unixsocket", socket.c_str(), "--save",
          "", "--appendonly", "no", "--dir", folder.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

}  // namespace

Result<RedisServer> RedisServer::start() {
  const std::string program = find_program("redis-server");
  if (program.empty()) return Error{Errc::Unsupported, "redis-server is not installed"};
  char folder[] = "/tmp/cutwater-redis.XXXXXX";
  if (::mkdtemp(folder) == nullptr) return system_error(folder);
  RedisServer server;
  server.folder_ = folder;
  server.pid_ = ::fork();
  if (server.pid_ < 0) return system_error("fork");
  if (server.pid_ == 0) become_server(program, server.folder_);
  for (int i = 0; i < kStartTries; ++i) {
    if (connect_to(server.socket())) return server;
    if (::waitpid(server.pid_, nullptr, WNOHANG) == server.pid_) {
      server.pid_ = 0;
      return Error{Errc::System, "redis-server ended at its start"};
    }
    ::poll(nullptr, 0, kStartWaitMs);
  }
  return Error{Errc::Timeout, "redis-server does not answer"};
}

RedisServer::RedisServer(RedisServer&& other) noexcept
    : folder_(std::move(other.folder_)), pid_(other.pid_) {
  other.folder_.clear();
  other.pid_ = 0;
}

RedisServer::~RedisServer() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);  // it holds nothing worth keeping
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (folder_.empty()) return;
  ::unlink(socket().c_str());
  ::rmdir(folder_.c_str());
}

Result<RedisClient> RedisClient::connect(const std::string& socket) {
  RedisClient client(connect_to(socket));
  if (!client.fd_) return system_error(socket);
  std::string request = "*3\r\n";
  for (const std::string_view part :
       {std::string_view("SCRIPT"), std::string_view("LOAD"), kScript}) {
    put(request, part);
  }
  auto sha = client.call(request);
  if (!sha) return sha.error();
  client.sha_ = std::move(*sha);
  return client;
}

Result<bool> RedisClient::ask(std::string_view key, std::uint64_t burst,
                              std::uint64_t ns_per_token) {
  std::string request = "*6\r\n";
  put(request, "EVALSHA");
  put(request, sha_);
  put(request, "1");
  put(request, key);
  put(request, std::to_string(burst));
  put(request, std::to_string((ns_per_token + 999) / 1000));
  auto answer = call(request);
  if (!answer) return answer.error();
  if (*answer != "0" && *answer != "1") return Error{Errc::Protocol, "Redis: " + *answer};
  return *answer == "1";
}

/// Sends a request; gives the number or the string of the answer.
Result<std::string> RedisClient::call(std::string_view request) {
  while (!request.empty()) {
    const ssize_t sent = ::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent <= 0) return system_error("Redis");
    request.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string text;
  for (;;) {
    pollfd ready{fd_.get(), POLLIN, 0};
    char buffer[512];
    if (::poll(&ready, 1, kAnswerMs) <= 0) return Error{Errc::Timeout, "Redis does not answer"};
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (got <= 0 || text.size() > kMaxAnswer) return Error{Errc::Protocol, "Redis: no answer"};
    text.append(buffer, static_cast<std::size_t>(got));
    const std::size_t end = text.find("\r\n");
    if (end == std::string::npos) continue;
    if (text[0] == ':') return text.substr(1, end - 1);
    if (text[0] != '$') return Error{Errc::Protocol, "Redis: " + text.substr(0, end)};
    const std::size_t length = std::strtoul(text.c_str() + 1, nullptr, 10);
    if (text.size() >= end + 2 + length + 2) return text.substr(end + 2, length);
  }
}

}  // namespace cutwater::quickstart
