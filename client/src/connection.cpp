// SPDX-License-Identifier: Apache-2.0
#include "src/connection.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include <cutwater/version.hpp>

#include "base/clock.hpp"
#include "shm/layout.hpp"
#include "shm/process_table.hpp"

namespace cutwater::client {
namespace {

// What the public header says is what the memory is laid out by.
static_assert(kLayoutMajor == shm::kAbiMajor && kLayoutMinor == shm::kAbiMinor);

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::int64_t kMilli = 1'000'000;
/// More descriptors than this in one message are cut by the kernel (MSG_CTRUNC), which is refused.
constexpr std::size_t kControlFds = wire::kMaxDescriptors + 1;

std::string message_of(int number) { return std::strerror(number); }

/// Room for an entry of the user or group database; a longer one is told by its number.
constexpr std::size_t kEntryBytes = 16 << 10;

std::string user_name(uid_t uid) {
  char buffer[kEntryBytes];
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(uid, &entry, buffer, sizeof buffer, &found);
  return found == nullptr ? "uid " + std::to_string(uid) : found->pw_name;
}

std::string group_name(gid_t gid) {
  char buffer[kEntryBytes];
  group entry{};
  group* found = nullptr;
  getgrgid_r(gid, &entry, buffer, sizeof buffer, &found);
  return found == nullptr ? "gid " + std::to_string(gid) : found->gr_name;
}

/// connect() said EACCES: whose socket it is and which group would help (C065).
Error not_permitted(const std::string& path) {
  std::string text = "uid " + std::to_string(geteuid()) + " may not use " + path;
  struct stat found {};
  if (stat(path.c_str(), &found) == 0) {
    text += ", which belongs to " + user_name(found.st_uid) + ":" + group_name(found.st_gid) +
            "; ";
    // Never send anybody into root's group.
    if (found.st_gid != 0) text += "join group " + group_name(found.st_gid) + ", or ";
    text += "let the daemon open it with listen.unix.group or listen.unix.mode";
  } else {
    text += ": a directory on the way to it is closed to this user; let the daemon put its socket "
            "elsewhere with listen.unix.path, or restart it after access.map was widened";
  }
  return {Errc::NotPermitted, std::move(text)};
}

Error connect_error(const std::string& path, int number) {
  switch (number) {
    case EACCES:
    case EPERM: return not_permitted(path);
    case ENOENT:
    case ENOTDIR:
      return {Errc::NoDaemon, "no daemon: there is no socket at " + path +
                                  "; start cutwaterd, or mount that directory if it runs outside "
                                  "this container"};
    case ECONNREFUSED:
      return {Errc::NoDaemon, "no daemon: a socket is left at " + path +
                                  " but nobody listens on it; start cutwaterd"};
    default:
      return {Errc::System, "cannot connect to " + path + ": " + message_of(number)};
  }
}

Errc errc_of(wire::ErrorCode code) noexcept {
  switch (code) {
    case wire::ErrorCode::NotPermitted: return Errc::NotPermitted;
    case wire::ErrorCode::TooMany: return Errc::Busy;
    case wire::ErrorCode::Unsupported: return Errc::Unsupported;
    case wire::ErrorCode::InvalidArgument: return Errc::InvalidArgument;
    default: return Errc::Protocol;
  }
}

/// The answer of one kind among the session's actions, or what came instead.
template <class Wanted>
struct Answer;
template <>
struct Answer<wire::Welcome> {
  static wire::Welcome* in(wire::ClientAction& action) {
    auto* found = std::get_if<wire::Welcomed>(&action);
    return found == nullptr ? nullptr : &found->welcome;
  }
};
template <>
struct Answer<wire::ReadAnswer> {
  static wire::ReadAnswer* in(wire::ClientAction& action) {
    auto* found = std::get_if<wire::ReadAnswered>(&action);
    return found == nullptr ? nullptr : &found->answer;
  }
};
template <>
struct Answer<wire::SteerAnswer> {
  static wire::SteerAnswer* in(wire::ClientAction& action) {
    auto* found = std::get_if<wire::SteerAnswered>(&action);
    return found == nullptr ? nullptr : &found->answer;
  }
};
template <>
struct Answer<wire::Pong> {
  static wire::Pong* in(wire::ClientAction& action) {
    auto* found = std::get_if<wire::Ponged>(&action);
    return found == nullptr ? nullptr : &found->pong;
  }
};

}  // namespace

Deadline Deadline::in(Nanos time) noexcept {
  const std::int64_t most = std::int64_t{1} << 60;
  return Deadline{boottime_ns() + std::clamp<std::int64_t>(time.count(), 0, most)};
}

int Deadline::left_ms() const noexcept {
  const std::int64_t left = at_ns_ - boottime_ns();
  if (left <= 0) return 0;
  return static_cast<int>(std::min<std::int64_t>((left + kMilli - 1) / kMilli, 60'000));
}

wire::Hello hello_for(std::string_view name, wire::Want want) {
  wire::Hello hello;
  hello.min_version = kProtocolMin;
  hello.max_version = kProtocolMax;
  hello.client_name = name.substr(0, wire::kMaxClientName);
  hello.want = want;
  if (want != wire::Want::Ask) hello.layout = {kLayoutMajor, kLayoutMinor, shm::kFeaturesKnown};
  hello.time_ns = shm::time_namespace_of_self();
  return hello;
}

Result<Connection> Connection::connect(const std::string& path, Deadline deadline) {
  sockaddr_un place{};
  if (path.empty() || path.size() >= sizeof place.sun_path) {
    return Error{Errc::InvalidArgument, "a socket's path has 1 to 107 bytes, not " +
                                            std::to_string(path.size()) + ": " + path};
  }
  shm::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error{Errc::System, "cannot make a socket: " + message_of(errno)};
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, path.data(), path.size());
  const int descriptor = fd.get();
  Connection link(path, std::move(fd));
  for (;;) {
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) break;
    const int number = errno;
    if (number == EINTR) continue;
    // EAGAIN: the queue of connections is full. It cannot be polled for; look again soon.
    if (number != EAGAIN) return connect_error(path, number);
    if (deadline.passed()) {
      return Error{Errc::Timeout, "the daemon at " + path + " does not accept connections in time"};
    }
    poll(nullptr, 0, std::min(deadline.left_ms(), 10));
  }
  return link;
}

Result<Greeting> Connection::hello(wire::Hello hello, Deadline deadline) {
  Greeting greeting;
  greeting.sent_ns = boottime_ns();
  hello.clock_ns = static_cast<std::uint64_t>(greeting.sent_ns);
  auto answer = exchange<wire::Welcome>(session_.hello(hello), deadline);
  if (!answer) return answer.error();
  greeting.received_ns = boottime_ns();
  greeting.welcome = std::move(*answer);
  const std::size_t announced = greeting.welcome.descriptors.size();
  if (files_bad_ || received_files_.size() != announced ||
      (announced != 0 && announced != wire::kMaxDescriptors)) {
    const std::string text = "it sent " + std::to_string(received_files_.size()) +
                             " descriptors where " + std::to_string(announced) + " were announced";
    return broken(Errc::Protocol, text);
  }
  for (std::size_t i = 0; i < announced; ++i) greeting.files[i] = std::move(received_files_[i]);
  received_files_.clear();
  return greeting;
}

Result<wire::ReadAnswer> Connection::read(const wire::Read& message, Deadline deadline) {
  return exchange<wire::ReadAnswer>(session_.read(message), deadline);
}

Result<wire::SteerAnswer> Connection::steer(const wire::Steer& message, Deadline deadline) {
  return exchange<wire::SteerAnswer>(session_.steer(message), deadline);
}

Result<wire::Pong> Connection::ping(std::uint64_t value, Deadline deadline) {
  return exchange<wire::Pong>(session_.ping(value), deadline);
}

void Connection::bye() noexcept {
  if (!fd_) return;
  try {
    if (auto outgoing = session_.bye(); outgoing) {
      // One attempt: a peer that does not take 18 bytes is as good as gone.
      (void)!::send(fd_.get(), outgoing->bytes.data(), outgoing->bytes.size(),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  } catch (const std::exception&) {
    // Without memory for a word the end of the connection says it.
  }
  fd_.reset();
}

void Connection::abandon() noexcept {
  fd_.reset();
  received_files_.clear();
}

template <class Wanted>
Result<Wanted> Connection::exchange(Result<wire::Outgoing> outgoing, Deadline deadline) {
  if (!outgoing) return outgoing.error();
  if (!fd_) return Error{Errc::NoDaemon, "the connection to " + path_ + " is closed"};
  if (auto sent = send(outgoing->bytes, deadline); !sent) return sent.error();
  for (;;) {
    auto actions = receive(deadline);
    if (!actions) return actions.error();
    std::optional<Error> failure;
    for (wire::ClientAction& action : *actions) {
      if (auto* wanted = Answer<Wanted>::in(action)) return std::move(*wanted);
      if (const auto* failed = std::get_if<wire::RequestFailed>(&action)) {
        failure = Error{errc_of(failed->error.code),
                        "the daemon at " + path_ + " refused: " + failed->error.text};
        if (failed->error.closing || failed->request == 0) fd_.reset();
      } else if (const auto* busy = std::get_if<wire::RequestBusy>(&action)) {
        failure = Error{Errc::Busy, "the daemon at " + path_ + " is busy; try again in " +
                                        std::to_string(busy->retry_after_ns / 1'000'000) + " ms"};
      } else if (const auto* closing = std::get_if<wire::CloseConnection>(&action)) {
        if (!failure) return broken(Errc::Protocol, "the conversation ended: " + closing->why);
        fd_.reset();
      }
    }
    if (failure) return *failure;
  }
}

Result<void> Connection::wait_for(short events, Deadline deadline) {
  pollfd watched{fd_.get(), events, 0};
  for (;;) {
    const int ready = poll(&watched, 1, deadline.left_ms());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return broken(Errc::System, "poll: " + message_of(errno));
    if (deadline.passed()) return broken(Errc::Timeout, "it did not answer in time");
  }
}

Result<void> Connection::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (auto ready = wait_for(POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return broken(Errc::NoDaemon, "it closed the connection: " + message_of(errno));
    }
  }
  return {};
}

Result<wire::ClientActions> Connection::receive(Deadline deadline) {
  std::string buffer(kReadBytes, '\0');
  alignas(cmsghdr) char control[CMSG_SPACE(kControlFds * sizeof(int))];
  for (;;) {
    iovec part{buffer.data(), buffer.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t length = recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
    if (length >= 0) take_descriptors(header);
    if (length > 0) {
      const bool before_welcome = session_.state() == wire::SessionState::New;
      if (!received_files_.empty() && !before_welcome) {
        return broken(Errc::Protocol, "it sent descriptors nobody asked for");
      }
      return session_.feed({buffer.data(), static_cast<std::size_t>(length)});
    }
    if (length == 0) return broken(Errc::NoDaemon, "it closed the connection");
    if (errno == EAGAIN) {
      if (auto ready = wait_for(POLLIN, deadline); !ready) return ready.error();
    } else if (errno != EINTR) {
      return broken(Errc::NoDaemon, "it closed the connection: " + message_of(errno));
    }
  }
}

void Connection::take_descriptors(msghdr& header) {
  if ((header.msg_flags & MSG_CTRUNC) != 0) files_bad_ = true;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      shm::UniqueFd taken(fd);           // owned from here on, so closed whatever comes
      if (received_files_.size() < wire::kMaxDescriptors) {
        received_files_.push_back(std::move(taken));
      } else {
        files_bad_ = true;
      }
    }
  }
}

Error Connection::broken(Errc code, std::string what) {
  fd_.reset();
  received_files_.clear();
  session_.ended();
  return {code, "the daemon at " + path_ + ": " + std::move(what)};
}

}  // namespace cutwater::client
