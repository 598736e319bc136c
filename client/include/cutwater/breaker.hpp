// SPDX-License-Identifier: Apache-2.0
// Breaker and Call: one dependency's circuit breaker, shared by every process of the host.
//
//   auto fraud = client.breaker("fraudCheck").value();
//   if (auto call = fraud.try_enter()) { ask(); call->succeeded(); }
//   else return busy(call.refusal().retry_after());
//
//   auto verdict = fraud.run([&] { return ask(); });          // the same, and outcomes by itself
//   if (!verdict) return busy(verdict.refusal().retry_after());
//
// While the breaker is closed, try_enter() is one look into shared memory: no system call, no
// allocation, nothing shared is written. Refusals say why and when to come back. A Call is one
// admitted attempt; its first word counts, further words are counted as used twice and change
// nothing. Destroyed without a word it was cancelled (half-open: the probe goes back); destroyed
// while an exception passes it failed, class "exception". What a failure's class means is the
// breaker's settings' (`record`, `ignore`): an ignored one records nothing.
// Durations are measured from the grant where the settings need them, unless one is given.
// Thread safety: Breaker from any thread at once; a Call from one thread at a time, and it may end
// on another than it began. Lifetime: neither outlives the Client. fork(): a child goes on with the
// same Breaker; Calls it inherited are its parent's and end there without a word. When it first has
// to hold a probe it gets a row of its own from the daemon, within ClientOptions::ask_timeout; by
// that its death is noticed. Without one its probes come back by their result or their deadline.
// A client that asks over the socket asks its daemon: the same answers, each within
// ClientOptions::ask_timeout. Outcomes are sent at once and not waited for; that of a probe is
// repeated until the daemon has it, others may be lost with their connection. One that could not be
// told is counted, ClientStatus::unreported. After a restart of the daemon whoever asks, or ends a
// call, next first presents the calls under way; it keeps their probes while this process lives.
// Without memory and daemon, or with CUTWATER_ENABLED=false, nothing is recorded and the program's
// choice answers, degraded(): Off and IfAbsent::Allow grant; Fail and Deny refuse, Reason::Degraded
// with a hint; InProcess asks the breaker of ClientOptions::in_process, which records in this
// process, and refuses without one.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <cutwater/decision.hpp>
#include <cutwater/error.hpp>
#include <cutwater/export.hpp>
#include <cutwater/outcome.hpp>
#include <cutwater/ran.hpp>
#include <cutwater/refusal_room.hpp>
#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

namespace detail {
struct AskedBreaker;
struct BreakerRecord;
struct BreakerPlace;
struct EnterParts;
}

/// Numbers are those of the protocol.
enum class BreakerStatus : std::uint8_t {
  Closed = 0, Open = 1, HalfOpen = 2, ForcedOpen = 3, Disabled = 4, MetricsOnly = 5,
};
/// "CLOSED", "OPEN", "HALF_OPEN", "FORCED_OPEN", "DISABLED", "METRICS_ONLY".
CUTWATER_EXPORT std::string_view name_of(BreakerStatus state) noexcept;

/// Why a call was not admitted, and when to come back.
class CUTWATER_EXPORT BreakerRefusal {
 public:
  BreakerRefusal() noexcept { why_[0] = why_[1] = 0; }

  /// Open, Probing (half-open and every probe is out, or a ramp), Degraded (no mapped memory, or
  /// the breaker is gone; text() says which and what to do).
  Reason reason() const noexcept { return reason_; }
  BreakerStatus state() const noexcept { return state_; }
  /// Exact to 1 ns unless is_hint(); never 0; kNever: not by itself, only by hand.
  Nanos retry_after() const noexcept { return retry_after_; }
  bool is_hint() const noexcept { return hint_; }
  /// Refused for this process alone: its calls fail and those of others do not.
  bool for_this_process() const noexcept { return process_; }
  std::string_view breaker_name() const noexcept;
  /// "breaker 'fraudCheck' is OPEN since 3.2 s (failure rate 60 % of 10 calls), does not permit
  /// calls, retry after 11.8 s". Of the moment it refused in, whenever it is read. Allocates.
  std::string text() const;

 private:
  friend class Breaker;
  friend struct detail::AskedBreaker;
  friend struct detail::EnterParts;
  Reason reason_ = Reason::Degraded;
  BreakerStatus state_ = BreakerStatus::Closed;
  bool hint_ = true;
  bool process_ = false;
  std::uint8_t nowhere_ = 0;         // detail::BreakerNowhere
  Nanos retry_after_{1};
  std::int64_t now_ns_ = 0;
  const detail::BreakerRecord* record_ = nullptr;
  const detail::BreakerPlace* place_ = nullptr;
  // Told over the socket: now_ns_ is the age of the state, < 0 unknown, and this what brought it
  // there, with a 0 behind it, then the pattern whose own breaker refused, or "", with another 0;
  // the bytes behind that are nobody's. Else numbers of the moment it refused in.
  bool told_ = false;
  char why_[159];
};

/// One admitted attempt. Moves, is never copied; a moved-from Call is empty: used().
class CUTWATER_EXPORT Call {
 public:
  Call() = default;
  Call(Call&& other) noexcept { *this = std::move(other); }
  Call& operator=(Call&& other) noexcept;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (kind_ != 0 || (place_ == nullptr && ticket_[0] != 0)) close();
  }

  /// `took`: how long the call took; left out: measured.
  void succeeded(std::optional<Nanos> took = {}) noexcept;
  /// `outcome_class`: built in are timeout, connect, reset, dns, tls, http-NNN, grpc:CODE,
  /// errno:NAME, local, exception, result, own; a program uses names of its own as it likes.
  /// `retry_after`: what the dependency asked for; where the breaker has open-on-retry-after, one
  /// that comes with http-429, http-503 or grpc:UNAVAILABLE opens at once for it, at most
  /// max-open-for; else it changes nothing.
  void failed(std::string_view outcome_class = "exception", std::optional<Nanos> took = {},
              std::optional<Nanos> retry_after = {}) noexcept;
  /// A failure by its exception, as run() does it. Call it in a catch block.
  void failed_by_exception(std::optional<Nanos> took = {}) noexcept;
  void ignored() noexcept;
  void cancelled() noexcept;
  /// A failure that opens at once, for `wait` (at most max-open-for) or as configured: the
  /// dependency said when to come back.
  void open_for(std::optional<Nanos> wait = {},
                std::string_view outcome_class = "http-503") noexcept;

  /// True when its word was said, or it holds nothing.
  bool used() const noexcept { return kind_ == 0; }
  /// True when this call is a half-open probe.
  bool is_probe() const noexcept { return kind_ == 2; }

 private:
  friend class Breaker;
  friend struct detail::AskedBreaker;
  friend struct detail::EnterParts;
  friend class Entered;
  void report(std::uint8_t ended, std::string_view outcome_class, std::optional<Nanos> took,
              bool open_now, std::optional<Nanos> open_for) noexcept;
  void end() noexcept;
  void close() noexcept;
  void report_value(const Outcome& outcome) noexcept;

  detail::BreakerPlace* place_ = nullptr;
  std::uint64_t ref_ = 0;            // who granted it: the name may have moved since
  std::uint64_t ticket_[2] = {};     // without a place: [0] is an AskedCall, or 0
  std::uint64_t life_ = 0;           // process_life() of the grant
  std::int64_t start_ns_ = 0;
  std::uint32_t epoch_ = 0;
  int exceptions_ = 0;               // passing when it was granted
  std::uint16_t cell_ = 0;
  std::uint8_t kind_ = 0;
  bool said_ = false;                // a word was said: further ones are counted
};

/// What try_enter() answers: a Call, or why not.
class CUTWATER_EXPORT Entered {
 public:
  Entered() noexcept {}
  Entered(Entered&& other) noexcept { *this = std::move(other); }
  Entered& operator=(Entered&& other) noexcept {
    granted_ = other.granted_;
    degraded_ = other.degraded_;
    call_ = std::move(other.call_);
    refusal_ = other.refusal_;
    return *this;
  }
  ~Entered() = default;
  explicit operator bool() const noexcept { return granted_; }
  bool granted() const noexcept { return granted_; }
  /// Answered without the memory all processes share: by IfAbsent or CUTWATER_ENABLED=false.
  bool degraded() const noexcept { return degraded_; }
  Call* operator->() noexcept { return &call_; }
  Call& operator*() noexcept { return call_; }
  Call&& take() noexcept { return std::move(call_); }
  /// Of a refused one; of a granted one it means nothing.
  const BreakerRefusal& refusal() const noexcept { return refusal_.get(); }

 private:
  friend class Breaker;
  friend struct detail::AskedBreaker;
  friend struct detail::EnterParts;
  /// Granted by a closed breaker.
  Entered(detail::BreakerPlace* place, std::uint64_t ref, std::uint64_t life, std::uint32_t epoch,
          int exceptions, std::int64_t start_ns) noexcept;
  bool granted_ = false;
  bool degraded_ = false;
  Call call_;
  detail::RefusalRoom<BreakerRefusal> refusal_;
};

class CUTWATER_EXPORT Breaker {
 public:
  std::string_view name() const noexcept;

  /// One look; one swap when it is half-open. `deadline`: how long the call may take from now, 0 =
  /// unknown; a probe that did not report by then, or within 10 min, is taken for a failure
  /// (probe-timeout when 0).
  Entered try_enter(Nanos deadline = Nanos{0}) noexcept;

  /// What try_enter() would answer; nothing is written, nothing is held.
  bool would_enter() const noexcept;

  /// The state as the next caller will find it: OPEN past its end shows as HALF_OPEN.
  /// Disabled, whatever was steered, while it or its instance is switched off (`enabled: false`).
  /// Without a memory to ask: Disabled when every call is granted, ForcedOpen when every call is
  /// refused.
  BreakerStatus state() const noexcept;
  /// The next decision in words. Allocates.
  std::string explain() const;

  /// By hand to Open, HalfOpen or Closed, for all processes. Open, from any state: the wait begins
  /// anew with one opening more in a row; with `wait` (1 ns..3660 d) it is that wait and no opening
  /// more. HalfOpen: behind Open or ForcedOpen only. Closed, from every state: an empty window, no
  /// opening counted. An act that held the breaker by hand ends. What lasts (ForcedOpen, Disabled,
  /// MetricsOnly) is the operator's: `cutwaterctl breaker`.
  /// The daemon makes it, over a connection of its own, within ClientOptions::timeout: needs the
  /// right `steer`, as the tool does. In memory it is made here. The answer says in words what the
  /// breaker is now, also when `enabled: false` lets every call through all the same.
  /// InvalidArgument: a state, a wait or a step there is not (Closed to HalfOpen); UnknownName: the
  /// breaker is gone; Busy: the name shares its pattern's own breaker, or others move it at this
  /// moment; NotPermitted; NoDaemon; Timeout: it may be made all the same; Unsupported:
  /// CUTWATER_ENABLED=false.
  Result<std::string> transition_to(BreakerStatus to, std::optional<Nanos> wait = {}) noexcept;

  /// Asks, calls, and reports: a value is judged by outcome_of(), an exception by its class.
  template <class Fn>
  auto run(Fn&& fn) -> Ran<std::invoke_result_t<Fn>, BreakerRefusal> {
    using T = std::invoke_result_t<Fn>;
    static_assert(!detail::kIsLater<T>,
                  "this function returns a future or an awaitable: its outcome is not known when "
                  "it returns. Use async_run, or report to a Call when it is done");
    static_assert(!std::is_same_v<std::remove_cvref_t<T>, bool>,
                  "is `false` a failure? Give run() a test of the result as second argument");
    return run_tested(std::forward<Fn>(fn), [](const auto& value) { return outcome_of(value); });
  }
  /// The same with a test of the value: true = a good one; or an Outcome.
  template <class Fn, class Test>
  auto run(Fn&& fn, Test&& test) -> Ran<std::invoke_result_t<Fn>, BreakerRefusal> {
    using T = std::invoke_result_t<Fn>;
    static_assert(!detail::kIsLater<T>,
                  "this function returns a future or an awaitable: its outcome is not known when "
                  "it returns. Use async_run, or report to a Call when it is done");
    return run_tested(std::forward<Fn>(fn), [&](const auto& value) {
      if constexpr (std::is_same_v<std::invoke_result_t<Test, decltype(value)>, Outcome>) {
        return test(value);
      } else {
        return test(value) ? Outcome::success() : Outcome::failure("result");
      }
    });
  }

 private:
  friend class Client;
  friend struct detail::AskedBreaker;
  friend struct detail::EnterParts;
  explicit Breaker(detail::BreakerRecord* record) noexcept : record_(record) {}
  Entered enter_slowly(Nanos deadline) noexcept;
  void enter_slowly(detail::BreakerPlace* place, Nanos deadline, Entered& out) noexcept;
  Entered enter_measured(detail::BreakerPlace* place, std::uint64_t ref, std::uint64_t life,
                         std::uint32_t epoch, int exceptions) noexcept;

  template <class Fn, class Judge>
  auto run_tested(Fn&& fn, Judge judge) -> Ran<std::invoke_result_t<Fn>, BreakerRefusal> {
    using T = std::invoke_result_t<Fn>;
    Entered entered = try_enter();
    if (!entered) return Ran<T, BreakerRefusal>(entered.refusal());
    try {
      if constexpr (std::is_void_v<T>) {
        std::forward<Fn>(fn)();
        entered->succeeded();
        return Ran<void, BreakerRefusal>();
      } else {
        T value = std::forward<Fn>(fn)();
        entered->report_value(judge(std::as_const(value)));
        return Ran<T, BreakerRefusal>(std::move(value));
      }
    } catch (...) {
      entered->failed_by_exception();
      throw;
    }
  }

  detail::BreakerRecord* record_;
};

}  // namespace cutwater
