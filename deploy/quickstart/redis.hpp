// SPDX-License-Identifier: Apache-2.0
// A Redis of our own beside which decisions are timed: redis-server, started privately on a Unix
// socket in a folder of its own and stopped at the end, and a connection that asks a GCRA script by
// EVALSHA. Only as much of its protocol as this needs. Thread safety: one thread each.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

#include "processes.hpp"
#include "shm/directory.hpp"

namespace cutwater::quickstart {

class RedisServer {
 public:
  /// Unsupported: redis-server is not installed. System, Timeout: it does not start.
  static Result<RedisServer> start();
  RedisServer(RedisServer&& other) noexcept;
  RedisServer& operator=(RedisServer&&) = delete;
  /// Stops it and removes its folder.
  ~RedisServer();
  std::string socket() const { return folder_ + "/redis.sock"; }

 private:
  RedisServer() = default;
  std::string folder_;
  int pid_ = 0;
};

class RedisClient {
 public:
  /// Connects and loads the script.
  static Result<RedisClient> connect(const std::string& socket);

  /// One decision of the script: is one token there for the key? Protocol: an unexpected answer.
  Result<bool> ask(std::string_view key, std::uint64_t burst, std::uint64_t ns_per_token);

 private:
  explicit RedisClient(shm::UniqueFd fd) : fd_(std::move(fd)) {}
  Result<std::string> call(std::string_view request);

  shm::UniqueFd fd_;
  std::string sha_;
};

}  // namespace cutwater::quickstart
