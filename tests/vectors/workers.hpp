// SPDX-License-Identifier: Apache-2.0
// Processes that do what they are told, one task at a time: the parent tells, each answers with a
// number. They end when this object does. Every wait ends when the other side is gone.
// Thread safety: one thread, the parent's. Nothing of the test may run in a child but `work`.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <sys/types.h>

namespace cutwater::test {

class Workers {
 public:
  using Work = std::function<std::uint64_t(std::uint64_t task)>;

  /// `start` runs once in each child and gives what is done for every task.
  Workers(int processes, const std::function<Work()>& start);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int size() const { return static_cast<int>(ends_.size()); }
  void tell(int worker, std::uint64_t task);
  /// Answer to the last task; ends the test program when the worker died.
  std::uint64_t answer(int worker);
  /// All at once with one task; the sum of their answers.
  std::uint64_t all(std::uint64_t task);

 private:
  struct End { pid_t pid; int socket; };
  std::vector<End> ends_;
};

}  // namespace cutwater::test
