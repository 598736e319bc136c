// SPDX-License-Identifier: Apache-2.0
// Sessions whose connection was cut: what they remember is kept for `session-grace`, so that the
// same client can take its session over and repeat what was not answered (no request is executed
// twice). Only the same identity (uid) gets it. Pure: times go in.
// Bounds: kMaxParked sessions; beyond, the one that would end first goes. What one holds is
// wire::AnswerMemory's bound. Thread safety: one thread.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "shm/process_table.hpp"
#include "wire/answer_memory.hpp"

namespace cutwater::server {

class SessionStore {
 public:
  static constexpr std::size_t kMaxParked = 1024;

  struct Parked {
    std::uint32_t uid = 0;
    shm::RowGrant row;                 ///< index 0: none
    std::uint64_t until_ns = 0;
    wire::AnswerMemory memory;
  };

  void park(const std::string& token, Parked parked);
  /// nullopt: unknown, over, or somebody else's.
  std::optional<Parked> take(const std::string& token, std::uint32_t uid, std::uint64_t now_ns);
  /// The memory of a parked session, for answers that come late.
  wire::AnswerMemory* find(const std::string& token);
  void tick(std::uint64_t now_ns);

  std::size_t size() const noexcept { return parked_.size(); }

 private:
  std::map<std::string, Parked> parked_;
};

}  // namespace cutwater::server
