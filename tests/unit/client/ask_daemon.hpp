// SPDX-License-Identifier: Apache-2.0
// A scripted daemon that is asked over its socket: it executes asks by a naive model (each key of a
// limit has `tokens`, which never refill), remembers answers per session as the protocol says, and
// misbehaves as told: cuts, silence, BUSY, GOAWAY, other memory. For tests of what a client makes
// of it. One thread serves all connections; the script is changed from the test's.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/client/fake_daemon.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::test {

class AskDaemon {
 public:
  /// Listens at a path of its own.
  AskDaemon();
  ~AskDaemon();

  std::string path() const { return folder_ + "/d.sock"; }
  std::string address() const { return "unix:" + path(); }
  std::string address_to_ask() const { return address() + "?ask"; }

  // -- the script; before the client comes, or at any time where atomic
  wire::Welcome welcome = usual_welcome();
  std::vector<int> files;                        ///< sent with every WELCOME, not closed here
  std::set<std::string> limits{"api"};
  std::uint64_t tokens = 1'000'000;
  std::set<std::string> breakers{"fraud"};
  std::atomic<bool> open{false};                 ///< breakers refuse: OPEN for 2 s, since 3.2 s
  std::atomic<bool> probes{false};               ///< what they grant holds a cell
  std::atomic<bool> timed{true};                 ///< ... is to tell the time it takes
  std::atomic<bool> silent{false};               ///< takes requests and answers none
  std::atomic<bool> resumes{true};               ///< false: every session is unknown
  std::atomic<std::uint64_t> wait_ns{0};         ///< every charge begins so much later
  std::atomic<int> busy{0};                      ///< so many requests are answered BUSY
  std::atomic<int> goaway_after{-1};             ///< GOAWAY behind so many answers; once
  std::atomic<long> cut_in{-1}, cut_out{-1};     ///< closes after so many bytes read, written; once

  /// Ends the connections and the socket; every session is forgotten.
  void stop();
  /// Listens again, as another run of the daemon.
  void start();

  // -- what happened
  std::uint64_t executed(const std::string& limit, const std::string& key);
  std::uint64_t executed_in_all();
  std::uint64_t most_items_waiting() { return most_waiting_.load(); }
  /// Tickets' ends as they came, repeats dropped.
  std::vector<wire::OutcomeReport> outcomes();
  /// Waits until there are so many.
  bool wait_outcomes(std::size_t count);
  std::atomic<std::uint64_t> quiet{0}, presented{0}, cancels{0};
  std::atomic<std::uint64_t> hellos{0}, requests{0}, repeats{0}, refunds{0}, faults{0};

 private:
  struct Session {
    std::map<std::uint32_t, std::string> answers;
    std::map<std::pair<std::uint32_t, std::size_t>, std::string> charged;   ///< (request, item)
    std::uint32_t last = 0;
  };
  struct Link {
    int fd = -1;
    wire::FrameReader reader;
    std::string token;
    std::string out;
    bool open = true;
  };

  void serve();
  void take(Link& link);
  void on_frame(Link& link, const wire::Frame& frame);
  void on_hello(Link& link, const wire::Frame& frame);
  std::string execute(Session& session, const wire::Frame& frame);
  wire::DecisionAnswer decide(const std::string& limit, const wire::Item& item, bool write);
  std::string refund(Session& session, const wire::Refund& refund);
  std::string enter(const wire::Enter& asked);
  std::string resolve(const wire::Resolve& asked);
  std::string end(const wire::Outcome& outcome);
  std::string present(const wire::Present& asked);
  void send(Link& link, const wire::FrameHeader& header, std::string_view payload);
  void write(Link& link);

  std::string folder_;
  int listener_ = -1;
  int wakeup_[2] = {-1, -1};
  std::atomic<bool> ending_{false};
  std::thread thread_;
  std::atomic<std::uint64_t> most_waiting_{0};

  std::mutex mutex_;                             // what follows
  std::map<std::string, Session> sessions_;
  std::uint64_t runs_ = 0, tokens_made_ = 0, tickets_made_ = 0;
  std::vector<wire::OutcomeReport> outcomes_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> spent_;
};

}  // namespace cutwater::test
