// SPDX-License-Identifier: Apache-2.0
#include "src/ask/ask_socket.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "wire/ask_message.hpp"

namespace cutwater::client {
namespace {

/// One whole frame and the beginning of another always find room.
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
/// Times a connection is made again that is cut during its greeting.
constexpr int kAttempts = 3;
constexpr std::int64_t kMilli = 1'000'000;
/// Reads of a late caller, of 64 KiB or more each: what others were told lies there too.
constexpr int kMostReads = 16;
/// Who comes so late to its deadline was not only slow.
constexpr std::int64_t kStoppedNs = 20 * kMilli;
constexpr std::int64_t kSilenceFirstNs = 100 * kMilli;
constexpr std::int64_t kSilenceMostNs = 1000 * kMilli;

/// Sleeps while *word == seen, until `deadline_ns` of CLOCK_BOOTTIME at most.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
              std::int64_t deadline_ns) noexcept {
  const std::int64_t left = std::max<std::int64_t>(deadline_ns - boottime_ns(), 0);
  const timespec time{left / 1'000'000'000, left % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& word) noexcept {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

int left_ms(std::int64_t deadline_ns) noexcept {
  const std::int64_t left = deadline_ns - boottime_ns();
  if (left <= 0) return 0;
  return static_cast<int>(std::min<std::int64_t>((left + kMilli - 1) / kMilli, 60'000));
}

}  // namespace

AskSocket::AskSocket(std::string name, Nanos ask_timeout)
    : name_(std::move(name)), ask_timeout_(ask_timeout), life_(process_life()) {}

AskSocket::~AskSocket() {
  close();
  if (life_ == process_life()) {
    session_.fail_all();                 // posted ones that are not answered
    hand_out();
  }
  for (auto& frame : frames_) delete frame.load(std::memory_order_relaxed);
}

// ---- one ask ------------------------------------------------------------------------------------

void AskSocket::ask(Call& call, std::int64_t deadline_ns) noexcept {
  Lock lock(mutex_);
  if (!up_.load(std::memory_order_relaxed)) {
    call.end = AskEnd::Unsent;
    return;
  }
  if (silent_until_ns_ != 0 && !may_try(call, boottime_ns())) return;
  const std::uint64_t heard_before = heard_;
  asked_.fetch_add(1, std::memory_order_relaxed);
  session_.enqueue(call);
  flush();
  hand_out();
  while (call.end == AskEnd::Pending) {
    if (!reading_) {
      read_for_all(lock, deadline_ns);
    } else {
      sleep(lock, call, deadline_ns);
    }
    if (call.end != AskEnd::Pending || boottime_ns() < deadline_ns) continue;
    read_what_came(lock, call, deadline_ns);
    if (call.end != AskEnd::Pending) break;
    give_up(call);
    late_.fetch_add(1, std::memory_order_relaxed);
    if (heard_ == heard_before && up_.load(std::memory_order_relaxed)) {
      silence_ns_ = std::clamp(2 * silence_ns_, kSilenceFirstNs, kSilenceMostNs);
      silent_until_ns_ = boottime_ns() + silence_ns_;
    }
  }
  if (!reading_) wake_reader();
}

/// Behind the deadline. A process that was stopped, or got no turn, has its answer lying there: it
/// came in time, and it is what happened. Another thread that reads was stopped as well, and gets
/// one turn.
void AskSocket::read_what_came(Lock& lock, Call& call, std::int64_t deadline_ns) {
  if (reading_) {
    const std::int64_t now = boottime_ns();
    if (now - deadline_ns >= kStoppedNs) sleep(lock, call, now + kStoppedNs);
    return;
  }
  std::uint64_t before = heard_ + 1;
  for (int i = 0; i < kMostReads && call.end == AskEnd::Pending && before != heard_; ++i) {
    if (reading_ || cut_ || session_.is_broken() || session_.drained()) return;
    before = heard_;
    read_for_all(lock, deadline_ns);
  }
}

bool AskSocket::post(std::unique_ptr<Posted>& posted, std::uint32_t session) noexcept {
  const Lock lock(mutex_);
  const bool here = up_.load(std::memory_order_relaxed) &&
                    number_.load(std::memory_order_relaxed) == session;
  // Nobody waits for it, so nobody would make again what is cut: it would lie there, and be lost.
  const bool over = cut_ || session_.is_broken() || session_.draining();
  if (!here || over || posted_ >= kMostPosted) return false;
  Posted& call = *posted;
  put_in_line(std::move(posted));
  flush();
  const bool kept = !cut_ || !session_.take_back(call);
  if (!kept) {
    posted.reset(&call);
    --posted_;
  }
  hand_out();
  return kept;
}

void AskSocket::put_in_line(std::unique_ptr<Posted> posted) {
  Posted* const call = posted.release();
  call->frame = &call->bytes;
  call->posted = true;
  ++posted_;
  session_.enqueue(*call);
}

/// Under the same lock, so the session that its id belongs to cannot be another one yet.
void AskSocket::give_up(Call& call) {
  session_.abandon(call);
  if (!call.cancels || call.request == 0) return;
  try {
    auto cancel = std::make_unique<Posted>();
    const auto payload = wire::encode(wire::Cancel{call.request});
    if (!payload) return;
    cancel->type = wire::MessageType::Cancel;
    cancel->bytes += *payload;
    cancel->take = [](Call&, std::string_view) { return true; };
    put_in_line(std::move(cancel));
  } catch (const std::bad_alloc&) {
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

/// The daemon did not answer when it was last asked. False: it is not asked now, `call` is Late.
bool AskSocket::may_try(Call& call, std::int64_t now_ns) {
  if (now_ns < silent_until_ns_) {
    call.end = AskEnd::Late;
    return false;
  }
  silent_until_ns_ = now_ns + ask_timeout_.count() + kSilenceMostNs;   // this one tries for all
  return true;
}

void AskSocket::sleep(Lock& lock, Call& call, std::int64_t deadline_ns) {
  call.asleep = true;
  const std::uint32_t seen = call.word.load(std::memory_order_acquire);
  lock.unlock();
  sleep_on(call.word, seen, deadline_ns);
  lock.lock();
  call.asleep = false;
}

void AskSocket::wake_reader() noexcept {
  for (Call* call = session_.first(); call != nullptr; call = call->behind) {
    if (call->asleep) return wake(call->word);
  }
}

/// Tells callers whose calls ended. Under the lock: a caller that is told may leave at once.
void AskSocket::hand_out() noexcept {
  while (Call* const call = session_.finished()) {
    if (call->asleep) wake(call->word);
    if (!call->posted) continue;
    --posted_;
    if (call->end != AskEnd::Answered) lost_.fetch_add(1, std::memory_order_relaxed);
    delete static_cast<Posted*>(call);
  }
}

// ---- the wire -----------------------------------------------------------------------------------

void AskSocket::flush() {
  const int fd = fd_.load(std::memory_order_relaxed);
  while (!cut_) {
    const std::string_view bytes = session_.unsent();
    if (bytes.empty()) return;
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      session_.sent(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return;                            // whoever reads goes on when there is room
    } else if (errno != EINTR) {
      cut_ = true;
      ::shutdown(fd, SHUT_RDWR);         // whoever sleeps in recv() sees it too
    }
  }
}

void AskSocket::read_for_all(Lock& lock, std::int64_t deadline_ns) {
  reading_ = true;
  try {
    if (cut_ || session_.is_broken() || session_.drained()) make_again(lock, deadline_ns);
    else receive(lock, deadline_ns);
  } catch (const std::exception&) {
    if (!lock.owns_lock()) lock.lock();
    end_without_memory();
  }
  reading_ = false;
  hand_out();
}

void AskSocket::receive(Lock& lock, std::int64_t deadline_ns) {
  const int fd = fd_.load(std::memory_order_relaxed);
  const bool more_to_send = !session_.unsent().empty();
  lock.unlock();
  // The socket's own time limit is the usual one; another is poll()'s, and so is room to write.
  const bool usual = deadline_ns - boottime_ns() >= ask_timeout_.count() / 8 * 7;
  ssize_t got = -1;
  int number = EAGAIN;
  bool ready = usual && !more_to_send;
  if (!ready) {
    pollfd watched{fd, static_cast<short>(more_to_send ? POLLIN | POLLOUT : POLLIN), 0};
    ready = poll(&watched, 1, left_ms(deadline_ns)) > 0 && (watched.revents & ~POLLOUT) != 0;
  }
  if (ready) {
    got = ::recv(fd, input_.get() + input_bytes_, input_room_ - input_bytes_,
                 usual && !more_to_send ? 0 : MSG_DONTWAIT);
    number = errno;
  }
  lock.lock();
  if (got > 0) {
    on_input(static_cast<std::size_t>(got));
  } else if (got == 0 || (number != EAGAIN && number != EINTR)) {
    cut_ = true;
    if (why_.empty()) why_ = "it closed the connection";
  }
  flush();
}

/// No memory for an answer, or for a connection: what was read is lost, and so is the session.
void AskSocket::end_without_memory() noexcept {
  const int fd = fd_.exchange(-1, std::memory_order_relaxed);
  if (fd >= 0) ::close(fd);
  up_.store(false, std::memory_order_release);
  token_.clear();
  why_.clear();
  session_.disconnected();
  session_.fail_all();
}

void AskSocket::on_input(std::size_t bytes) {
  ++heard_;
  silent_until_ns_ = 0;
  silence_ns_ = 0;
  input_bytes_ += bytes;
  const std::size_t taken = session_.feed({input_.get(), input_bytes_});
  input_bytes_ -= taken;
  if (input_bytes_ == 0 || taken == 0) return;
  std::memmove(input_.get(), input_.get() + taken, input_bytes_);
}

// ---- connections --------------------------------------------------------------------------------

Result<void> AskSocket::adopt(Connection link, const Greeting& greeting) {
  const Lock lock(mutex_);
  take_over(std::move(link), greeting, !token_.empty() && greeting.welcome.resumed);
  if (!up_.load(std::memory_order_relaxed)) return Error{Errc::NoMemory, "no memory to read into"};
  return {};
}

void AskSocket::take_over(Connection link, const Greeting& greeting, bool resumed) {
  const wire::Welcome& welcome = greeting.welcome;
  const std::size_t room = welcome.max_frame + wire::kHeaderSize + kReadBytes;
  if (room > input_room_) {
    input_.reset(new (std::nothrow) char[room]);
    input_room_ = input_ ? room : 0;
    if (!input_) return;
  }
  input_bytes_ = 0;
  path_ = link.path();
  token_ = welcome.session;
  why_.clear();
  shm::UniqueFd fd = link.release();
  // From here on it blocks, but never longer than an ask may take.
  const std::int64_t us = ask_timeout_.count() / 1000;
  const timeval limit{us / 1'000'000, us % 1'000'000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  fd_.store(fd.release(), std::memory_order_relaxed);
  cut_ = false;
  stepped_.store((welcome.features & wire::kFeatureSteppedClock) != 0, std::memory_order_relaxed);
  max_frame_.store(welcome.max_frame, std::memory_order_relaxed);
  const std::int64_t half_way = (greeting.sent_ns + greeting.received_ns) / 2;
  offset_.store(static_cast<std::int64_t>(welcome.clock_ns) - half_way, std::memory_order_relaxed);
  if (!resumed) number_.fetch_add(1, std::memory_order_release);
  session_.connected(welcome, resumed);
  up_.store(true, std::memory_order_release);
}

void AskSocket::make_again(Lock& lock, std::int64_t deadline_ns) {
  // A stream that was lost takes its session along: who knows what the daemon makes of it.
  const bool clean = !session_.is_broken();
  if (!clean) why_ = session_.why();
  if (!clean) token_.clear();
  const std::string token = token_;
  session_.disconnected();
  const int old = fd_.exchange(-1, std::memory_order_relaxed);
  lock.unlock();
  if (old >= 0) ::close(old);
  const auto deadline = Deadline::in(Nanos{deadline_ns - boottime_ns()});
  Result<Connection> link = Error{};
  Result<Greeting> greeting = Error{};
  for (int attempt = 0; attempt < kAttempts && !greeting && !deadline.passed(); ++attempt) {
    link = Connection::connect(path_, deadline);
    if (!link) break;                    // nobody listens there
    wire::Hello hello = hello_for(name_, wire::Want::Ask);
    hello.features = wire::kFeatureRemember;
    hello.session = token;
    greeting = link->hello(std::move(hello), deadline);
  }
  lock.lock();
  if (!link || !greeting) {
    why_ = link ? greeting.error().text() : link.error().text();
    up_.store(false, std::memory_order_release);
    return session_.fail_all();
  }
  take_over(std::move(*link), *greeting, greeting->welcome.resumed);
  if (fd_.load(std::memory_order_relaxed) < 0) {
    up_.store(false, std::memory_order_release);
    return session_.fail_all();
  }
  again_.fetch_add(1, std::memory_order_relaxed);
  flush();
}

std::string AskSocket::why() {
  const Lock lock(mutex_);
  return why_;
}

std::string AskSocket::token() {
  const Lock lock(mutex_);
  return token_;
}

std::string AskSocket::path() {
  const Lock lock(mutex_);
  return path_;
}

std::size_t AskSocket::unanswered() {
  const Lock lock(mutex_);
  return posted_;
}

void AskSocket::close() noexcept {
  const int fd = fd_.exchange(-1, std::memory_order_relaxed);
  up_.store(false, std::memory_order_release);
  if (fd < 0) return;
  try {
    const auto payload = wire::encode(wire::Bye{});
    if (payload) {
      const std::string bye = wire::encode_frame(
          {.type = wire::MessageType::Bye, .flags = wire::kFlagQuiet, .request = 1}, *payload);
      // One attempt: a peer that does not take 17 bytes is as good as gone.
      (void)!::send(fd, bye.data(), bye.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  } catch (const std::exception&) {
    // Without memory for a word the end of the connection says it.
  }
  ::close(fd);
}

void AskSocket::abandon() noexcept {
  const int fd = fd_.exchange(-1, std::memory_order_relaxed);
  if (fd >= 0) ::close(fd);
}

}  // namespace cutwater::client
