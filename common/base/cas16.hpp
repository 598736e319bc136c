// SPDX-License-Identifier: Apache-2.0
// The one atomic step everything in the segment is built from:
// compare-and-swap of 16 bytes (lock cmpxchg16b). x86-64 with cx16; another architecture adds its
// branch here and nowhere else (ARM64: LSE casp).
//
// No std::atomic of 16 bytes (it calls libatomic, which may lock) and no stand-alone fences
// (ThreadSanitizer does not know them). A locked instruction is a full barrier, so cas16 is
// sequentially consistent. Process safety: any number of processes over MAP_SHARED memory; a kill
// leaves the old or the new value, never a mix.
#pragma once
#include <cstdint>

#if !defined(__x86_64__)
#error "cutwater needs x86-64 with cmpxchg16b"
#endif

#if defined(__SANITIZE_THREAD__)
#define CUTWATER_TSAN_ACTIVE 1          // NOLINT: a compiler switch, not an interface
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CUTWATER_TSAN_ACTIVE 1          // NOLINT
#endif
#endif

namespace cutwater {

/// Two 64-bit halves that change together. Always at a 16-byte address.
struct alignas(16) Word16 {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend bool operator==(const Word16&, const Word16&) = default;
};
static_assert(sizeof(Word16) == 16 && alignof(Word16) == 16);

/// Swaps *place from `expected` to `desired` in one step. Fails: `expected` then holds what was
/// there. Faults on a read-only page, also when it would fail.
[[gnu::always_inline]] inline bool cas16(Word16* place, Word16& expected, Word16 desired) noexcept {
#if defined(CUTWATER_TSAN_ACTIVE)
  // ThreadSanitizer judges by its own atomics: the same step, in a form it can see.
  using Wide = unsigned __int128;
  Wide want = (Wide{expected.hi} << 64) | expected.lo;
  const Wide next = (Wide{desired.hi} << 64) | desired.lo;
  const bool won = __atomic_compare_exchange_n(reinterpret_cast<Wide*>(place), &want, next, false,
                                               __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (!won) {
    expected.lo = static_cast<std::uint64_t>(want);
    expected.hi = static_cast<std::uint64_t>(want >> 64);
  }
  return won;
#else
  bool won;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(won), "+m"(*place), "+a"(expected.lo), "+d"(expected.hi)
               : "b"(desired.lo), "c"(desired.hi)
               : "memory");
  return won;
#endif
}

/// Reads both halves in one step, also from a read-only page. One SSE load is atomic on every
/// processor with AVX (Intel SDM vol. 3 8.1.1; AMD APM vol. 2 7.3.2); the segment refuses to open
/// on a processor without.
[[gnu::always_inline]] inline Word16 load16(const Word16* place) noexcept {
#if defined(CUTWATER_TSAN_ACTIVE)
  using Wide = unsigned __int128;
  const Wide seen = __atomic_load_n(reinterpret_cast<const Wide*>(place), __ATOMIC_SEQ_CST);
  return {static_cast<std::uint64_t>(seen), static_cast<std::uint64_t>(seen >> 64)};
#else
  // "memory": nothing may be moved across, so the load acquires what a cas16 by somebody else
  // published.
  using Pair = long long __attribute__((vector_size(16)));
  Pair seen;
  asm volatile("movdqa %1, %0" : "=x"(seen) : "m"(*place) : "memory");
  return {static_cast<std::uint64_t>(seen[0]), static_cast<std::uint64_t>(seen[1])};
#endif
}

/// True when this processor has what cas16 and load16 rely on (cx16 and AVX).
bool processor_supported() noexcept;

}  // namespace cutwater
