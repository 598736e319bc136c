// SPDX-License-Identifier: Apache-2.0
// DaemonLink: an opened Client's standing relation with its daemon: where its limits are decided
// now, and the way back when that is lost.
//
//   Memory   a segment that is mapped and was not superseded. Needs nothing of this
//   Socket   asked over AskSocket: the memory may not be mapped, or `?ask`
//   Absent   neither; if_absent answers
//
// place() finds out and attaches when it must, on its caller's thread: one attempt at a time, at
// growing intervals of kPauseFirstNs .. kPauseMostNs, each bounded by the ask's time limit. Callers
// that come meanwhile get if_absent; at a process's first attempt they wait for it. Memories and
// records once handed out stay until the Client closes: threads may be in the middle of them.
// A session whose daemon may not have heard of its Client's end is left to LeftBehind; attaching,
// and an answered ask, end those of ended Clients.
//
// Every change of way is one line of Settings::log (kLinesAtOnce at once, then one a second).
// Forks: a child keeps the memory and the choice; it opens a socket of its own at its first ask.
// Thread safety: everything from any thread; open() and the destructor from one, alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <cutwater/client.hpp>
#include <cutwater/limit.hpp>

#include "src/ask/ask_socket.hpp"
#include "src/ask/asked_calls.hpp"
#include "src/ask/elsewhere.hpp"
#include "src/attach.hpp"
#include "src/give_back.hpp"
#include "src/life_lock.hpp"
#include "src/settings.hpp"

namespace cutwater::client {

inline constexpr std::int64_t kPauseFirstNs = 10'000'000;
inline constexpr std::int64_t kPauseMostNs = 1'000'000'000;
/// Memories one client may go through; beyond, it asks over the socket.
inline constexpr int kMostMemories = 64;
inline constexpr int kLinesAtOnce = 10;
/// A daemon that was started anew is told whose row is whose, once, by whoever decides next.
inline constexpr std::int64_t kOfferNs = 20'000'000;
/// A Client that ends waits so long, at most, for the answers to what it said last.
inline constexpr std::int64_t kLastWordNs = 20'000'000;

class DaemonLink {
 public:
  /// Client::open(): the core its Client stands on, which owns the link.
  static Result<std::unique_ptr<Client::Core>> open(Settings settings,
                                                    std::unique_ptr<Client::Core> in_process);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  /// Where limits are decided now; both nullptr: nowhere.
  struct Place {
    Client::Core* memory = nullptr;
    AskSocket* socket = nullptr;
  };
  Place place() noexcept;

  /// The record of this name in `core`, through state.instead; nullptr: it has no such limit.
  detail::LimitState* record_in(detail::LimitState& state, Client::Core& core) noexcept;
  /// True: `owner` is a record of this name in another memory of this link, or in process.
  bool is_record(std::string_view name, const void* owner) const noexcept;

  /// Client::limit() of a client whose core has no memory to look in.
  Result<detail::LimitState*> limit(Client::Core& head, std::string_view name);

  /// Asks the daemon over the socket whether it knows that name. An error: it does not, or may not
  /// say; without an answer it may.
  Result<void> resolve(wire::NameKind kind, std::string_view name);

  /// Which core its Client stands on.
  void set_head(Client::Core& head) noexcept { head_ = &head; }

  /// The answer while there is no daemon, counted.
  void answer_absent(detail::LimitState& state, std::string_view key, const Ask& ask,
                     detail::AskKind kind, Decision& out) noexcept;

  /// What IfAbsent::InProcess decides by now; nullptr: not that choice.
  Client::Core* in_process() const noexcept {
    const bool chosen = settings_.if_absent == IfAbsent::InProcess && !settings_.off;
    return chosen ? in_process_.get() : nullptr;
  }
  /// How long a refused caller does well to wait before it asks again.
  std::int64_t absent_retry_ns() const noexcept;
  /// Calls and places that are held over the socket.
  AskedCalls& asked_calls() noexcept { return asked_calls_; }
  /// What is to be given back as soon as a successor is mapped.
  detail::OwedList& owed() noexcept { return owed_; }
  /// By when an ask that begins now must be answered, on CLOCK_BOOTTIME.
  std::int64_t ask_deadline_ns() const noexcept;
  void count_degraded() noexcept { degraded_.fetch_add(1, std::memory_order_relaxed); }

  /// An ask over the socket was answered, whatever was asked: calls and places of a former session
  /// are presented now. Or it was not, and why.
  void on_answered(AskSocket& socket) noexcept;
  void on_unanswered(AskEnd end, AskSocket& socket) noexcept;

  /// The rules of a mapped memory were read anew. Of another daemon than before: the row is offered
  /// to it, on this thread, for kOfferNs at most. Until then its pidfd keeps the row.
  void rules_changed(const shm::View& view) noexcept;

  ClientStatus status() const;
  /// Segment time as far as it is known here; see Client::now().
  std::int64_t now_ns() noexcept;

  const Settings& settings() const noexcept { return settings_; }
  void on_fork() noexcept;

 private:
  explicit DaemonLink(Settings settings, std::unique_ptr<Client::Core> in_process);
  void install(Attachment attachment);
  void install_socket(Attachment::Asking asking);
  Place attach_again() noexcept;
  Place try_attach(std::int64_t now_ns);
  Place standing() const noexcept;
  void change_to(ClientWay way, std::string_view why) noexcept;
  std::string line_for(ClientWay way, std::string_view why) const;
  void say(std::string_view line) noexcept;
  void leave_session(AskSocket& socket) noexcept;
  void end_left_behind(AskSocket& socket) noexcept;

  struct Cores;                          // memories after the first one, newest first
  struct Inherited;                      // sockets of ancestors

  const Settings settings_;
  const std::unique_ptr<Client::Core> in_process_;
  Client::Core* head_ = nullptr;
  std::atomic<Client::Core*> memory_{nullptr};
  std::atomic<AskSocket*> socket_{nullptr};
  AskedCalls asked_calls_;
  detail::OwedList owed_;
  std::atomic<Cores*> cores_{nullptr};
  std::atomic<Inherited*> inherited_{nullptr};

  LifeLock attaching_;                   // the next two, and cores_
  std::atomic<std::int64_t> next_try_ns_{0}, pause_ns_{0};
  int memories_ = 0;
  std::atomic<std::uint64_t> takeovers_{0};          // of the daemon that knows our row
  std::atomic<std::uint64_t> left_ended_{0};         // LeftBehind::added() when none was left

  mutable LifeLock saying_;              // the next four
  char why_[256] = {}, asking_why_[256] = {};
  std::int64_t lines_from_ns_ = 0;

  std::atomic<ClientWay> way_{ClientWay::Private};   // Private: nothing was tried yet
  std::atomic<std::uint64_t> degraded_{0}, attached_{0};
};

}  // namespace cutwater::client
