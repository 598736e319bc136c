// SPDX-License-Identifier: Apache-2.0
// Notes the keys that sessions ask for in the sketch of top keys (shm/limit/tops.hpp). All of them
// while there are few; beyond kAllPerTick in a tick one of kOneOf, which then stands for so many: a
// flood costs a look over the rows now and then, and the heavy keys are still the ones that show.
// What mapped clients decide they note themselves (client/src/top_sample.hpp).
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>

#include "ask/decider.hpp"

namespace cutwater::server {

class TopKeys final : public KeyWitness {
 public:
  static constexpr std::uint32_t kAllPerTick = 256;
  static constexpr std::uint32_t kOneOf = 16;

  explicit TopKeys(const Memory& memory) : memory_(memory) {}

  void decided(const shm::AdmitAsk& ask, bool allowed) override;
  void tick() noexcept { in_tick_ = 0; }

 private:
  const Memory& memory_;
  std::uint32_t in_tick_ = 0, beyond_ = 0;
};

}  // namespace cutwater::server
