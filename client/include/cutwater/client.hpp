// SPDX-License-Identifier: Apache-2.0
// Client: the way into cutwater. Opens a daemon's shared memory
// (or makes a private one) and hands out limits.
//
//   auto client = cutwater::Client::open(); // CUTWATER_ADDRESS, else the usual places
//   if (!client) { std::cerr << client.error().text() << '\n'; return 1; }
//   auto api = client->limit("api-per-user").value();
//
// open() connects to the daemon's Unix socket, is checked by uid and gid, receives three
// descriptors, maps them and closes them before it returns; the connection stays open so that the
// daemon sees the process end. Decisions never use it: they go on while the daemon is dead, stopped
// or restarted (P6).
// fork(): children go on deciding in the inherited mapping with the same objects. The library never
// touches the parent's connection from a child; threads of a child count on the shared stripe.
// Thread safety: every method from any thread. Creates no files, no threads, no signal handlers.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <cutwater/decision.hpp>
#include <cutwater/error.hpp>
#include <cutwater/export.hpp>
#include <cutwater/limit.hpp>
#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

/// What open() may be told. Defaults are right for a service.
struct ClientOptions {
  std::string name{};  ///< shown by `cutwaterctl clients`; at most 64 bytes; default: the program's
  Nanos timeout{std::chrono::seconds{2}};      ///< of open() as a whole
};

/// A clock moved by hand, for tests and replay: Client::in_memory(yaml, clock). Segment time starts
/// at 0 of this clock. Thread safety: advance from one thread, everything else from any.
class CUTWATER_EXPORT SteppedClock {
 public:
  SteppedClock();
  /// Moves forward; a negative step is ignored (time only moves forward, law 4).
  void advance(Nanos by) noexcept;
  /// Moves to `at` since the clock was made; an earlier moment than the present is ignored.
  void set(Nanos at) noexcept;
  Nanos now() const noexcept;

  struct State;                                ///< what lies behind it: the library's own

 private:
  friend class Client;
  std::shared_ptr<State> state_;
};

class CUTWATER_EXPORT Client {
 public:
  /// `address`: `unix:PATH`; empty: CUTWATER_ADDRESS, else the usual places in order (design 4.1,
  /// 6). NoDaemon names the address, what was tried and what to mount or start; NotPermitted has
  /// the daemon's reason and remedy; ClockMismatch and LayoutMismatch say what differs; Timeout
  /// after options.timeout.
  static Result<Client> open(std::string_view address = {}, const ClientOptions& options = {});

  /// The same code in a private segment of this process: tests, replay, tools. `yaml` is the
  /// daemon's configuration; what concerns sockets and access is checked and not used.
  /// InvalidConfig has every error with line:column. Forked children share the private segment.
  /// With a SteppedClock time moves only when told.
  static Result<Client> in_memory(std::string_view yaml);
  static Result<Client> in_memory(std::string_view yaml, const SteppedClock& clock);

  /// Of an in-memory client: publishes another configuration, all or nothing, as a daemon's reload
  /// does. On a stepped clock the change takes effect at the present moment + 1 ns, and the clock
  /// is moved there.
  Result<void> reload(std::string_view yaml);

  /// A limit by name. UnknownName lists the nearest names.
  Result<Limit> limit(std::string_view name);

  /// Segment time, for tests and logs.
  Nanos now() const noexcept;
  /// Name of the instance.
  std::string_view instance() const noexcept;

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// For the project's own tools and tests: what lies behind this client. Not part of the stable
  /// interface.
  class Core;
  Core& core() noexcept { return *core_; }

 private:
  explicit Client(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace cutwater
