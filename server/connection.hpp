// SPDX-License-Identifier: Apache-2.0
// One accepted connection: carries bytes between its socket and its session machine, and carries
// out what the machine says. It decides nothing.
//
// One wakeup is one read of at most kReadSize bytes and, for all answers to it, one write.
// Reading: a receive is always pending, into kFirstRead bytes of the connection's own; what is
// longer is read on at once, into bytes that all share. Waiting for readiness instead would cost an
// epoll_ctl() each time, a microsecond of a round trip of nine. It stops while the machine does not
// want input. Descriptors a client sends are closed by the kernel and end the session.
// Sending: one queue, one write at a time; descriptors ride on the first byte of the piece they
// belong to. After CloseConnection what is queued still goes out, for at most
// kLingerNs, then the socket is closed.
// Idle: the machine's own idle time-out is switched off. A client that maps the memory keeps its
// connection silently for its whole life, since the end of the connection is how we learn of it;
// only sessions that do not map it, hold nothing and wait for nothing are ended after `idle_ns`
// without a byte.
// Life: held by its pending socket operations and by the desk. Thread safety: the loop's thread.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include <asio.hpp>

#include "peer.hpp"
#include "shm/process_table.hpp"
#include "wire/session.hpp"

namespace cutwater::server {

class Connection;

/// Who answers what the sessions ask, and hears of their ends.
class SessionHost {
 public:
  virtual void on_hello(Connection& from, const wire::HelloReceived& hello) = 0;
  /// One of the machine's Requested actions; none of the others.
  virtual void on_request(Connection& from, wire::ServerAction& action) = 0;
  virtual void on_fault(Connection& from, const wire::PeerFault& fault) = 0;
  /// The connection is over; afterwards it is never heard of again.
  virtual void on_closed(Connection& from, bool said_bye) = 0;
  virtual wire::Moment moment() const = 0;

 protected:
  ~SessionHost() = default;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = asio::local::stream_protocol::socket;
  static constexpr std::uint64_t kLingerNs = 2'000'000'000;
  static constexpr std::size_t kReadSize = 16384, kFirstRead = 4096;
  /// A piece that is longer already gets no more bytes joined to it; so many new bytes are written
  /// at once, so that the machine hears in time of a client that does not take them.
  static constexpr std::size_t kJoinedPiece = 65536;

  /// `settings`: its idle_ns is this connection's, see above.
  Connection(Socket socket, std::uint64_t id, PeerProcess peer, SessionHost& host,
             wire::ServerSettings settings = {});

  void start();
  /// Deadlines; called every tick.
  void tick(wire::Moment moment);
  /// Carries out what the machine returned.
  void perform(wire::ServerActions actions);
  /// Asks the client to finish: what is in flight is answered, then it ends (at the latest after
  /// the drain time).
  void go_away(wire::GoawayReason reason, std::string text);
  /// GOAWAY, then the end as soon as what was asked is answered and all is sent.
  void shut_down();
  /// Ends at once; the host hears of it.
  void drop();

  wire::ServerSession& session() noexcept { return session_; }
  std::uint64_t id() const noexcept { return id_; }
  Socket::executor_type executor() { return socket_.get_executor(); }
  PeerProcess& peer() noexcept { return peer_; }
  const PeerProcess& peer() const noexcept { return peer_; }

  // What the desk notes about the session.
  struct Notes {
    std::string name;                       ///< as the client says
    wire::Want mode = wire::Want::Ask;
    std::string why;                        ///< why it got less than it wanted
    std::uint8_t rights = 0;
    shm::RowGrant row;                      ///< index 0: none
    std::string session;                    ///< its token
    bool mapped = false;                    ///< it has the memory: may be silent for ever
    bool watches = false;                   ///< wants EVENTs
    bool holds = false;                     ///< a place or a probe: silent while its call runs
    std::int64_t since_ns = 0;              ///< segment time of WELCOME
    bool welcome = false;
  };
  Notes notes;
  /// Sent with the next piece that carries descriptors; owned by the memory.
  std::array<int, 3> descriptors{-1, -1, -1};

 private:
  struct Piece {
    std::string bytes;
    std::size_t sent = 0;
    bool with_descriptors = false;
  };

  void enqueue(wire::SendBytes&& send);
  void arm_read();
  void arm_write();
  void on_received(std::error_code error, std::size_t bytes);
  void go_on_reading();
  bool receive_rest(std::size_t most);
  bool take(std::string_view bytes, int flags);
  void finish_shut_down();
  void flush();
  ssize_t send_some(Piece& piece);
  void end_when_answered();
  void close_now();

  /// Of the same descriptor. Its kind has the receive that tells about descriptors.
  asio::generic::seq_packet_protocol::socket socket_;
  const std::uint64_t id_;
  PeerProcess peer_;
  SessionHost& host_;
  wire::ServerSession session_;
  std::deque<Piece> queue_;
  std::size_t unsent_ = 0, told_unsent_ = 0;   // queued; as the machine knows it
  const std::uint64_t idle_ns_;
  std::uint64_t last_input_ns_ = 0;
  std::uint64_t closing_since_ns_ = 0;
  int depth_ = 0;                      // perform() within perform()
  bool reading_ = false, writing_ = false, closing_ = false, closed_ = false;
  bool said_bye_ = false, shutting_down_ = false, ends_when_answered_ = false;
  asio::socket_base::message_flags received_flags_ = 0;
  std::array<char, kFirstRead> received_;      // by the pending receive
};

}  // namespace cutwater::server
