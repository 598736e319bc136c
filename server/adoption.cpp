// SPDX-License-Identifier: Apache-2.0
#include "adoption.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "shm/image.hpp"
#include "shm/process_table.hpp"

namespace cutwater::server {

namespace {

constexpr int kPidsNamed = 8;

std::string_view word_of(shm::ClockKind clock) {
  return clock == shm::ClockKind::Stepped ? "stepped" : "boottime";
}

/// Why a memory that is whole in itself is not the one this configuration asks for; empty: it is.
std::string misfit(const shm::Segment& segment, const shm::SegmentOptions& options) {
  const auto clock =
      static_cast<shm::ClockKind>(segment.header(shm::FileKind::Rules).clock);
  if (clock != options.clock) {
    return fmt::format("its clock is {}, this daemon was started with {}", word_of(clock),
                       word_of(options.clock));
  }
  const shm::Capacity found = segment.capacity();
  const auto differs = [](const char* name, std::uint64_t there, std::uint64_t here) {
    return fmt::format("capacity.{} was {} there and is {} here", name, there, here);
  };
  if (found.limits != options.capacity.limits) {
    return differs("limits", found.limits, options.capacity.limits);
  }
  if (found.processes != options.capacity.processes) {
    return differs("processes", found.processes, options.capacity.processes);
  }
  if (found.stripes != options.capacity.stripes) {
    return differs("stripes", found.stripes, options.capacity.stripes);
  }
  if (found.events != options.capacity.events) {
    return differs("events", found.events, options.capacity.events);
  }
  // Keys are rounded up to whole groups: what they take decides.
  if (shm::file_length(found, shm::FileKind::State) !=
      shm::file_length(options.capacity, shm::FileKind::State)) {
    return differs("keys", found.keys, options.capacity.keys);
  }
  const shm::View& view = segment.view();
  const std::uint64_t current = view.current();
  if ((current & shm::kCurrentSupersededBit) != 0) return "it was superseded by another memory";
  if (!shm::image_is_whole(view, static_cast<int>(current & shm::kCurrentImageBit))) {
    return "the rules in it are damaged (checksum of the image)";
  }
  return {};
}

/// Processes that still decide in this memory, as text; empty: none. Live rows whose process is
/// there with the start time the row tells.
std::string attached_to(const shm::View& view) {
  std::string pids;
  int count = 0;
  for (std::uint32_t index = shm::kFirstClientRow; index < view.row_count; ++index) {
    shm::RowInfo row;
    if (!shm::read_row(view, index, row) || row.word.kind != shm::RowKind::Process) continue;
    const bool held = row.word.state == shm::RowState::Live ||
                      row.word.state == shm::RowState::Orphan;
    if (!held || row.start_time == 0) continue;
    if (shm::process_start_time(row.pid) != row.start_time) continue;
    if (++count <= kPidsNamed) pids += fmt::format("{}{}", pids.empty() ? "" : ", ", row.pid);
  }
  if (count > kPidsNamed) pids += fmt::format(" and {} more", count - kPidsNamed);
  return pids;
}

void remove_leftovers(int directory_fd) {
  for (const char* name : {"rules.next", "state.next", "stats.next"}) {
    ::unlinkat(directory_fd, name, 0);
  }
}

Result<Birth> fresh(int directory_fd, const shm::SegmentOptions& options, Birth::Kind kind,
                    std::string reason, bool start_empty) {
  auto made = shm::Segment::create_files(directory_fd, options);
  if (!made) {
    const bool no_room = made.error().code() == Errc::NoMemory;
    if (no_room && ::faccessat(directory_fd, "rules.bad", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      return Error(Errc::NoMemory,
                   made.error().text() + "; the files set aside as *.bad take room there too");
    }
    return made.error();
  }
  return Birth{std::move(*made), kind, std::move(reason), start_empty};
}

}  // namespace

Result<Birth> adopt_or_create(int directory_fd, const shm::SegmentOptions& options,
                              rule::Initial after_damage) {
  const auto there = [&](const char* name) {
    return ::faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  };
  // `rules` is renamed last. Without it, parts of a memory and no creation under way, or a set that
  // was put aside with nothing made since, mean that a memory was lost here.
  const bool cut_short = there("rules.next");
  const bool parts = there("state") || there("stats");
  const bool put_aside = there("rules.bad") || there("state.bad") || there("stats.bad");
  remove_leftovers(directory_fd);
  if (shm::files_of_another_boot(directory_fd)) {
    if (auto gone = shm::discard_files(directory_fd); !gone) return gone.error();
    return fresh(directory_fd, options, Birth::Kind::AnotherBoot,
                 "the memory files were written before this machine started", false);
  }
  std::string reason;
  {
    auto found = shm::Segment::open_files(directory_fd, shm::Access::Owner);
    if (found) {
      reason = misfit(*found, options);
      if (reason.empty()) return Birth{std::move(*found), Birth::Kind::Adopted, {}, false};
      // Whoever is attached goes on in the memory it has: with a second one both would admit the
      // whole limit.
      if (const std::string pids = attached_to(found->view()); !pids.empty()) {
        return Error(Errc::InvalidConfig,
                     fmt::format("{}, and processes still decide in that memory (pid {}); a new "
                                 "one beside it would admit every limit twice: stop them first, or "
                                 "put the setting back",
                                 reason, pids));
      }
    } else {
      const Errc code = found.error().code();
      if (code == Errc::NoDaemon) {
        if (!put_aside && (!parts || cut_short)) {
          return fresh(directory_fd, options, Birth::Kind::Fresh, {}, false);
        }
        return fresh(directory_fd, options, Birth::Kind::SetAside,
                     put_aside ? "a memory was set aside here and none was made since"
                               : "its rules are gone",
                     after_damage == rule::Initial::Empty);
      }
      // The system's refusals (no descriptors, no address space) say nothing about the files.
      const bool about_files = code == Errc::Damaged || code == Errc::LayoutMismatch ||
                               code == Errc::ClockMismatch;
      if (!about_files) return found.error();
      reason = found.error().text();
    }
  }
  if (auto aside = shm::set_aside_files(directory_fd); !aside) {
    return Error(Errc::Damaged,
                 fmt::format("the memory found cannot be used ({}) and cannot be set aside: {}",
                             reason, aside.error().text()));
  }
  return fresh(directory_fd, options, Birth::Kind::SetAside, std::move(reason),
               after_damage == rule::Initial::Empty);
}

}  // namespace cutwater::server
