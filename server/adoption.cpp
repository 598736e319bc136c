// SPDX-License-Identifier: Apache-2.0
#include "adoption.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "shm/image.hpp"
#include "shm/memory_files.hpp"
#include "shm/process_table.hpp"
#include "shm/supersede.hpp"

namespace cutwater::server {

namespace {

constexpr int kPidsNamed = 8;

std::string_view word_of(shm::ClockKind clock) {
  return clock == shm::ClockKind::Stepped ? "stepped" : "boottime";
}

/// Why a memory that is whole in itself is not to be used at all; empty: it may be.
std::string unusable(const shm::Segment& segment, const shm::SegmentOptions& options) {
  const auto clock =
      static_cast<shm::ClockKind>(segment.header(shm::FileKind::Rules).clock);
  if (clock != options.clock) {
    return fmt::format("its clock is {}, this daemon was started with {}", word_of(clock),
                       word_of(options.clock));
  }
  const shm::View& view = segment.view();
  if (!shm::image_is_whole(view, static_cast<int>(view.current() & shm::kCurrentImageBit))) {
    return "the rules in it are damaged (checksum of the image)";
  }
  return {};
}

/// Why a usable memory is to be moved into another one; empty: it is what is asked for.
std::string misfit(const shm::Segment& segment, const shm::Capacity& asked) {
  if (shm::is_superseded(segment.view())) return "a former move was cut short";
  const shm::Capacity found = segment.capacity();
  const shm::Capacity wanted = shm::successor_capacity(segment.view(), asked);
  struct Size { const char* name; std::uint64_t there, here, told; };
  const Size sizes[] = {
      {"limits", found.limits, wanted.limits, asked.limits},
      {"processes", found.processes, wanted.processes, asked.processes},
      {"stripes", found.stripes, wanted.stripes, asked.stripes},
      {"events", found.events, wanted.events, asked.events},
      {"overrides", found.overrides, wanted.overrides, asked.overrides},
      {"tops", found.tops, wanted.tops, asked.tops},
      {"trips", found.trips, wanted.trips, asked.trips},
      {"calendars", found.calendars, wanted.calendars, asked.calendars},
      {"breakers", found.breakers, wanted.breakers, asked.breakers},
      {"breaker-memory", found.breaker_memory, wanted.breaker_memory, asked.breaker_memory},
      {"bulkheads", found.bulkheads, wanted.bulkheads, asked.bulkheads},
      {"bulkhead-cells", found.bulkhead_cells, wanted.bulkhead_cells, asked.bulkhead_cells},
      {"waiters", found.waiters, wanted.waiters, asked.waiters},
      {"keys", found.keys, wanted.keys, asked.keys},
  };
  if (found.remember_keys != wanted.remember_keys) {
    return fmt::format("instance.remember-keys was {} there and is {} here", found.remember_keys,
                       wanted.remember_keys);
  }
  for (const Size& size : sizes) {
    if (size.there == size.here) continue;
    return fmt::format("capacity.{} was {} there and is {} here", size.name, size.there, size.told);
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

Result<Birth> adopt_or_move(int directory_fd, shm::Segment found,
                            const shm::SegmentOptions& options) {
  std::string reason = misfit(found, options.capacity);
  if (reason.empty()) return Birth{std::move(found), Birth::Kind::Adopted, {}};
  auto moved = shm::supersede(directory_fd, found, options);
  if (moved) {
    return Birth{std::move(moved->segment), Birth::Kind::Moved, std::move(reason), false,
                 moved->copied};
  }
  const Error& why = moved.error();
  const Errc code = why.code() == Errc::InvalidArgument ? Errc::InvalidConfig : why.code();
  return Error(code, fmt::format("the memory found is to be moved ({}) and cannot be: {}; or put "
                                 "the setting back", reason, why.text()));
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
  if (auto ended = shm::finish_renames(directory_fd); !ended) return ended.error();
  shm::remove_next_files(directory_fd);
  if (shm::files_of_another_boot(directory_fd)) {
    if (auto gone = shm::discard_files(directory_fd); !gone) return gone.error();
    return fresh(directory_fd, options, Birth::Kind::AnotherBoot,
                 "the memory files were written before this machine started", false);
  }
  std::string reason;
  {
    auto found = shm::Segment::open_files(directory_fd, shm::Access::Owner);
    if (found) {
      reason = unusable(*found, options);
      if (reason.empty()) return adopt_or_move(directory_fd, std::move(*found), options);
      // Whoever is attached goes on in the memory it has: with a second one both would admit the
      // whole limit. In a superseded one nobody decides.
      const std::string pids =
          shm::is_superseded(found->view()) ? std::string() : attached_to(found->view());
      if (!pids.empty()) {
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
