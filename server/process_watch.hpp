// SPDX-License-Identifier: Apache-2.0
// Watches processes by pidfd: one call back, once, when a process has ended. The kernel's word,
// 0.3 ms after a SIGKILL; it does not fire on exec and cannot be fooled by a reused pid (C058).
// Bounds: one descriptor per row. Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include <asio.hpp>

#include "shm/directory.hpp"

namespace cutwater::server {

class ProcessWatch {
 public:
  using Ended = std::function<void(std::uint32_t row)>;

  ProcessWatch(asio::io_context& loop, Ended ended) : loop_(loop), ended_(std::move(ended)) {}

  /// Takes the pidfd over. A row that is watched already is watched anew.
  void watch(std::uint32_t row, shm::UniqueFd pidfd);
  void forget(std::uint32_t row);

 private:
  using Descriptor = asio::posix::stream_descriptor;

  asio::io_context& loop_;
  Ended ended_;
  std::map<std::uint32_t, std::shared_ptr<Descriptor>> watched_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();   // outlived by handlers under way
};

}  // namespace cutwater::server
