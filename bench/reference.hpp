// SPDX-License-Identifier: Apache-2.0
// What cutwater is measured against, built in so that both sides run in one interleaved run.
//
//   gcra_array  the least a shared limiter can do: CLOCK_BOOTTIME, GCRA in ns, one 8-byte CAS on
//               array[index] in shared memory, inlined. It knows no names, no keys, no table, no
//               reload, and errs by up to +6033 ppm at 7M/s.
//   naive       what one writes first: Boost.Interprocess mutex + unordered_map of strings in
//               managed shared memory. A kill -9 inside leaves the mutex held for ever.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <time.h>

namespace cutwater::bench {

inline std::int64_t read_boottime() noexcept {
  timespec reading;
  clock_gettime(CLOCK_BOOTTIME, &reading);
  return std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec;
}

/// Anonymous memory that forked children share. Pages are there when it returns.
void* shared_pages(std::size_t bytes);
void release_pages(void* place, std::size_t bytes);

class GcraArray {
 public:
  explicit GcraArray(std::size_t keys)
      : slots_(static_cast<std::atomic<std::int64_t>*>(shared_pages(keys * sizeof(std::int64_t)))) {
  }

  /// 1 per 100 ns, burst of 1000 s: always admits, as the other side does.
  [[gnu::always_inline]] bool take(std::size_t index) noexcept {
    constexpr std::int64_t kInterval = 100, kBurst = 1'000'000'000'000;
    const std::int64_t now = read_boottime();
    std::int64_t tat = slots_[index].load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t next = (tat > now ? tat : now) + kInterval;
      if (next - now > kBurst) return false;
      if (slots_[index].compare_exchange_weak(tat, next, std::memory_order_acq_rel,
                                              std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  std::atomic<std::int64_t>* slots_;
};

class NaiveLimiter {
 public:
  explicit NaiveLimiter(std::size_t keys);
  ~NaiveLimiter();
  void add(std::string_view key);
  bool take(std::string_view key);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

/// The same names for every case: "tenant-7/user-0000000007", 24 bytes; one after the other.
class Keys {
 public:
  explicit Keys(std::size_t count);
  /// The names of these keys in this order: as a caller has them who was just sent each of them.
  explicit Keys(const std::vector<std::uint32_t>& order);
  std::string_view operator[](std::size_t i) const { return {text_.data() + i * kLength, kLength}; }
  std::size_t size() const { return text_.size() / kLength; }
  static constexpr std::size_t kLength = 24;

 private:
  void put(std::size_t place, std::uint32_t key);
  std::vector<char> text_;
};

/// Indexes of keys in the order they are asked: uniform, fixed seed.
std::vector<std::uint32_t> uniform_order(std::size_t length, std::size_t keys);

}  // namespace cutwater::bench
