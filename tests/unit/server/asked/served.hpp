// SPDX-License-Identifier: Apache-2.0
// A daemon without its process: memory, janitor, desk and sessions as they are, on a loop that the
// test turns; and a peer that asks it over a socket pair. Memory files lie in a scratch directory,
// so that stop() and start() are a restart that adopts them. Thread safety: none.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "acts/acts.hpp"
#include "acts/journal.hpp"
#include "desk.hpp"
#include "reload.hpp"
#include "support/daemon_process.hpp"
#include "wire/enter_message.hpp"
#include "wire/frame.hpp"

namespace cutwater::test {

/// Of so little memory as `processes` sessions and two breakers or bulkheads need.
config::Config small_config(std::uint32_t processes);
/// A limit `api` of one token an hour, five at once.
rule::LimitSettings five_an_hour();

class Served {
 public:
  Served(const config::Config& config, bool stepped);
  ~Served() { stop(); }

  void start();
  /// Every connection is cut, as by kill -9; the memory files stay.
  void stop();
  void turn();
  /// One tick of janitor and desk, `after_ns` of the loop's time later.
  void tick(std::uint64_t after_ns = 10'000'000);
  /// The other end of a connection that the desk accepted.
  shm::UniqueFd connect();

  server::Memory& memory() { return *memory_; }
  const shm::View& view() const { return memory_->view(); }
  server::Desk& desk() { return *desk_; }
  server::Janitor& janitor() { return *janitor_; }

 private:
  ScratchPlace place_;
  server::Running running_;
  const bool stepped_;
  std::unique_ptr<server::Log> log_;
  asio::io_context loop_;
  std::unique_ptr<server::Memory> memory_;
  std::unique_ptr<server::Reloader> reloader_;
  std::unique_ptr<server::Acts> acts_;
  std::unique_ptr<server::Steering> steering_;
  std::unique_ptr<server::Janitor> janitor_;
  std::unique_ptr<server::Desk> desk_;
  std::uint64_t now_ns_ = 0;
};

class ServedPeer {
 public:
  explicit ServedPeer(Served& served) : served_(served), fd_(served.connect()) {}

  /// HELLO with this session to take over; what WELCOME said.
  wire::Welcome greet(std::string session = {},
                      std::uint64_t features = wire::kFeatureRemember);
  template <class Answer, class Message>
  std::optional<Answer> ask(const Message& message, std::uint16_t flags = 0) {
    const std::uint32_t request = ++request_;
    send(Message::kType, request, *wire::encode(message), flags);
    const auto frame = receive();
    if (!frame || frame->header.request != request || frame->header.type != Answer::kType) {
      return std::nullopt;
    }
    auto answer = wire::decode<Answer>(frame->payload);
    if (!answer) return std::nullopt;
    return *answer;
  }
  wire::Admission enter(const wire::Enter& asked);
  /// The code of one outcome; 999: no answer.
  std::uint16_t outcome(const wire::OutcomeReport& report);
  void send(wire::MessageType type, std::uint32_t request, std::string_view payload,
            std::uint16_t flags = 0);
  /// The next frame; nullopt when none comes however often the loop turns, or at the end.
  std::optional<wire::Frame> receive();
  /// The next frame that has come already; the loop is turned once.
  std::optional<wire::Frame> take_now();
  /// Ends the connection: with BYE, or by a cut.
  void bye();
  void cut();
  std::uint32_t last_request() const noexcept { return request_; }
  void set_last_request(std::uint32_t request) noexcept { request_ = request; }

 private:
  std::optional<wire::Frame> receive_within(int turns);

  Served& served_;
  shm::UniqueFd fd_;
  wire::FrameReader reader_{wire::kMaxFrameLargest};
  std::string bytes_;
  std::uint32_t request_ = 1;
};

}  // namespace cutwater::test
