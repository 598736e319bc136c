// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#include <nmmintrin.h>

namespace cutwater {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78U;   // 0x1edc6f41 with its bits reversed
constexpr std::size_t kStep = 8;

using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = sum;
  }
  // tables[n][byte]: what `byte` contributes when n more bytes follow it.
  for (std::size_t n = 1; n < kStep; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

// Only called where the processor has the instruction.
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(const std::uint8_t* bytes,
                                                              std::size_t length,
                                                              std::uint32_t seed) noexcept {
  std::uint64_t sum = ~seed;
  for (; length >= kStep; length -= kStep, bytes += kStep) {
    std::uint64_t chunk;
    std::memcpy(&chunk, bytes, sizeof chunk);
    sum = _mm_crc32_u64(sum, chunk);
  }
  auto tail = static_cast<std::uint32_t>(sum);
  for (; length != 0; --length, ++bytes) tail = _mm_crc32_u8(tail, *bytes);
  return ~tail;
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t length, std::uint32_t seed) noexcept {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) {
    return crc32c_by_instruction(static_cast<const std::uint8_t*>(data), length, seed);
  }
  return crc32c_by_table(data, length, seed);
}

std::uint32_t crc32c_by_table(const void* data, std::size_t length, std::uint32_t seed) noexcept {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  std::uint32_t sum = ~seed;
  for (; length >= kStep; length -= kStep, bytes += kStep) {
    std::uint64_t chunk;
    std::memcpy(&chunk, bytes, sizeof chunk);
    chunk ^= sum;
    sum = 0;
    for (std::size_t i = 0; i < kStep; ++i) {
      sum ^= kTables[kStep - 1 - i][(chunk >> (8 * i)) & 0xff];
    }
  }
  for (; length != 0; --length, ++bytes) sum = (sum >> 8) ^ kTables[0][(sum ^ *bytes) & 0xff];
  return ~sum;
}

}  // namespace cutwater
