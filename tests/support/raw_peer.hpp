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
#include "wire/message.hpp"

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

  const wire::ErrorMessage& refusal() const { return refusal_; }
  const std::vector<shm::UniqueFd>& files() const { return files_; }

 private:
  bool fill();

  shm::UniqueFd fd_;
  int error_ = 0;
  wire::FrameReader reader_{wire::kMaxFrameLargest};
  std::string buffer_;
  std::vector<shm::UniqueFd> files_;
  wire::ErrorMessage refusal_;
  std::uint32_t next_request_ = 1;
};

}  // namespace cutwater::test
