// SPDX-License-Identifier: Apache-2.0
#include "shm/mapping.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <boost/interprocess/exceptions.hpp>

#include "shm/layout.hpp"

namespace cutwater::shm {
namespace {

namespace ipc = boost::interprocess;

/// What mapped_region asks of a thing it maps.
struct Descriptor {
  int fd;
  ipc::mapping_handle_t get_mapping_handle() const noexcept { return {fd, false}; }
};

/// Address space of `length` bytes at a multiple of 2 MiB with nothing in it; nullptr when there is
/// none. mmap directly: mapped_region can neither reserve without memory nor choose an alignment.
std::uint8_t* reserve_aligned(std::size_t length) noexcept {
  void* space = mmap(nullptr, length + kBucketAlign, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::uint8_t*>(space);
  const std::size_t head = (kBucketAlign - reinterpret_cast<std::uintptr_t>(begin) % kBucketAlign) %
                           kBucketAlign;
  if (head != 0) munmap(begin, head);
  munmap(begin + head + length, kBucketAlign - head);
  return begin + head;
}

Error map_error(int error_number, std::size_t length) {
  const bool memory = error_number == ENOMEM || error_number == EAGAIN;
  return {memory ? Errc::NoMemory : Errc::System,
          "cannot map " + std::to_string(length) + " bytes: " + std::strerror(error_number)};
}

}  // namespace

Result<Mapping> Mapping::map(Ask ask) {
  // Whole pages, so that what reserve_aligned leaves over can be given back.
  const std::size_t length = (ask.length + kPage - 1) / kPage * kPage;
  std::uint8_t* place = reserve_aligned(length);
  if (place == nullptr) return map_error(errno, length);
  // MAP_FIXED replaces exactly the reservation, which nobody else knows.
  const int options = MAP_FIXED | MAP_POPULATE | (ask.fd < 0 ? MAP_ANONYMOUS : 0);
  try {
    Mapping mapping;
    const ipc::mode_t mode = ask.writable ? ipc::read_write : ipc::read_only;
    mapping.region_ = ipc::mapped_region(Descriptor{ask.fd}, mode, 0, length, place, options);
    return mapping;
  } catch (const ipc::interprocess_exception& error) {
    munmap(place, length);
    return map_error(error.get_native_error(), length);
  }
}

}  // namespace cutwater::shm
