// SPDX-License-Identifier: Apache-2.0
#include "support/raw_peer.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.hpp"
#include "shm/layout.hpp"
#include "shm/process_table.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::test {

RawPeer::RawPeer(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    error_ = errno;
    fd_.reset();
  }
}

bool RawPeer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool RawPeer::send_frame(wire::MessageType type, std::uint32_t request, std::string_view payload) {
  return send(wire::encode_frame({.type = type, .request = request}, payload));
}

/// More bytes into the buffer; false at the end or after the watchdog.
bool RawPeer::fill() {
  pollfd entry{fd_.get(), POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(kWatchdog).count();
  if (!fd_ || ::poll(&entry, 1, static_cast<int>(ms)) <= 0) return false;
  char piece[16384];
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
  iovec part{piece, sizeof piece};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (at->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof fd);
      files_.emplace_back(fd);
    }
  }
  if (n <= 0) return false;
  buffer_.append(piece, static_cast<std::size_t>(n));
  return true;
}

std::optional<wire::Frame> RawPeer::receive() {
  while (true) {
    std::string_view rest = buffer_;
    auto frame = reader_.next(rest);
    buffer_.erase(0, buffer_.size() - rest.size());
    if (!frame) return std::nullopt;
    if (*frame) return std::move(**frame);
    if (!fill()) return std::nullopt;
  }
}

bool RawPeer::at_end() {
  char byte = 0;
  pollfd entry{fd_.get(), POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(kWatchdog).count();
  if (!buffer_.empty() || ::poll(&entry, 1, static_cast<int>(ms)) <= 0) return false;
  return ::recv(fd_.get(), &byte, 1, MSG_PEEK) <= 0;
}

wire::Hello RawPeer::hello(wire::Want want, std::string name) {
  wire::Hello out;
  out.client_name = std::move(name);
  out.want = want;
  out.layout = {shm::kAbiMajor, shm::kAbiMinor, shm::kFeaturesKnown};
  out.clock_ns = static_cast<std::uint64_t>(boottime_ns());
  out.time_ns = shm::time_namespace_of_self();
  return out;
}

std::optional<wire::Welcome> RawPeer::greet(const wire::Hello& hello) {
  const auto payload = wire::encode(hello);
  if (!payload || !send_frame(wire::MessageType::Hello, 1, *payload)) {
    // The daemon may have refused at once and closed: its word is still there to be read.
  }
  const auto frame = receive();
  if (!frame) return std::nullopt;
  if (frame->header.type == wire::MessageType::Error) {
    if (auto refused = wire::decode<wire::ErrorMessage>(frame->payload)) refusal_ = *refused;
    return std::nullopt;
  }
  auto welcome = wire::decode<wire::Welcome>(frame->payload);
  if (!welcome) return std::nullopt;
  return *welcome;
}

std::optional<wire::Frame> RawPeer::exchange(wire::MessageType type, std::string_view payload,
                                             std::uint16_t flags) {
  const std::uint32_t request = next_request_++;
  if (!send(wire::encode_frame({.type = type, .flags = flags, .request = request}, payload))) {
    return std::nullopt;
  }
  while (auto frame = receive()) {
    if (keep_push(*frame)) continue;
    if (frame->header.type == wire::MessageType::Error) {
      if (auto refused = wire::decode<wire::ErrorMessage>(frame->payload)) refusal_ = *refused;
      return std::nullopt;
    }
    return frame;
  }
  return std::nullopt;
}

bool RawPeer::keep_push(const wire::Frame& frame) {
  if (frame.header.type == wire::MessageType::Event) {
    if (auto event = wire::decode<wire::Event>(frame.payload)) events_.push_back(*event);
    return true;
  }
  if (frame.header.type != wire::MessageType::Goaway) return false;
  if (auto goaway = wire::decode<wire::Goaway>(frame.payload)) goaways_.push_back(*goaway);
  return true;
}

std::optional<wire::Event> RawPeer::event() {
  while (events_.empty()) {
    const auto frame = receive();
    if (!frame || !keep_push(*frame)) return std::nullopt;
  }
  wire::Event out = std::move(events_.front());
  events_.erase(events_.begin());
  return out;
}

std::optional<wire::ReadAnswer> RawPeer::read(wire::Read asked) {
  return ask<wire::ReadAnswer>(asked);
}

std::optional<wire::ReadAnswer> RawPeer::read(std::string what) {
  wire::Read asked;
  asked.what = std::move(what);
  return read(std::move(asked));
}

std::optional<wire::SteerAnswer> RawPeer::steer(const wire::Steer& asked) {
  return ask<wire::SteerAnswer>(asked);
}

std::optional<wire::Pong> RawPeer::ping(std::uint64_t value) {
  const auto payload = wire::encode(wire::Ping{value});
  if (!payload || !send_frame(wire::MessageType::Ping, 0, *payload)) return std::nullopt;
  const auto frame = receive();
  if (!frame || frame->header.type != wire::MessageType::Pong) return std::nullopt;
  auto pong = wire::decode<wire::Pong>(frame->payload);
  if (!pong) return std::nullopt;
  return *pong;
}

}  // namespace cutwater::test
