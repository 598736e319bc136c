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
//
// Where the memory may not be mapped (the daemon says why: access, layout, clock), and with an
// address `unix:PATH?ask`, the same objects ask the daemon over the socket: the same answers from
// the same code, at ~200 times the cost of a mapped decision. Each ask ends by
// ClientOptions::ask_timeout. Several threads share one connection; there is no thread of ours.
//
// Without a daemon, at open() or later, ClientOptions::if_absent answers, marked degraded(). A
// client that maps the memory needs no daemon and goes on. Whatever it is, the client attaches
// again by itself, on a caller's slow path, at growing intervals of at most 1 s: to a daemon that
// is there again, to a memory that superseded the old one. Each such change is one line of the log.
//
// fork(): children go on deciding in the inherited mapping with the same objects; a child that asks
// over the socket opens a session of its own at its first ask. The library never touches the
// parent's connection from a child; threads of a child count on the shared stripe.
// Without memory (std::bad_alloc): decisions and asks never need any; what returns a Result says
// NoMemory and keeps nothing; only what returns text or lists (explain(), status(), answers for
// HTTP) lets the exception pass.
// Thread safety: every method from any thread. Creates no files, no threads, no signal handlers.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <cutwater/admission.hpp>
#include <cutwater/breaker.hpp>
#include <cutwater/bulkhead.hpp>
#include <cutwater/decision.hpp>
#include <cutwater/enter.hpp>
#include <cutwater/error.hpp>
#include <cutwater/export.hpp>
#include <cutwater/limit.hpp>
#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

/// What limits answer while no daemon answers and no memory is mapped. All but Fail let open()
/// succeed without a daemon.
enum class IfAbsent : std::uint8_t {
  Fail,       ///< open() fails; a daemon that is lost later: as Deny
  Deny,       ///< refused, Reason::Degraded; retry_after() is when to try again, a hint
  Allow,      ///< allowed
  InProcess,  ///< decided by limits of this process alone, ClientOptions::in_process
};

/// What open() may be told. Defaults are right for a service.
struct ClientOptions {
  std::string name{};  ///< shown by `cutwaterctl clients`; at most 64 bytes; default: the program's
  Nanos timeout{std::chrono::seconds{2}};      ///< of open() as a whole
  /// Of each ask over the socket, 1 ms .. 60 s. What is left of it travels with the ask: the daemon
  /// does not begin one that is late. An ask that is not answered by then is answered by if_absent.
  Nanos ask_timeout{std::chrono::milliseconds{100}};
  /// Default: $CUTWATER_IF_ABSENT (fail, deny, allow, in-process), else Fail.
  std::optional<IfAbsent> if_absent{};
  /// For IfAbsent::InProcess: a configuration with the limits to use then, as a daemon's. A limit
  /// it does not name is answered as by Deny. Checked by open(), daemon or not.
  std::string in_process{};
  /// Takes each line of the log, without a newline: one per change of state, never one per call, no
  /// keys. Called on a caller's thread, never twice at once; it must not ask a limit. Default:
  /// stderr, behind "cutwater: ".
  std::function<void(std::string_view line)> log{};
};

/// How a client decides now.
enum class ClientWay : std::uint8_t {
  Memory,     ///< in the daemon's memory
  Socket,     ///< asks the daemon
  Absent,     ///< neither: if_absent answers
  Private,    ///< in_memory()
  Off,        ///< CUTWATER_ENABLED=false: everything is allowed, nothing is counted
};

/// What became of a client. Counts are of this process since open(), all ways together.
struct ClientStatus {
  ClientWay way = ClientWay::Private;
  std::string why{};             ///< why not Memory; "" when it is, or was not wanted
  std::uint64_t asked = 0;       ///< frames sent that ask something
  std::uint64_t degraded = 0;    ///< answers given by if_absent
  std::uint64_t late = 0;        ///< of these: the daemon did not answer by ask_timeout
  std::uint64_t unreported = 0;  ///< ends of calls that the daemon could not be told
  std::uint64_t attached = 0;    ///< times a daemon let this process in, the first included
};

/// A clock moved by hand, for tests and replay: Client::in_memory(yaml, clock). Segment time starts
/// at 0 of this clock. Thread safety: advance from one thread, everything else from any.
class CUTWATER_EXPORT SteppedClock {
 public:
  SteppedClock();
  /// Moves forward; a negative step is ignored (time only moves forward, law 4). Stops 18 years
  /// (2^59 ns) after the clock was made, where segment time ends.
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
  /// `address`: `unix:PATH`, or `unix:PATH?ask` to ask over the socket even where the memory may be
  /// mapped; empty: CUTWATER_ADDRESS, else the usual places in order (design 4.1, 6).
  /// InvalidArgument, always: the address, an option, CUTWATER_IF_ABSENT or CUTWATER_ENABLED.
  /// InvalidConfig, always: options.in_process. With IfAbsent::Fail also: NoDaemon names the
  /// address, what was tried and what to mount or start; NotPermitted has the daemon's reason and
  /// remedy; ClockMismatch, LayoutMismatch and Damaged say what is wrong with the memory it gave;
  /// Timeout after options.timeout.
  /// CUTWATER_ENABLED=false switches a program's limits off: nothing is opened, every limit exists
  /// and allows everything; `true` and `fallback` change nothing here.
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

  /// A circuit breaker by name. UnknownName lists the nearest names; over the socket the daemon is
  /// asked for them. With IfAbsent::Fail, NoDaemon while no daemon answers; otherwise any name is
  /// taken then, and if_absent answers.
  Result<Breaker> breaker(std::string_view name);

  /// A bulkhead by name. UnknownName lists the nearest names. Errors as of breaker().
  Result<Bulkhead> bulkhead(std::string_view name);

  /// One admission over a breaker, a bulkhead and limits of this client, all or none
  /// (<cutwater/enter.hpp>). Waits only for a place, and only where `ask` lets it.
  Entry enter(const EnterAsk& ask) noexcept;

  /// A limit by name. UnknownName lists the nearest names. While no daemon answers any name is
  /// taken; one that its daemon does not know is answered Reason::Degraded.
  Result<Limit> limit(std::string_view name);

  /// Several limits as one ask, all or none (<cutwater/admission.hpp>): 1..8 limits of this client,
  /// each with a key of its own; one frame where the daemon is asked. peek_all: what acquire_all
  /// would answer; writes nothing at all. Over the socket its limits are looked at one by one: what
  /// it says of those that do not refuse, and which of several equals it names, may differ.
  Admission acquire_all(std::span<const LimitAsk> asks) noexcept;
  Admission acquire_all(std::initializer_list<LimitAsk> asks) noexcept;
  Admission peek_all(std::span<const LimitAsk> asks) noexcept;
  Admission peek_all(std::initializer_list<LimitAsk> asks) noexcept;
  /// Undo of everything an admission charged; the tokens given back, of all limits together.
  /// TooLate: somebody charged after it somewhere; what could be given back was, the rest stays
  /// spent. AlreadyUsed: nothing is left to give back.
  Result<std::uint64_t> refund(Admission& admission) noexcept;
  Result<std::uint64_t> refund(Admission&& admission) noexcept;

  /// How this client decides now, and why. Asks nobody.
  ClientStatus status() const;

  /// Segment time, for tests and logs. A client that asks reckons it from the greeting, or, where
  /// the daemon's clock is stepped, asks.
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
  friend struct detail::AllElsewhere;
  friend struct detail::EnterParts;
  static Admission ask_all(std::span<const LimitAsk> asks, bool charge) noexcept;
  static Admission ask_in_memory(std::span<const LimitAsk> asks, bool charge) noexcept;

  explicit Client(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace cutwater
