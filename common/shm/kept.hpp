// SPDX-License-Identifier: Apache-2.0
// Kept: what a process keeps of one breaker's or bulkhead's settings in its own memory, so that its
// short ways need not copy and check them anew at each call (shm/breaker/kept.hpp,
// shm/bulkhead/kept.hpp say which words).
//
//   const auto begun = local.kept.begin();
//   const auto head = local.kept.word<BreakerWord8::Head>(); ...
//   if (!local.kept.holds(view, begun)) ...              // read them anew, and keep() them
//
// Words are good while `current` of the rules is the one they were checked under. Whoever reads
// them takes `current` of the copy first and looks at the one of the rules behind its last word
// (guard PartsReadAgainAfterReload). Whoever keeps does so alone, saw the rules at that `current`
// while it was alone, takes the copy's away before the first word and sets it behind the last. So a
// reader who found a word of another keeping finds other rules behind it, and drops what it read.
// Under one `current` words are written once: a second ref under the same rules is not kept.
// A reload storm costs copies that are not kept; it breaks none and takes no memory.
// Thread safety: any number of readers and keepers; nobody waits. Private memory: a kill concerns
// nobody else. fork(): a child goes on with what was kept; one that was forked while a thread of
// its parent was keeping never keeps again and goes the long way, which is slower and nothing else.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/guard.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// An index and its incarnation in one word.
constexpr std::uint64_t pack_ref(std::uint32_t index, std::uint32_t incarnation) noexcept {
  return std::uint64_t{incarnation} << 32 | index;
}

template <std::size_t kWords>
class Kept {
 public:
  using Words = std::array<std::uint64_t, kWords>;

  /// Which rules the words are of, before the first of them is read: for holds().
  [[gnu::always_inline]] std::uint64_t begin() const noexcept {
    // acquire: who finds it finds the words that were stored before it.
    return current_.load(std::memory_order_acquire);
  }
  /// One word; what it means is known behind holds().
  template <auto kWhich>
  [[gnu::always_inline]] std::uint64_t word() const noexcept {
    // acquire: a later load sees what whoever wrote this word had seen.
    return words_[static_cast<std::size_t>(kWhich)].load(std::memory_order_acquire);
  }
  /// True: all words read since begin() are of the rules in force.
  [[gnu::always_inline]] static bool holds(const View& view, std::uint64_t begun) noexcept {
    if (!guarded(Guard::PartsReadAgainAfterReload)) return begun != kNothing;
    return view.current() == begun;
  }

  /// Keeps `words`, checked under `current`, unless other rules are in force or somebody else is at
  /// it. Rare.
  void keep(const View& view, std::uint64_t current, const Words& words) noexcept {
    // relaxed: looked at again below.
    if (current_.load(std::memory_order_relaxed) == current) return;
    if ((current & kCurrentSupersededBit) != 0 ||
        writing_.exchange(true, std::memory_order_acquire)) {
      return;
    }
    if (current_.load(std::memory_order_relaxed) != current && view.current() == current) {
      current_.store(kNothing, std::memory_order_relaxed);
      // release, all: who finds one of them finds what was stored, and seen, before.
      for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
      current_.store(current, std::memory_order_release);
    }
    writing_.store(false, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};   // no rules have this `current`

  std::atomic<std::uint64_t> current_{kNothing};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
  std::atomic<bool> writing_{false};
};

}  // namespace cutwater::shm
