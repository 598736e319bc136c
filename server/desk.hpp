// SPDX-License-Identifier: Apache-2.0
// The desk where sessions are served: it knows who is connected, greets with WELCOME or refuses,
// hands what is asked to who answers it, pushes events, and hears of every end.
//
// A session that remembers answers keeps them for `session-grace` when its connection is cut, and
// its row with it (session_store.hpp); the same uid may take it over.
// Rights are looked at again after every reload: a session that lost one is told GOAWAY 5 and ends.
// A memory it maps already cannot be taken away from it.
// Bounds: listen.max-connections and -per-peer, 30 failed HELLOs of a uid a minute. What a peer
// does wrong is logged once per uid and minute, never with a key.
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <asio.hpp>

#include "acts/steering.hpp"
#include "ask/asking.hpp"
#include "connection.hpp"
#include "event_feed.hpp"
#include "janitor.hpp"
#include "log.hpp"
#include "memory.hpp"
#include "reader.hpp"
#include "running.hpp"
#include "session_store.hpp"
#include "source_book.hpp"
#include "top_keys.hpp"

namespace cutwater::server {

class Desk final : public SessionHost {
 public:
  Desk(Memory& memory, Janitor& janitor, Running& running, Steering& steering, Log& log);

  void accepted(Connection::Socket socket);
  void tick();
  void each_minute();
  /// Another configuration is in force: bounds, and rights that were withdrawn.
  void reconfigured();
  /// GOAWAY to all; each ends as soon as what it asked is answered and sent.
  void shut_down();
  /// Called after a connection ended and none is left.
  void set_when_empty(std::function<void()> when_empty) { when_empty_ = std::move(when_empty); }
  /// The memory is another one: sessions that map the old one are told GOAWAY 4.
  void memory_replaced();

  void set_reader(const Reader* reader) { reader_ = reader; }
  Decider& decider() noexcept { return asking_.decider(); }
  /// Answers whoever stood in line for a place and got it or may wait no longer; done by itself
  /// every Line::kPollNs.
  void look_at_line() { asking_.line().poll(moment().now_ns); }
  std::size_t connections() const noexcept { return connections_.size(); }
  std::uint64_t refused() const noexcept { return refused_; }
  /// What the daemon adds to the rows of READ clients.
  void add_clients(rows::Rows& clients) const;

  void on_hello(Connection& from, const wire::HelloReceived& hello) override;
  void on_request(Connection& from, wire::ServerAction& action) override;
  void on_fault(Connection& from, const wire::PeerFault& fault) override;
  void on_closed(Connection& from, bool said_bye) override;
  wire::Moment moment() const override;

 private:
  void serve(Connection& from, const wire::ReadRequested& asked);
  void serve(Connection& from, const wire::SteerRequested& asked);
  void serve(Connection& from, const wire::WatchRequested& asked);
  void note_welcome(Connection& from, const wire::Hello& hello, const wire::Welcome& welcome);
  wire::AnswerMemory take_over(Connection& from, const wire::Hello& hello,
                               wire::Welcome& welcome);
  void note_former(Connection& from, const wire::Hello& hello);
  void drop_former(const std::string& token, std::uint32_t uid);
  void give_row(Connection& from, const wire::Hello& hello, wire::Welcome& welcome);
  /// A session without a row gets one before it first may hold something.
  void need_row(Connection& from);
  /// An answer that comes later than its request: to whoever has the session by then.
  template <class Answer>
  void deliver(const Line::Asker& asker, const Answer& answer, wire::Receipts receipts);
  void push_events();
  /// A connection may end, and leave the map, while it is visited.
  template <class Each>
  void for_each_connection(Each&& each) {
    for (auto it = connections_.begin(); it != connections_.end();) {
      const std::shared_ptr<Connection> connection = (it++)->second;
      each(*connection);
    }
  }
  void say_once(std::uint32_t uid, std::string_view text);
  std::string who(const Connection& from) const;

  Memory& memory_;
  Janitor& janitor_;
  Running& running_;
  Steering& steering_;
  Log& log_;
  const Reader* reader_ = nullptr;
  std::function<void()> when_empty_;
  Asking asking_;
  TopKeys top_keys_;
  EventFeed feed_;
  SessionStore store_;
  SourceBook sources_;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::uint64_t next_id_ = 1;
  std::uint64_t refused_ = 0;
  bool stopping_ = false;
  std::uint64_t time_namespace_ = 0;
  std::string daemon_id_;                  ///< 16 random bytes: this run of the daemon
};

}  // namespace cutwater::server
