// SPDX-License-Identifier: Apache-2.0
// The desk where sessions are served: it knows who is connected, greets with WELCOME or refuses,
// hands READ to the reader and STEER to the steering, and hears of every end.
//
// Bounds: SourceBook's (1024 connections, 256 of one uid, 30 failed HELLOs a minute). What a peer
// does wrong is logged once per uid and minute, never with a key.
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <asio.hpp>

#include "connection.hpp"
#include "janitor.hpp"
#include "log.hpp"
#include "memory.hpp"
#include "reader.hpp"
#include "running.hpp"
#include "source_book.hpp"
#include "steering.hpp"

namespace cutwater::server {

class Desk final : public SessionHost {
 public:
  Desk(Memory& memory, Janitor& janitor, Running& running, Steering& steering, Log& log);

  void accepted(Connection::Socket socket);
  void tick();
  void each_minute();
  /// GOAWAY to all.
  void shut_down();

  void set_reader(const Reader* reader) { reader_ = reader; }
  std::size_t connections() const noexcept { return connections_.size(); }
  std::uint64_t refused() const noexcept { return refused_; }
  /// What the daemon adds to the rows of READ clients.
  void add_clients(rows::Rows& clients) const;

  void on_hello(Connection& from, const wire::HelloReceived& hello) override;
  void on_read(Connection& from, const wire::ReadRequested& asked) override;
  void on_steer(Connection& from, const wire::SteerRequested& asked) override;
  void on_fault(Connection& from, const wire::PeerFault& fault) override;
  void on_closed(Connection& from, bool said_bye) override;
  wire::Moment moment() const override;

 private:
  void give_row(Connection& from, const wire::Hello& hello, wire::Welcome& welcome);
  void say_once(std::uint32_t uid, std::string_view text);
  std::string who(const Connection& from) const;

  Memory& memory_;
  Janitor& janitor_;
  Running& running_;
  Steering& steering_;
  Log& log_;
  const Reader* reader_ = nullptr;
  SourceBook sources_;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::uint64_t next_id_ = 1;
  std::uint64_t refused_ = 0;
  std::uint64_t time_namespace_ = 0;
  std::string daemon_id_;                  ///< 16 random bytes: this run of the daemon
};

}  // namespace cutwater::server
