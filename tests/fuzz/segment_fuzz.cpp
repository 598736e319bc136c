// SPDX-License-Identifier: Apache-2.0
// Segment: three memory files of which any byte may be anything. Mapping and verify must neither
// crash nor read outside, and everything must end; with honest rules, decisions as well (C143).
//
// Input: flags, then patches of a small honest memory.
//   flags    1 header checksums are made right again after the patches, 2 the image's sum too
//   patch    file (2 bits of the byte; bit 7: truncate), offset u24, length (low 5 bits), bytes
//            truncate: the file gets `offset` bytes
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.hpp"
#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "shm/header.hpp"
#include "shm/header.hpp"
#include "shm/image.hpp"
#include "shm/limit/bucket.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "shm/verify.hpp"

namespace {

using namespace cutwater;        // NOLINT: one file, one program
using namespace cutwater::shm;   // NOLINT

using Bytes = std::vector<std::uint8_t>;
using Memory = std::array<Bytes, 3>;

constexpr Capacity kCapacity = {.keys = 32, .limits = 2, .processes = 4, .stripes = 2, .events = 8};
constexpr std::uint8_t kFixHeaders = 1, kFixImage = 2;
constexpr std::uint8_t kTruncate = 0x80;
constexpr std::size_t kMaxPatches = 64;

[[noreturn]] void broken() { std::abort(); }

Region& region_of(FileHeader& header, RegionKind kind) {
  for (Region& region : header.region) {
    if (region.kind == static_cast<std::uint32_t>(kind)) return region;
  }
  broken();
}

FileHeader& header_of(Bytes& file) { return *reinterpret_cast<FileHeader*>(file.data()); }

void fix_header(Bytes& file) {
  if (file.size() < sizeof(FileHeader)) return;
  header_of(file).crc32c = header_checksum(header_of(file));
}

/// An honest memory in use, with the buckets moved to the front so that it is small.
Memory make_memory() {
  SegmentOptions options;
  options.capacity = kCapacity;
  options.clock = ClockKind::Stepped;
  auto segment = Segment::create_private(options);
  if (!segment) broken();
  const View& view = segment->view();
  Publisher publisher(view);
  rule::LimitSettings limit;
  limit.windows.resize(1);
  limit.name = "api";
  limit.windows[0].rate_count = 10;
  limit.windows[0].rate_period_ns = 1'000'000'000;
  limit.windows[0].burst = 5;
  if (!publisher.publish({limit}, 7)) broken();
  step_clock(view, view.clock.now() + 1000);
  for (std::uint64_t key = 1; key < 30; ++key) {
    DecisionData out;
    std::uint64_t hint = kNoSlot;
    charge(view, {find_limit(view, "api"), {key << 58, key << 40}, 1, 0}, hint, out);
  }
  RowTable rows(view, true);
  if (!rows.grant({.pid = 1, .name = "client"})) broken();
  append_event(view, Event{});

  Memory memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto file = static_cast<FileKind>(i);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&segment->header(file));
    memory[i].assign(bytes, bytes + file_length(kCapacity, file));
  }
  Bytes& state = memory[1];
  Region& buckets = region_of(header_of(state), RegionKind::Bucket);
  const std::uint64_t length = std::uint64_t{buckets.stride} * buckets.count;
  const std::uint64_t front = 4 * kPage;   // behind rows and limit words of this capacity
  std::memmove(state.data() + front, state.data() + buckets.offset, length);
  buckets.offset = front;
  state.resize(front + (length + kPage - 1) / kPage * kPage);
  header_of(state).total_length = state.size();
  fix_header(state);
  return memory;
}

/// Reads the input front to back; zeros behind its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  bool done() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

/// Applies the patches; true when `rules` is still honest.
bool patch(Memory& memory, Input& input) {
  bool rules_honest = true;
  for (std::size_t i = 0; i < kMaxPatches && !input.done(); ++i) {
    const std::uint8_t which = input.byte();
    Bytes& file = memory[(which & 3) % 3];
    std::size_t offset = input.byte();
    offset |= std::size_t{input.byte()} << 8;
    offset |= std::size_t{input.byte()} << 16;
    rules_honest = rules_honest && (which & 3) % 3 != 0;
    if ((which & kTruncate) != 0) {
      file.resize(std::min(offset, file.size()));
      continue;
    }
    for (std::size_t left = input.byte() & 31; left != 0; --left, ++offset) {
      const std::uint8_t value = input.byte();
      if (offset < file.size()) file[offset] = value;
    }
  }
  return rules_honest;
}

void fix_image(Memory& memory) {
  Bytes& rules = memory[0];
  if (rules.size() < 2 * kPage) return;
  const Region* found = find_region(header_of(rules), RegionKind::Image);
  if (found == nullptr) return;
  const Region image = *found;
  const std::uint64_t end = image.offset + 2 * std::uint64_t{image.stride};
  if (image.offset >= rules.size() || end < image.offset || end > rules.size() ||
      image.stride < sizeof(ImageHead))
    return;
  for (std::uint64_t i = 0; i < 2; ++i) {
    std::uint8_t* begin = rules.data() + image.offset + i * image.stride;
    ImageHead head;
    std::memcpy(&head, begin, sizeof head);
    head.crc32c = crc32c(begin + sizeof head, image.stride - sizeof head);
    std::memcpy(begin, &head, sizeof head);
  }
}

SegmentFiles write_files(const Memory& memory) {
  SegmentFiles files;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    files[i] = memfd_create("segment", MFD_CLOEXEC);
    if (files[i] < 0) broken();
    const auto length = static_cast<ssize_t>(memory[i].size());
    if (write(files[i], memory[i].data(), memory[i].size()) != length) broken();
  }
  return files;
}

/// Mapped read-only: a write of anything in here ends the process.
void read_everything(const SegmentFiles& files) {
  const auto segment = Segment::map(files, Access::ReadOnly, false);
  if (!segment) {
    if (segment.error().text().empty()) broken();
    return;
  }
  const View& view = segment->view();
  const VerifyReport report = verify(view);
  if (report.findings.size() > kMaxFindings) broken();
  if (read_events(view, 0, 1000).events.size() > view.event_count) broken();
  read_events(view, view.stats_control->next_event - 3, 1000);
  for (std::uint32_t limit = 0; limit < view.limit_count; ++limit) sum_counters(view, limit);
  RowInfo row;
  for (std::uint32_t index = 0; index < view.row_count; ++index) read_row(view, index, row);
  stripes_in_use(view);
  find_limit(view, "api");
}

/// A client's work on scribbled state and statistics; its rules are the daemon's.
void use_everything(const SegmentFiles& files) {
  const auto segment = Segment::map(files, Access::Client, false);
  if (!segment) return;
  const View& view = segment->view();
  const LimitRef limit = find_limit(view, "api");
  for (std::uint64_t key = 1; key < 8; ++key) {
    DecisionData out;
    std::uint64_t hint = key % 2 == 0 ? kNoSlot : key;
    const BucketAsk ask{limit, {key << 58, key << 40}, key, 0};
    look(view, ask, hint, out);
    charge(view, ask, hint, out);
    undo(view, out);
    reset(view, limit, ask.key);
  }
  claim_stripe(view, {std::uint64_t{2} << 32 | 1, 1}).add(0, LimitCounter::Allowed, 1);
  release_stripe(view, {std::uint64_t{2} << 32 | 1, 1});
  append_event(view, Event{});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Memory honest = make_memory();
  Memory memory = honest;
  Input input(data, size);
  const std::uint8_t flags = input.byte();
  const bool rules_honest = patch(memory, input);
  if ((flags & kFixImage) != 0 && memory[0].size() >= sizeof(FileHeader)) fix_image(memory);
  if ((flags & kFixHeaders) != 0) std::for_each(memory.begin(), memory.end(), fix_header);

  const SegmentFiles files = write_files(memory);
  read_everything(files);
  if (rules_honest) use_everything(files);
  for (const int fd : files) close(fd);
  return 0;
}
