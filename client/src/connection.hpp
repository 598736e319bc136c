// SPDX-License-Identifier: Apache-2.0
// Connection: a blocking conversation with a daemon over its Unix socket, for opening a client and
// for the command line. It moves bytes and descriptors; what they mean is wire::ClientSession's.
//
//   auto link = Connection::connect("/run/cutwater/main/cutwater.sock", Deadline::in(1s));
//   auto greeting = link->hello(hello_for("cutwaterctl", wire::Want::Ask), Deadline::in(1s));
//   auto answer = link->read({.what = "limits"}, Deadline::in(1s));
//
// Every call ends by its deadline, whatever the peer does; the descriptor never blocks, is
// close-on-exec, and writing to a peer that went away raises no signal. One request at a time.
// Descriptors are taken only with a WELCOME, exactly three; any other number, or any at another
// time, closes them all and ends the connection.
//
// Errors, all with the path in their text: NoDaemon (nothing listens there, or it closed), Timeout,
// NotPermitted (the socket's mode, or the daemon's own refusal with its reason), Protocol (the peer
// speaks something else), Busy, Unsupported, InvalidArgument (the daemon's answer to this request;
// the connection stays usable), System. After NoDaemon, Timeout or Protocol the connection is
// closed: every further call gives NoDaemon.
// Thread safety: one thread at a time. Fork: a child calls abandon() and nothing else.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

#include "shm/directory.hpp"
#include "wire/session.hpp"

struct msghdr;

namespace cutwater::client {

/// A moment of CLOCK_BOOTTIME by which a call has ended.
class Deadline {
 public:
  static Deadline in(Nanos time) noexcept;
  /// Milliseconds left for poll(), rounded up; 0 when it has passed.
  int left_ms() const noexcept;
  bool passed() const noexcept { return left_ms() == 0; }

 private:
  explicit Deadline(std::int64_t at_ns) noexcept : at_ns_(at_ns) {}
  std::int64_t at_ns_;
};

/// What a WELCOME brought.
struct Greeting {
  wire::Welcome welcome;
  /// rules, state, stats in modes Map and MapRead; none otherwise. Closed by their destructors.
  std::array<shm::UniqueFd, wire::kMaxDescriptors> files;
  /// CLOCK_BOOTTIME just before HELLO went out and just after WELCOME was read.
  std::int64_t sent_ns = 0, received_ns = 0;
};

/// A HELLO as this build says it: versions, layout, time namespace; the clock is read when it is
/// sent. `name` is cut to wire::kMaxClientName bytes.
wire::Hello hello_for(std::string_view name, wire::Want want);

class Connection {
 public:
  /// Connects to the socket at `path` (at most 107 bytes; a longer one is InvalidArgument).
  static Result<Connection> connect(const std::string& path, Deadline deadline);

  /// First of all, once. A daemon that refuses answers with an error; one that gives less than was
  /// wanted says why in Greeting::welcome.why.
  Result<Greeting> hello(wire::Hello hello, Deadline deadline);

  Result<wire::ReadAnswer> read(const wire::Read& message, Deadline deadline);
  Result<wire::SteerAnswer> steer(const wire::Steer& message, Deadline deadline);
  Result<wire::Pong> ping(std::uint64_t value, Deadline deadline);
  /// Says goodbye and closes. Never waits for the answer: the daemon gives back what we hold on
  /// receipt.
  void bye() noexcept;

  /// Closes this process's copy of the descriptor without a word, after fork().
  void abandon() noexcept;
  /// Gives the descriptor away, behind hello(): somebody else goes on with the session.
  shm::UniqueFd release() noexcept { return std::move(fd_); }

  /// The descriptor, or -1 when closed.
  int fd() const noexcept { return fd_.get(); }
  const std::string& path() const noexcept { return path_; }

 private:
  Connection(std::string path, shm::UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  template <class Wanted>
  Result<Wanted> exchange(Result<wire::Outgoing> outgoing, Deadline deadline);
  Result<void> send(std::string_view bytes, Deadline deadline);
  Result<wire::ClientActions> receive(Deadline deadline);
  Result<void> wait_for(short events, Deadline deadline);
  Error broken(Errc code, std::string what);
  void take_descriptors(::msghdr& header);

  std::string path_;
  shm::UniqueFd fd_;
  wire::ClientSession session_;
  std::vector<shm::UniqueFd> received_files_;   // at most wire::kMaxDescriptors + 1
  bool files_bad_ = false;
};

}  // namespace cutwater::client
