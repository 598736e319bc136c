// SPDX-License-Identifier: Apache-2.0
#include "src/daemon_link.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "src/ask/asking.hpp"
#include "src/ask/left_behind.hpp"
#include "src/core.hpp"
#include "wire/ask_message.hpp"

namespace cutwater::client {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

bool is_superseded(const Client::Core& core) noexcept {
  return (core.view().current() & shm::kCurrentSupersededBit) != 0;
}

/// How many daemons took this memory over.
std::uint64_t takeovers_of(const shm::View& view) noexcept {
  // relaxed: a number alone; `current`, read before it, brought it along.
  return __atomic_load_n(&view.rules_control->takeovers, __ATOMIC_RELAXED);
}

/// For the waits of a process's first attempt, which its other threads stand behind.
void pause_shortly() noexcept {
  const timespec time{0, 100'000};
  nanosleep(&time, nullptr);
}

/// True while this thread stands in the log callback, which may ask a limit against its promise.
thread_local constinit bool in_log = false;

}  // namespace

struct DaemonLink::Cores {
  std::unique_ptr<Client::Core> core;
  Cores* next;
};

struct DaemonLink::Inherited {
  AskSocket* socket;
  Inherited* next;
};

bool LifeLock::try_lock() noexcept {
  const std::uint64_t life = process_life();
  std::uint64_t holder = holder_.load(std::memory_order_relaxed);
  // acquire: pairs with unlock(), so what the last holder wrote is seen.
  return holder != life &&
         holder_.compare_exchange_strong(holder, life, std::memory_order_acquire,
                                         std::memory_order_relaxed);
}

// ---- life ---------------------------------------------------------------------------------------

DaemonLink::DaemonLink(Settings settings, std::unique_ptr<Client::Core> in_process)
    : settings_(std::move(settings)), in_process_(std::move(in_process)) {}

DaemonLink::~DaemonLink() {
  AskSocket* const socket = socket_.load(std::memory_order_acquire);
  if (socket != nullptr && socket->life() != process_life()) socket->abandon();
  else if (socket != nullptr) leave_session(*socket);
  delete socket;
  for (Inherited* at = inherited_.load(std::memory_order_acquire); at != nullptr;) {
    Inherited* const next = at->next;
    delete at->socket;
    delete at;
    at = next;
  }
  for (Cores* at = cores_.load(std::memory_order_acquire); at != nullptr;) {
    Cores* const next = at->next;
    delete at;
    at = next;
  }
}

Result<std::unique_ptr<Client::Core>> DaemonLink::open(Settings settings,
                                                       std::unique_ptr<Client::Core> in_process) {
  std::unique_ptr<DaemonLink> link(new DaemonLink(std::move(settings), std::move(in_process)));
  DaemonLink& self = *link;
  if (self.settings_.off) {
    self.change_to(ClientWay::Off, "CUTWATER_ENABLED=false");
    return std::make_unique<Client::Core>(std::move(link));
  }
  auto attachment = client::attach(self.settings_, Deadline::in(self.settings_.timeout));
  if (!attachment) {
    const Error& error = attachment.error();
    if (self.settings_.if_absent == IfAbsent::Fail || is_lasting(error)) return error;
    self.change_to(ClientWay::Absent, error.text());
    self.pause_ns_ = kPauseFirstNs;
    self.next_try_ns_ = boottime_ns() + kPauseFirstNs;
    return std::make_unique<Client::Core>(std::move(link));
  }
  self.attached_ = 1;
  if (!attachment->memory) {
    auto core = std::make_unique<Client::Core>(std::move(link));
    core->set_instance(attachment->asking->greeting.welcome.instance);
    self.install(std::move(*attachment));
    return core;
  }
  auto core = std::make_unique<Client::Core>(std::move(attachment->memory->segment),
                                             std::move(attachment->memory->attached),
                                             std::move(link));
  self.takeovers_ = takeovers_of(core->view());
  self.memory_ = core.get();
  self.way_ = ClientWay::Memory;
  return core;
}

void DaemonLink::on_fork() noexcept {
  if (AskSocket* const socket = socket_.load(std::memory_order_acquire)) socket->abandon();
}

// ---- where to decide ----------------------------------------------------------------------------

DaemonLink::Place DaemonLink::standing() const noexcept {
  Client::Core* const memory = memory_.load(std::memory_order_acquire);
  if (memory != nullptr && !is_superseded(*memory)) return {memory, nullptr};
  AskSocket* const socket = socket_.load(std::memory_order_acquire);
  const bool ours = socket != nullptr && socket->life() == process_life();
  return {nullptr, ours && socket->up() ? socket : nullptr};
}

DaemonLink::Place DaemonLink::place() noexcept {
  if (settings_.off) return {};
  const Place place = standing();
  if (place.memory != nullptr || place.socket != nullptr) return place;
  return attach_again();
}

DaemonLink::Place DaemonLink::attach_again() noexcept {
  const std::int64_t begun_ns = boottime_ns();
  for (std::int64_t now = begun_ns; now - begun_ns <= settings_.ask_timeout.count();
       now = boottime_ns()) {
    const Place place = standing();
    if (place.memory != nullptr || place.socket != nullptr) return place;
    if (now < next_try_ns_.load(std::memory_order_relaxed)) return {};
    if (attaching_.try_lock()) {
      const Place found = try_attach(now);
      attaching_.unlock();
      // Not under the lock: it asks place() itself.
      if (found.memory != nullptr) owed_.settle();
      return found;
    }
    // Somebody else is at it. Known to be absent: its answer is if_absent's meanwhile.
    if (pause_ns_.load(std::memory_order_relaxed) != 0) return {};
    pause_shortly();
  }
  return {};
}

DaemonLink::Place DaemonLink::try_attach(std::int64_t now_ns) {
  const Place already = standing();
  if (already.memory != nullptr || already.socket != nullptr) return already;
  try {
    // The row of the memory this one replaces, and nobody else's: another Client has its own.
    const Client::Core* const before = memory_.load(std::memory_order_acquire);
    AskSocket* const former = socket_.load(std::memory_order_acquire);
    const bool ours = former != nullptr && former->life() == process_life();
    auto attachment =
        client::attach(settings_, Deadline::in(std::min(settings_.ask_timeout, settings_.timeout)),
                       before != nullptr ? before->row_token() : std::string{},
                       ours ? former->token() : std::string{});
    if (attachment) {
      attached_.fetch_add(1, std::memory_order_relaxed);
      install(std::move(*attachment));
      next_try_ns_ = 0;
      pause_ns_ = 0;
      return standing();
    }
    change_to(ClientWay::Absent, attachment.error().text());
  } catch (const std::exception&) {
    change_to(ClientWay::Absent, "no memory to attach");
  }
  pause_ns_ = std::clamp(2 * pause_ns_.load(), kPauseFirstNs, kPauseMostNs);
  next_try_ns_ = now_ns + pause_ns_;
  return {};
}

void DaemonLink::rules_changed(const shm::View& view) noexcept {
  const std::uint64_t takeovers = takeovers_of(view);
  if (takeovers == takeovers_.load(std::memory_order_relaxed)) return;
  Client::Core* const memory = memory_.load(std::memory_order_acquire);
  const bool here = memory != nullptr && &memory->view() == &view && !is_superseded(*memory);
  if (!here || memory->row().index == 0 || !attaching_.try_lock()) return;
  try {
    const auto deadline = Deadline::in(std::min(Nanos{kOfferNs}, settings_.ask_timeout));
    if (offer_row(settings_, *memory, deadline)) takeovers_ = takeovers;
  } catch (const std::exception&) {
    // no memory: the row stays by its pidfd
  }
  attaching_.unlock();
}

void DaemonLink::install(Attachment attachment) {
  if (attachment.asking) {
    install_socket(std::move(*attachment.asking));
    return change_to(ClientWay::Socket, attachment.why);
  }
  if (memories_ >= kMostMemories) return change_to(ClientWay::Absent, "too many memories");
  ++memories_;
  auto core = std::make_unique<Client::Core>(std::move(attachment.memory->segment),
                                             std::move(attachment.memory->attached), this);
  Client::Core* const raw = core.get();
  takeovers_ = takeovers_of(raw->view());
  cores_ = new Cores{std::move(core), cores_.load(std::memory_order_relaxed)};
  memory_.store(raw, std::memory_order_release);
  change_to(ClientWay::Memory, "");
}

void DaemonLink::install_socket(Attachment::Asking asking) {
  AskSocket* socket = socket_.load(std::memory_order_acquire);
  if (socket == nullptr || socket->life() != process_life()) {
    if (socket != nullptr) {
      socket->abandon();
      inherited_ = new Inherited{socket, inherited_.load(std::memory_order_relaxed)};
    }
    socket = new AskSocket(settings_.name, settings_.ask_timeout);
    socket_.store(socket, std::memory_order_release);
  }
  (void)socket->adopt(std::move(asking.connection), asking.greeting).ok();
}

// ---- records ------------------------------------------------------------------------------------

detail::LimitState* DaemonLink::record_in(detail::LimitState& state, Client::Core& core) noexcept {
  detail::LimitState* known = state.instead.load(std::memory_order_acquire);
  if (known != nullptr && known->client == core.number()) return known;
  known = core.find(state.owner.name);
  if (known != nullptr) state.instead.store(known, std::memory_order_release);
  return known;
}

bool DaemonLink::is_record(std::string_view name, const void* owner) const noexcept {
  if (head_ != nullptr && head_->has_record(name, owner)) return true;
  if (in_process_ && in_process_->has_record(name, owner)) return true;
  for (Cores* at = cores_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    if (at->core->has_record(name, owner)) return true;
  }
  return false;
}

// ---- states and lines ---------------------------------------------------------------------------

void DaemonLink::on_answered(AskSocket& socket) noexcept {
  if (way_.load(std::memory_order_relaxed) == ClientWay::Absent) {
    change_to(ClientWay::Socket, asking_why_);
  }
  if (!asked_calls_.all_of(socket)) asked_calls_.present(socket, ask_deadline_ns());
  end_left_behind(socket);
}

void DaemonLink::on_unanswered(AskEnd end, AskSocket& socket) noexcept {
  if (way_.load(std::memory_order_relaxed) != ClientWay::Socket) return;
  if (end == AskEnd::Late) return change_to(ClientWay::Absent, "the daemon did not answer in time");
  if (socket.up()) return;
  try {
    change_to(ClientWay::Absent, socket.why());
  } catch (const std::exception&) {
    change_to(ClientWay::Absent, "the connection is gone");
  }
}

/// The last ends may be on their way still, or their daemon gone with them unread.
void DaemonLink::leave_session(AskSocket& socket) noexcept {
  try {
    const Nanos patience = std::min(Nanos{kLastWordNs}, settings_.ask_timeout);
    std::int64_t clock = 0;
    if (socket.up() && socket.unanswered() != 0) {
      (void)ask_clock(socket, clock, boottime_ns() + patience.count());
    }
    if (socket.up() && socket.unanswered() == 0) return;       // BYE says the rest
    (void)LeftBehind::add(socket.path(), socket.token());
  } catch (const std::exception&) {
    // no memory: what it held comes back with its process
  }
}

void DaemonLink::end_left_behind(AskSocket& socket) noexcept {
  const std::uint64_t added = LeftBehind::added();
  if (added == left_ended_.load(std::memory_order_relaxed)) return;
  try {
    const Nanos patience = std::min(Nanos{kOfferNs}, settings_.ask_timeout);
    if (!LeftBehind::end_all(socket.path(), settings_.name, Deadline::in(patience))) return;
    left_ended_.store(added, std::memory_order_relaxed);
  } catch (const std::exception&) {
    // no memory: the next one tries again
  }
}

void DaemonLink::change_to(ClientWay way, std::string_view why) noexcept {
  if (in_log) return;
  while (!saying_.try_lock()) sched_yield();
  const bool changed = way_.exchange(way, std::memory_order_relaxed) != way;
  why_[why.copy(why_, sizeof why_ - 1)] = 0;
  if (way == ClientWay::Socket) asking_why_[why.copy(asking_why_, sizeof asking_why_ - 1)] = 0;
  if (changed) {
    try {
      say(line_for(way, why));
    } catch (const std::exception&) {
      // Without memory for a line the state is still told by status().
    }
  }
  saying_.unlock();
}

std::string DaemonLink::line_for(ClientWay way, std::string_view why) const {
  const std::string name = "client \"" + settings_.name + "\"";
  const std::string reason(why);
  switch (way) {
    case ClientWay::Socket:
      return name + " asks the daemon over the socket" + (reason.empty() ? "" : ": " + reason);
    case ClientWay::Absent:
      return name + " has no daemon, its limits are answered by if_absent: " +
             std::string(name_of(settings_.if_absent)) + "; " + reason;
    case ClientWay::Off: return name + " allows everything: " + reason;
    case ClientWay::Memory:
    case ClientWay::Private: break;
  }
  return name + " decides in the daemon's memory";
}

void DaemonLink::say(std::string_view line) noexcept {
  // kLinesAtOnce at once, then one a second: the moment to which lines are paid for.
  const std::int64_t now = boottime_ns();
  const std::int64_t from = std::max(lines_from_ns_, now - (kLinesAtOnce - 1) * kSecondNs);
  if (from > now) return;
  lines_from_ns_ = from + kSecondNs;
  in_log = true;
  try {
    settings_.log(line);
  } catch (...) {
    // The caller's own function; its fault must not end an ask.
  }
  in_log = false;
}

std::int64_t DaemonLink::ask_deadline_ns() const noexcept {
  return boottime_ns() + settings_.ask_timeout.count();
}

ClientStatus DaemonLink::status() const {
  ClientStatus out;
  const AskSocket* const socket = socket_.load(std::memory_order_acquire);
  out.way = way_.load(std::memory_order_relaxed);
  out.asked = socket != nullptr ? socket->asked() : 0;
  out.degraded = degraded_.load(std::memory_order_relaxed);
  out.late = socket != nullptr ? socket->late() : 0;
  out.unreported = asked_calls_.lost() + owed_.lost();
  out.unreported += (socket != nullptr ? socket->posted_lost() : 0);
  out.attached = attached_.load(std::memory_order_relaxed) + (socket ? socket->made_again() : 0);
  while (!saying_.try_lock()) sched_yield();
  out.why = why_;
  saying_.unlock();
  return out;
}

}  // namespace cutwater::client
