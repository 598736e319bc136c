// SPDX-License-Identifier: Apache-2.0
#include "process_watch.hpp"

namespace cutwater::server {

void ProcessWatch::watch(std::uint32_t row, shm::UniqueFd pidfd) {
  forget(row);
  if (!pidfd) return;
  auto descriptor = std::make_shared<Descriptor>(loop_, pidfd.release());
  watched_[row] = descriptor;
  const std::weak_ptr<char> alive = alive_;
  descriptor->async_wait(Descriptor::wait_read, [this, alive, row,
                                                 descriptor](std::error_code error) {
    if (error || alive.expired()) return;          // the watch itself may be gone by now
    // Forgotten meanwhile, or watched anew: this end is nobody's business.
    const auto found = watched_.find(row);
    if (found == watched_.end() || found->second != descriptor) return;
    watched_.erase(found);
    ended_(row);
  });
}

void ProcessWatch::forget(std::uint32_t row) {
  const auto found = watched_.find(row);
  if (found == watched_.end()) return;
  std::error_code ignored;
  found->second->close(ignored);
  watched_.erase(found);
}

}  // namespace cutwater::server
