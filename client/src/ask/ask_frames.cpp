// SPDX-License-Identifier: Apache-2.0
// Frames that AskSocket keeps for the next ask, so that asking allocates nothing.
#include <memory>
#include <new>

#include "src/ask/ask_socket.hpp"
#include "wire/frame.hpp"

namespace cutwater::client {

std::string* AskSocket::take_frame() noexcept {
  for (auto& kept : frames_) {
    // acquire: pairs with the release in give_frame(), so what was last written there is seen.
    if (std::string* const frame = kept.exchange(nullptr, std::memory_order_acquire)) {
      frame->resize(wire::kHeaderSize);
      return frame;
    }
  }
  try {
    auto frame = std::make_unique<std::string>();
    frame->reserve(512);
    frame->resize(wire::kHeaderSize);
    return frame.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void AskSocket::give_frame(std::string* frame) noexcept {
  for (auto& kept : frames_) {
    std::string* empty = nullptr;
    if (kept.compare_exchange_strong(empty, frame, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  delete frame;
}

}  // namespace cutwater::client
