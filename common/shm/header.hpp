// SPDX-License-Identifier: Apache-2.0
// The headers of the three memory files: planned from a capacity, checked before use, turned into a
// View. No file, no mapping in here: pure functions on private copies of the first page.
//
// Whoever opens a memory copies each first page once, checks the copies, and takes every bound from
// them; what somebody writes into the shared page afterwards changes nothing.
// Thread safety: values.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

#include "shm/segment.hpp"

namespace cutwater::shm {

/// One header per FileKind.
using HeaderSet = std::array<FileHeader, 3>;

/// "rules", "state", "stats": the file's name and its word in messages.
std::string_view name_of(FileKind file) noexcept;

/// What all three headers of one memory have in common.
struct SegmentIdentity {
  std::uint8_t uuid[16] = {};
  std::uint8_t boot_id[16] = {};
  std::int64_t epoch_ns = 0;
  ClockKind clock = ClockKind::Boottime;
  bool tsc = false;
  bool huge_pages = false;
  std::uint64_t time_namespace = 0;
};
/// A new identity of this boot: random uuid, epoch by the clock. System when the kernel gives no
/// random bytes or no boot id.
Result<SegmentIdentity> new_identity(const SegmentOptions& options);

/// Fills the master secret of the key hash; false when the kernel gives no random bytes.
bool make_secret(std::uint8_t (&secret)[192]) noexcept;

/// InvalidArgument names the setting and its range.
Result<void> check_capacity(const Capacity& capacity);

/// CRC32C of bytes 0..639 of a header, in `rules` followed by the hash secret: a flipped bit there
/// would send every key to another place, that is, forget all debts.
std::uint32_t header_checksum(const FileHeader& header) noexcept;

/// The header of one file with its regions and its CRC; `ready` and `secret` are still 0.
FileHeader plan_header(const Capacity& capacity, FileKind file, const SegmentIdentity& identity);

/// All checks of spec memory 3.3 on private copies. `lengths`: the real lengths of the files, by
/// fstat. Damaged, LayoutMismatch or ClockMismatch; the text names the file and the failed check.
Result<void> check_headers(const HeaderSet& headers, const std::array<std::uint64_t, 3>& lengths,
                           bool check_boot);

/// True when the headers are whole but were written before this machine started.
bool is_of_another_boot(const HeaderSet& headers) noexcept;

/// The pointers and bounds of a memory whose headers passed check_headers. `bases`: where the files
/// are mapped.
View view_of(const HeaderSet& headers, const std::array<std::uint8_t*, 3>& bases) noexcept;

/// The region of a kind, or nullptr.
const Region* find_region(const FileHeader& header, RegionKind kind) noexcept;

/// /proc/sys/kernel/random/boot_id as 16 bytes; false when it cannot be read.
bool read_boot_id(std::uint8_t (&out)[16]) noexcept;

}  // namespace cutwater::shm
