// SPDX-License-Identifier: Apache-2.0
#include "shm/supersede.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "shm/header.hpp"
#include "shm/image.hpp"
#include "shm/mapping.hpp"
#include "shm/memory_files.hpp"

namespace cutwater::shm {
namespace {

constexpr std::array<FileKind, 3> kFiles = {FileKind::Rules, FileKind::State, FileKind::Stats};

constexpr std::size_t index_of(FileKind file) { return static_cast<std::size_t>(file); }

using Uuid = std::array<std::uint8_t, 16>;

/// `state` first: it says that all is copied. `rules` last: until then the old ones say on.
std::array<FileKind, 3> rename_order() {
  if (!guarded(Guard::RulesRenamedLast)) return {FileKind::Rules, FileKind::State, FileKind::Stats};
  return {FileKind::State, FileKind::Stats, FileKind::Rules};
}

/// The headers of a memory that can take over from `from`: its place and tag of an entry, its time.
Result<HeaderSet> heir_headers(const Segment& from, const SegmentOptions& options) {
  auto identity = new_identity(options);
  if (!identity) return identity.error();
  const FileHeader& old = from.header(FileKind::Rules);
  identity->epoch_ns = old.epoch_ns;
  identity->tsc = (old.features_optional & kFeatureTsc) != 0;
  const Capacity capacity = successor_capacity(from.view(), options.capacity);
  HeaderSet headers;
  for (const FileKind file : kFiles) {
    FileHeader& header = headers[index_of(file)];
    header = plan_header(capacity, file, *identity);
    if (file == FileKind::Rules) {
      std::memcpy(header.secret, from.view().secret, sizeof header.secret);
    }
    for (Region& region : header.region) {
      if (region.kind != static_cast<std::uint32_t>(RegionKind::Bucket)) continue;
      region.flags = region.count / kGroupSlots / from.view().g0;   // k
    }
    header.crc32c = header_checksum(header);
  }
  return headers;
}

/// `*.next`, whole but for what is to be copied.
Result<Segment> build(int directory_fd, const HeaderSet& headers, const SegmentOptions& options) {
  std::array<std::uint64_t, 3> lengths{};
  for (const FileKind file : kFiles) lengths[index_of(file)] = headers[index_of(file)].total_length;
  auto files = make_next_files(directory_fd, lengths);
  if (!files) return files.error();
  SegmentFiles fds{};
  {
    std::array<Mapping, 3> mappings;
    std::array<std::uint8_t*, 3> bases{};
    for (const FileKind file : kFiles) {
      const std::size_t i = index_of(file);
      fds[i] = (*files)[i].get();
      auto mapped = Mapping::map({.fd = fds[i], .length = lengths[i], .writable = true});
      if (!mapped) return mapped.error();
      mappings[i] = std::move(*mapped);
      bases[i] = mappings[i].address();
    }
    View view = view_of(headers, bases);
    if (options.huge_pages) {
      // Advice: where the kernel knows no huge pages for this memory, ordinary ones serve.
      madvise(view.slots, view.slot_count * sizeof(Word16), MADV_HUGEPAGE);
    }
    for (const FileKind file : kFiles) {
      std::memcpy(bases[index_of(file)], &headers[index_of(file)], sizeof(FileHeader));
    }
    write_empty_image(view, 0);
    // relaxed: published by the ready words.
    __atomic_store_n(&view.rules_control->current, std::uint64_t{1} << kCurrentGenerationShift,
                     __ATOMIC_RELAXED);
    for (const FileKind file : kFiles) {
      auto* page = reinterpret_cast<FileHeader*>(bases[index_of(file)]);
      // PUBLISHES the file: pairs with the acquire of whoever maps it.
      __atomic_store_n(&page->ready, kReady, __ATOMIC_RELEASE);
    }
  }
  CUTWATER_SYNC_POINT("supersede.built");
  return Segment::map(fds, Access::Owner);
}

/// Step 2. From here on nobody begins a decision in the old memory.
void turn_away(const View& from, const View& to) {
  RulesControl& control = *from.rules_control;
  std::memcpy(control.successor, to.uuid, sizeof control.successor);
  CUTWATER_SYNC_POINT("supersede.named");
  // release: whoever sees the bit sees who comes after. seq_cst as every change of `current`.
  __atomic_fetch_or(&control.current, kCurrentSupersededBit, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&control.changed, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &control.changed, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  CUTWATER_SYNC_POINT("supersede.marked");
}

Result<void> rename_one(int directory_fd, FileKind file) {
  CUTWATER_SYNC_POINT("supersede.before_rename");
  const std::string from = next_name(file), to(name_of(file));
  if (renameat(directory_fd, from.c_str(), directory_fd, to.c_str()) != 0) {
    return Error{Errc::System, "cannot rename `" + from + "`: " + std::strerror(errno)};
  }
  return {};
}

/// The first two pages of a file; false when they cannot be read or are not a ready memory's.
struct Front {
  FileHeader header;
  RulesControl control;
};
bool read_front(int directory_fd, const std::string& name, Front& out) {
  const UniqueFd fd(openat(directory_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
                                                           O_NONBLOCK));
  if (!fd || pread(fd.get(), &out, sizeof out, 0) != static_cast<ssize_t>(sizeof out)) return false;
  return out.header.magic == kMagic && out.header.ready == kReady;
}

Uuid uuid_of(const std::uint8_t (&bytes)[16]) {
  Uuid out;
  std::memcpy(out.data(), bytes, out.size());
  return out;
}

/// Only as a control, without guard CopyFromTheBeginning: believes what a killed copy left.
bool believe_leftovers(int directory_fd) {
  Front front;
  for (const FileKind file : kFiles) {
    if (!read_front(directory_fd, next_name(file), front)) return false;
  }
  for (const FileKind file : rename_order()) {
    if (!rename_one(directory_fd, file)) return false;
  }
  return true;
}

}  // namespace

bool is_superseded(const View& view) noexcept {
  return (view.current() & kCurrentSupersededBit) != 0;
}

Capacity successor_capacity(const View& from, const Capacity& wanted) noexcept {
  Capacity out = rounded(wanted);
  const std::uint64_t first = from.g0 * kGroupSlots / 2;   // keys of k = 1
  out.keys = first * ((out.keys + first - 1) / first);
  out.breaker_memory -= out.breaker_memory % kCacheLine;
  return out;
}

Result<Succession> supersede(int directory_fd, const Segment& from, const SegmentOptions& options) {
  if (auto checked = check_capacity(options.capacity); !checked) return checked.error();
  auto headers = heir_headers(from, options);
  if (!headers) return headers.error();
  auto next = build(directory_fd, *headers, options);
  auto fits = next ? check_fits(from.view(), next->view()) : Result<void>(next.error());
  if (!fits) {
    remove_next_files(directory_fd);
    return fits.error();
  }
  if (guarded(Guard::SupersededFirst)) turn_away(from.view(), next->view());
  CUTWATER_SYNC_POINT("supersede.before_copy");
  auto copied = copy_memory(from.view(), next->view());
  if (!copied) {
    remove_next_files(directory_fd);
    return copied.error();
  }
  CUTWATER_SYNC_POINT("supersede.copied");
  if (!guarded(Guard::SupersededFirst)) turn_away(from.view(), next->view());
  for (const FileKind file : rename_order()) {
    if (auto renamed = rename_one(directory_fd, file); !renamed) return renamed.error();
  }
  CUTWATER_SYNC_POINT("supersede.renamed");
  return Succession{std::move(*next), *copied};
}

Result<void> finish_renames(int directory_fd) {
  Front rules;
  if (!read_front(directory_fd, std::string(name_of(FileKind::Rules)), rules)) return {};
  if ((rules.control.current & kCurrentSupersededBit) == 0) return {};
  const Uuid successor = uuid_of(rules.control.successor);
  Front front;
  const bool begun = read_front(directory_fd, std::string(name_of(FileKind::State)), front) &&
                     uuid_of(front.header.uuid) == successor;
  if (!begun) {
    if (!guarded(Guard::CopyFromTheBeginning)) static_cast<void>(believe_leftovers(directory_fd));
    return {};
  }
  for (const FileKind file : rename_order()) {
    if (!read_front(directory_fd, next_name(file), front)) continue;   // renamed already
    if (uuid_of(front.header.uuid) != successor) continue;
    if (auto renamed = rename_one(directory_fd, file); !renamed) return renamed.error();
  }
  return {};
}

}  // namespace cutwater::shm
