// SPDX-License-Identifier: Apache-2.0
// Mapping: one file (or no file) mapped MAP_SHARED at a 2 MiB boundary, by Boost.Interprocess.
//
// Page faults are taken at once (MAP_POPULATE), so no decision waits for a page later. The address
// is a multiple of 2 MiB: where the tmpfs gives huge pages they can be mapped as such.
// Thread safety: as a value type.
#pragma once
#include <cstddef>
#include <cstdint>

#include <boost/interprocess/mapped_region.hpp>

#include <cutwater/result.hpp>

namespace cutwater::shm {

class Mapping {
 public:
  /// Maps `length` bytes of the descriptor; `fd` -1 = anonymous memory that forked children share.
  /// NoMemory or System with the kernel's message. The descriptor may be closed afterwards.
  struct Ask { int fd = -1; std::size_t length = 0; bool writable = false; };
  static Result<Mapping> map(Ask ask);

  std::uint8_t* address() const noexcept {
    return static_cast<std::uint8_t*>(region_.get_address());
  }
  std::size_t length() const noexcept { return region_.get_size(); }

 private:
  boost::interprocess::mapped_region region_;
};

}  // namespace cutwater::shm
