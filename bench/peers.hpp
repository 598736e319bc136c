// SPDX-License-Identifier: Apache-2.0
// Servers that are asked over a Unix socket, each a process of its own, and their cheapest clients.
//
//   echo    an epoll loop that sends back what it got: the least a server can do
//   Redis   PING, INCR and EVALSHA of a GCRA script (as libraries ship it, and one that does the
//           least), by a client that does nothing but send a request made beforehand and read until
//           its answer's lines are there; only where redis-server is installed
//   daemon  our cutwaterd, asked by the library with `unix:PATH?ask`
//
// A peer that cannot be started says why on stderr and has no pid. All die with this process.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace cutwater::bench {

/// One client's round trip: true when it got an answer that allows.
using RoundTrip = std::function<bool(std::uint64_t i)>;

/// A child process that serves on a socket in a folder of its own.
class Peer {
 public:
  Peer() = default;
  Peer(Peer&& other) noexcept;
  Peer& operator=(Peer&&) = delete;
  ~Peer();
  pid_t pid() const noexcept { return pid_; }
  const std::string& socket() const noexcept { return socket_; }
  /// CPU time used so far, ns.
  double cpu_ns() const;

  static Peer echo();
  static Peer redis();
  /// `config`: what its configuration has besides the place of its memory.
  static Peer daemon(const char* program, std::string_view config);
  /// A child that serves what comes at `listener` as it likes; `serve` does not return.
  static Peer of(const char* name, const std::function<void(int listener)>& serve);

 private:
  std::string folder_, socket_;
  pid_t pid_ = 0;
};

/// A connection to a socket's path, -1 without one.
int connect_to(const std::string& path);
/// Path of a program in this one's directory.
std::string program_beside(const char* name);

/// `bytes` there and back.
RoundTrip echo_client(const Peer& peer, std::size_t bytes);

enum class RedisCommand { Ping, Incr, Evalsha, BareEvalsha };
RoundTrip redis_client(const Peer& peer, RedisCommand command);

/// The limit that the next two ask for, as configuration.
extern const std::string_view kAskConfig;

/// try_acquire() of one key among 64, over the socket.
RoundTrip ask_client(const Peer& peer);
/// The same of 64 keys in one frame: one round trip.
RoundTrip batch_client(const Peer& peer);

inline constexpr std::size_t kBatchKeys = 64;

}  // namespace cutwater::bench
