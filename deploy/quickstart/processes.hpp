// SPDX-License-Identifier: Apache-2.0
// Processes: forked children that never outlive their parent.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cutwater/result.hpp>

namespace cutwater::quickstart {

class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  /// Kills those that still run and reaps them.
  ~Processes();

  /// Forks `count` children; each runs `work(i)` and ends with its result. They are killed by the
  /// kernel when this process ends. System: the kernel refused; those made are kept.
  Result<void> start(std::uint32_t count, const std::function<int(std::uint32_t)>& work);

  /// Text about the first child that ended badly (or at all, with `any`), or empty. Does not wait.
  std::string ended(bool any) const;
  /// Waits for all of them; false when one ended badly.
  bool wait();

 private:
  struct Child {
    pid_t pid = 0;
    bool reaped = false;
    int status = 0;
  };
  mutable std::vector<Child> children_;
};

}  // namespace cutwater::quickstart
