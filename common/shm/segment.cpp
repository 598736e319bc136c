// SPDX-License-Identifier: Apache-2.0
#include "shm/segment.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "base/cas16.hpp"
#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "shm/header.hpp"
#include "shm/image.hpp"
#include "shm/mapping.hpp"

namespace cutwater::shm {

struct Segment::Parts {
  std::array<Mapping, 3> mapping;

  std::array<std::uint8_t*, 3> bases() const noexcept {
    return {mapping[0].address(), mapping[1].address(), mapping[2].address()};
  }
};

namespace {

constexpr std::array<FileKind, 3> kFiles = {FileKind::Rules, FileKind::State, FileKind::Stats};

Error unsupported_processor() {
  return {Errc::Unsupported,
          "this processor lacks cmpxchg16b or AVX, which the shared memory needs"};
}

/// Writes everything of one fresh, zeroed file but the ready word.
void write_file(std::uint8_t* base, const FileHeader& header) {
  auto* page = reinterpret_cast<FileHeader*>(base);
  if (!guarded(Guard::ReadyWordLast)) __atomic_store_n(&page->ready, kReady, __ATOMIC_RELEASE);
  CUTWATER_SYNC_POINT("segment.before_header");
  std::memcpy(base, &header, offsetof(FileHeader, ready));
  std::memcpy(page->secret, header.secret, sizeof page->secret);
  CUTWATER_SYNC_POINT("segment.header_written");
}

/// The first contents: an empty image, generation 1, the stepped clock.
void write_contents(View& view, const SegmentOptions& options) {
  write_empty_image(view, 0);
  CUTWATER_SYNC_POINT("segment.image_written");
  // relaxed: nobody reads before the ready word, whose release publishes all of this.
  __atomic_store_n(&view.rules_control->current, std::uint64_t{1} << kCurrentGenerationShift,
                   __ATOMIC_RELAXED);
  __atomic_store_n(&view.state_control->stepped_ns, options.stepped_start_ns, __ATOMIC_RELAXED);
  CUTWATER_SYNC_POINT("segment.contents_written");
}

/// Copies the first page of a file that was mapped at `base` to private memory, ready word first.
FileHeader copy_header(const std::uint8_t* base) noexcept {
  const auto* page = reinterpret_cast<const FileHeader*>(base);
  // acquire: pairs with the release of the creator, so a ready header is a whole one.
  const std::uint32_t ready = __atomic_load_n(&page->ready, __ATOMIC_ACQUIRE);
  FileHeader header;
  std::memcpy(&header, page, sizeof header);
  header.ready = ready;
  return header;
}

Error file_error(Errc code, FileKind file, const std::string& what) {
  return {code, "memory file `" + std::string(name_of(file)) + "`: " + what};
}

Result<std::uint64_t> length_of(int fd, FileKind file) {
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) {
    const int error_number = fd < 0 ? EBADF : errno;
    return file_error(Errc::System, file,
                      std::string("cannot be examined: ") + std::strerror(error_number));
  }
  if (!S_ISREG(status.st_mode)) {
    return file_error(Errc::Damaged, file, "not a regular file");
  }
  // Below this there is no header and no control page, and mapping it would end in SIGBUS.
  if (status.st_size < static_cast<off_t>(2 * kPage)) {
    return file_error(Errc::Damaged, file,
                      "truncated to " + std::to_string(status.st_size) + " bytes");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

/// True when the first eight bytes are ours: a foreign file of any size is not even mapped.
bool magic_fits(int fd) noexcept {
  std::uint64_t magic = 0;
  return pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == kMagic;
}

bool writable(Access access, FileKind file) noexcept {
  if (access == Access::ReadOnly) return false;
  return access == Access::Owner || file != FileKind::Rules;
}

}  // namespace

Segment::Segment(std::unique_ptr<Parts> parts, const View& view) noexcept
    : parts_(std::move(parts)), view_(view) {}
Segment::Segment(Segment&& other) noexcept = default;
Segment& Segment::operator=(Segment&& other) noexcept = default;
Segment::~Segment() = default;

Result<Segment> Segment::create_private(const SegmentOptions& options) {
  return create({-1, -1, -1}, options);
}

Result<Segment> Segment::create(const SegmentFiles& files, const SegmentOptions& options) {
  if (!processor_supported()) return unsupported_processor();
  if (auto checked = check_capacity(options.capacity); !checked) return checked.error();
  auto identity = new_identity(options);
  if (!identity) return identity.error();

  auto parts = std::make_unique<Parts>();
  HeaderSet headers;
  for (const FileKind file : kFiles) {
    const auto i = static_cast<std::size_t>(file);
    headers[i] = plan_header(options.capacity, file, *identity);
    auto mapped = Mapping::map(
        {.fd = files[i], .length = headers[i].total_length, .writable = true});
    if (!mapped) return mapped.error();
    parts->mapping[i] = std::move(mapped).value();
  }
  if (!make_secret(headers[0].secret)) {
    return Error{Errc::System, "the kernel gives no random bytes (getrandom)"};
  }
  headers[0].crc32c = header_checksum(headers[0]);

  View view = view_of(headers, parts->bases());
  if (options.huge_pages) {
    // Advice: where the kernel knows no huge pages for this memory, ordinary ones serve.
    madvise(view.slots, view.slot_count * sizeof(Word16), MADV_HUGEPAGE);
  }
  for (const FileKind file : kFiles) {
    const auto i = static_cast<std::size_t>(file);
    write_file(parts->mapping[i].address(), headers[i]);
  }
  write_contents(view, options);
  for (const FileKind file : kFiles) {
    const auto i = static_cast<std::size_t>(file);
    auto* page = reinterpret_cast<FileHeader*>(parts->mapping[i].address());
    // PUBLISHES the whole file: pairs with the acquire in copy_header. Without release a reader
    // could see a ready file whose image is still being written.
    __atomic_store_n(&page->ready, kReady, __ATOMIC_RELEASE);
    CUTWATER_SYNC_POINT("segment.ready_stored");
  }
  return Segment(std::move(parts), view);
}

Result<Segment> Segment::map(const SegmentFiles& files, Access access, bool check_boot) {
  if (!processor_supported()) return unsupported_processor();
  auto parts = std::make_unique<Parts>();
  std::array<std::uint64_t, 3> lengths{};
  HeaderSet headers;
  for (const FileKind file : kFiles) {
    const auto i = static_cast<std::size_t>(file);
    auto length = length_of(files[i], file);
    if (!length) return length.error();
    lengths[i] = *length;
    if (!magic_fits(files[i])) {
      return file_error(Errc::Damaged, file, "not a memory file of cutwater (foreign magic)");
    }
    auto mapped = Mapping::map(
        {.fd = files[i], .length = lengths[i], .writable = writable(access, file)});
    if (!mapped) return mapped.error();
    parts->mapping[i] = std::move(mapped).value();
    headers[i] = copy_header(parts->mapping[i].address());
  }
  if (auto checked = check_headers(headers, lengths, check_boot); !checked) return checked.error();
  const View view = view_of(headers, parts->bases());
  return Segment(std::move(parts), view);
}

Capacity Segment::capacity() const noexcept {
  Capacity out;
  out.keys = view_.slot_count / 2;
  out.limits = view_.limit_count;
  out.processes = view_.row_count - kFirstClientRow;
  out.stripes = view_.stripe_count - 1;
  out.events = view_.event_count;
  out.overrides = view_.override_capacity;
  out.breakers = view_.breaker_count;
  out.breaker_memory = std::uint64_t{view_.breaker_lines} * kCacheLine;
  out.bulkheads = view_.bulkhead_count;
  out.bulkhead_cells = view_.bulkhead_cell_count;
  out.waiters = view_.waiter_count;
  out.tops = view_.tops_per_limit;
  out.trips = view_.trip_count;
  out.calendars = view_.calendar_count;
  out.remember_keys = view_.key_names != nullptr;
  return out;
}

const FileHeader& Segment::header(FileKind file) const noexcept {
  const Mapping& mapping = parts_->mapping[static_cast<std::size_t>(file)];
  return *reinterpret_cast<const FileHeader*>(mapping.address());
}

std::int64_t step_clock(const View& view, std::int64_t to_ns) noexcept {
  StateControl& control = *view.state_control;
  // Pairs with the acquire in SegmentClock::now(): who sees the new time sees what came before.
  std::int64_t seen = __atomic_load_n(&control.stepped_ns, __ATOMIC_ACQUIRE);
  while (seen < to_ns) {
    if (__atomic_compare_exchange_n(&control.stepped_ns, &seen, to_ns, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      // release: a sleeper that sees this number sees the new time.
      __atomic_fetch_add(&control.stepped_futex, 1, __ATOMIC_RELEASE);
      syscall(SYS_futex, &control.stepped_futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
      return to_ns;
    }
  }
  return seen;
}

}  // namespace cutwater::shm
