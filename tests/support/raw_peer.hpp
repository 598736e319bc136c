// SPDX-License-Identifier: Apache-2.0
// A peer of the daemon that says whatever a test wants: raw bytes, frames, a HELLO of any kind.
// Receiving waits for the answer under the watchdog. Closes its socket and every descriptor it got.
// Thread safety: one thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shm/directory.hpp"
#include "wire/enter_message.hpp"
#include "wire/message.hpp"
#include "wire/watch_message.hpp"

namespace cutwater::test {

class RawPeer {
 public:
  /// Not connected when nobody listens.
  explicit RawPeer(const std::string& socket_path);

  bool connected() const { return static_cast<bool>(fd_); }
  int error() const { return error_; }          ///< errno of a failed connect
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

  bool send(std::string_view bytes);
  bool send_frame(wire::MessageType type, std::uint32_t request, std::string_view payload);
  /// One frame; nullopt when the daemon closed, or the watchdog barked.
  std::optional<wire::Frame> receive();
  /// True when the daemon closes without another frame.
  bool at_end();

  /// A HELLO that this build's library would send.
  static wire::Hello hello(wire::Want want, std::string name = "raw");
  /// HELLO and its answer: WELCOME, or the ERROR's text in `refusal`.
  std::optional<wire::Welcome> greet(const wire::Hello& hello);
  std::optional<wire::Welcome> greet(wire::Want want) { return greet(hello(want)); }

  std::optional<wire::ReadAnswer> read(wire::Read asked);
  std::optional<wire::ReadAnswer> read(std::string what);
  std::optional<wire::SteerAnswer> steer(const wire::Steer& asked);
  std::optional<wire::Pong> ping(std::uint64_t value);

  /// A request and its answer: `peer.ask<wire::AcquireAnswer>(acquire)`. EVENTs in between are
  /// kept in `events`. nullopt: an ERROR (refusal()), BUSY, or the end.
  template <class Answer, class Message>
  std::optional<Answer> ask(const Message& message, std::uint16_t flags = 0) {
    const auto payload = wire::encode(message);
    if (!payload) return std::nullopt;
    return ask_raw<Answer>(Message::kType, *payload, flags);
  }
  /// The same with a payload of any form.
  template <class Answer>
  std::optional<Answer> ask_raw(wire::MessageType type, std::string_view payload,
                                std::uint16_t flags = 0) {
    const auto frame = exchange(type, payload, flags);
    if (!frame || frame->header.type != Answer::kType) return std::nullopt;
    auto answer = wire::decode<Answer>(frame->payload);
    if (!answer) return std::nullopt;
    return *answer;
  }
  /// Waits for the next EVENT.
  std::optional<wire::Event> event();
  /// Request id of the next request; a test that repeats one sets it back.
  std::uint32_t next_request() const { return next_request_; }
  void set_next_request(std::uint32_t request) { next_request_ = request; }
  const std::vector<wire::Goaway>& goaways() const { return goaways_; }

  const wire::ErrorMessage& refusal() const { return refusal_; }
  const std::vector<shm::UniqueFd>& files() const { return files_; }

 private:
  bool fill();
  /// The frame that is no push; nullopt: an ERROR, or the end.
  std::optional<wire::Frame> exchange(wire::MessageType type, std::string_view payload,
                                      std::uint16_t flags);
  bool keep_push(const wire::Frame& frame);

  shm::UniqueFd fd_;
  int error_ = 0;
  wire::FrameReader reader_{wire::kMaxFrameLargest};
  std::string buffer_;
  std::vector<shm::UniqueFd> files_;
  wire::ErrorMessage refusal_;
  std::uint32_t next_request_ = 1;
  std::vector<wire::Event> events_;
  std::vector<wire::Goaway> goaways_;
};

}  // namespace cutwater::test
