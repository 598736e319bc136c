// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace cutwater::server {

namespace {

wire::ServerSettings without_idle(wire::ServerSettings settings) {
  settings.idle_ns = std::uint64_t{1} << 62;  // see the header: idle is ours
  return settings;
}

asio::generic::seq_packet_protocol::socket as_packets(Connection::Socket from) {
  asio::generic::seq_packet_protocol::socket out(from.get_executor());
  std::error_code error;
  const int fd = from.release(error);
  if (!error) out.assign({AF_UNIX, 0}, fd, error);
  return out;
}

}  // namespace

Connection::Connection(Socket socket, std::uint64_t id, PeerProcess peer, SessionHost& host,
                       wire::ServerSettings settings)
    : socket_(as_packets(std::move(socket))),
      id_(id),
      peer_(std::move(peer)),
      host_(host),
      session_(without_idle(settings), host.moment().now_ns),
      idle_ns_(settings.idle_ns),
      last_input_ns_(host.moment().now_ns) {}

void Connection::start() { arm_read(); }

void Connection::tick(wire::Moment moment) {
  if (closed_) return;
  if (closing_) {
    if (moment.now_ns - closing_since_ns_ >= kLingerNs) close_now();
    return;
  }
  perform(session_.tick(moment.now_ns));
  const bool may_be_silent = notes.mapped || notes.holds || session_.waiting_requests() != 0;
  const bool idle = session_.state() == wire::SessionState::Ready && !may_be_silent &&
                    moment.now_ns - last_input_ns_ >= idle_ns_;
  if (!idle || closing_) return;
  perform(session_.go_away(wire::GoawayReason::Idle, "no frame for too long", moment.now_ns));
  perform({wire::CloseConnection{"idle"}});
}

/// What an action causes (an answer, say) comes back in here: it is queued like the rest, and the
/// outermost call writes once.
void Connection::perform(wire::ServerActions actions) {
  ++depth_;
  for (auto& action : actions) {
    if (closed_) break;
    if (unsent_ - std::min(unsent_, told_unsent_) >= kJoinedPiece) flush();
    if (auto* bytes = std::get_if<wire::SendBytes>(&action)) {
      enqueue(std::move(*bytes));
    } else if (auto* hello = std::get_if<wire::HelloReceived>(&action)) {
      host_.on_hello(*this, *hello);
    } else if (auto* fault = std::get_if<wire::PeerFault>(&action)) {
      host_.on_fault(*this, *fault);
    } else if (auto* close = std::get_if<wire::CloseConnection>(&action)) {
      if (closing_) continue;
      closing_ = true;
      closing_since_ns_ = host_.moment().now_ns;
      said_bye_ = close->why == "BYE";
    } else {
      host_.on_request(*this, action);
    }
  }
  if (--depth_ > 0 || closed_) return;
  flush();
  arm_read();
  end_when_answered();
}

/// Pieces are joined, but for the first byte that descriptors ride on.
void Connection::enqueue(wire::SendBytes&& send) {
  unsent_ += send.bytes.size();
  const bool joins =
      !queue_.empty() && !send.with_descriptors && queue_.back().bytes.size() < kJoinedPiece;
  if (joins)
    queue_.back().bytes += send.bytes;
  else
    queue_.push_back({std::move(send.bytes), 0, send.with_descriptors});
}

void Connection::go_away(wire::GoawayReason reason, std::string text) {
  if (closed_ || closing_) return;
  perform(session_.go_away(reason, std::move(text), host_.moment().now_ns));
}

void Connection::shut_down() {
  if (closed_ || closing_) return;
  go_away(wire::GoawayReason::Shutdown, "the daemon stops");
  if (closed_) return;
  shutting_down_ = true;
  if (!reading_) return finish_shut_down();
  std::error_code ignored;
  socket_.cancel(ignored);  // the pending receive, which may have bytes already, comes first
}

/// What lies in the socket already is answered BUSY: its sender knows that it was not executed.
void Connection::finish_shut_down() {
  shutting_down_ = false;
  ends_when_answered_ = true;
  if (!receive_rest(kReadSize)) return close_now();
  end_when_answered();
}

void Connection::end_when_answered() {
  const bool due = ends_when_answered_ && !closed_ && !closing_ && depth_ == 0 &&
                   session_.waiting_requests() == 0;
  if (due) perform({wire::CloseConnection{"shutdown"}});
}

void Connection::drop() { close_now(); }

void Connection::arm_read() {
  if (reading_ || closing_ || closed_ || shutting_down_ || !session_.wants_input()) return;
  reading_ = true;
  socket_.async_receive(asio::buffer(received_), received_flags_,
                        [self = shared_from_this()](std::error_code error, std::size_t bytes) {
                          self->on_received(error, bytes);
                          self->reading_ = false;
                          self->go_on_reading();
                        });
}

/// Nothing is armed meanwhile: another receive could take bytes that come before the rest.
void Connection::on_received(std::error_code error, std::size_t bytes) {
  if (closed_ || closing_) return;
  const bool cancelled = error == asio::error::operation_aborted;
  bool goes_on = cancelled || (!error && take({received_.data(), bytes}, received_flags_));
  if (closed_ || closing_) return;
  const bool more = bytes == received_.size() && session_.wants_input();
  if (goes_on && more) goes_on = receive_rest(kReadSize - bytes);
  if (goes_on || closed_ || closing_) return;
  session_.ended();
  close_now();
}

void Connection::go_on_reading() {
  if (closed_ || closing_) return;
  if (shutting_down_)
    finish_shut_down();
  else
    arm_read();
}

/// One bounded read, so that a busy peer costs the others no more than that. False: the end.
bool Connection::receive_rest(std::size_t most) {
  static thread_local std::array<char, kReadSize> buffer;
  if (closed_ || closing_) return true;
  iovec piece{buffer.data(), std::min(most, buffer.size())};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const ssize_t n = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  return take({buffer.data(), static_cast<std::size_t>(n)}, message.msg_flags);
}

/// What was received. False: the end.
bool Connection::take(std::string_view bytes, int flags) {
  if ((flags & MSG_CTRUNC) != 0) {  // there were descriptors
    perform(session_.got_descriptors());
    return true;
  }
  if (bytes.empty()) return false;
  const wire::Moment moment = host_.moment();
  last_input_ns_ = moment.now_ns;
  perform(session_.feed(bytes, moment));
  return true;
}

void Connection::flush() {
  while (!queue_.empty() && !closed_) {
    Piece& piece = queue_.front();
    const ssize_t n = send_some(piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      session_.ended();
      close_now();
      return;
    }
    piece.sent += static_cast<std::size_t>(n);
    unsent_ -= static_cast<std::size_t>(n);
    if (piece.sent == piece.bytes.size()) queue_.pop_front();
  }
  if (queue_.empty() && closing_) {
    close_now();
    return;
  }
  if (!queue_.empty()) arm_write();
  if (told_unsent_ != unsent_ && !closing_) {
    told_unsent_ = unsent_;
    auto more = session_.unsent(unsent_, host_.moment().now_ns);
    if (!more.empty()) perform(std::move(more));
  }
}

ssize_t Connection::send_some(Piece& piece) {
  iovec rest{piece.bytes.data() + piece.sent, piece.bytes.size() - piece.sent};
  if (!piece.with_descriptors) {
    return ::send(socket_.native_handle(), rest.iov_base, rest.iov_len,
                  MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &rest;
  message.msg_iovlen = 1;
  if (piece.with_descriptors && piece.sent == 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(3 * sizeof(int));
    std::memcpy(CMSG_DATA(head), descriptors.data(), 3 * sizeof(int));
  }
  return ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Connection::arm_write() {
  if (writing_ || closed_) return;
  writing_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](std::error_code error) {
    self->writing_ = false;
    if (self->closed_ || (error && error != asio::error::operation_aborted)) return;
    self->flush();
    self->arm_read();
  });
}

void Connection::close_now() {
  if (closed_) return;
  closed_ = true;
  const auto self = shared_from_this();  // the host forgets us in on_closed()
  std::error_code ignored;
  socket_.close(ignored);
  host_.on_closed(*this, said_bye_);
}

}  // namespace cutwater::server
