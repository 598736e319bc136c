// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli, reflected, as in iSCSI and ext4): finds accidents in headers, rule images and
// event records. It is no protection against somebody who means it: whoever can write the bytes can
// write the sum.
//
// Uses the crc32 instruction where the processor has SSE4.2 (asked at run time, no -march), else
// eight tables. Both give the same number.
// Thread safety: pure; from any thread. Bytes that change meanwhile give a sum of no use.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cutwater {

/// CRC32C of `length` bytes at `data`. `seed` is the sum of the bytes before them, 0 at the start:
/// crc32c(b, n, crc32c(a, m)) is the sum of a followed by b. "123456789" gives 0xe3069283.
std::uint32_t crc32c(const void* data, std::size_t length, std::uint32_t seed = 0) noexcept;

/// The same by tables only: what a processor without SSE4.2 uses. For tests.
std::uint32_t crc32c_by_table(const void* data, std::size_t length, std::uint32_t seed) noexcept;

}  // namespace cutwater
