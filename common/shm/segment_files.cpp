// SPDX-License-Identifier: Apache-2.0
// The three files in their directory: made as `*.next`, reserved, renamed, opened, put away.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/sync_point.hpp"
#include "shm/directory.hpp"
#include "shm/header.hpp"
#include "shm/memory_files.hpp"
#include "shm/segment.hpp"

namespace cutwater::shm {
namespace {

// `rules` goes last: whoever finds it finds all three, and a creation that was cut short has none.
constexpr std::array<FileKind, 3> kRenameOrder = {FileKind::State, FileKind::Stats,
                                                  FileKind::Rules};
constexpr std::array<FileKind, 3> kRemoveOrder = {FileKind::Rules, FileKind::State,
                                                  FileKind::Stats};

std::string plain(FileKind file) { return std::string(name_of(file)); }

Error system_error(const std::string& what, int error_number) {
  return {Errc::System, what + ": " + std::strerror(error_number)};
}

Result<void> remove(int directory_fd, const std::string& name) {
  if (unlinkat(directory_fd, name.c_str(), 0) != 0 && errno != ENOENT) {
    return system_error("cannot remove `" + name + "`", errno);
  }
  return {};
}

Error no_room(int directory_fd, std::uint64_t needed) {
  struct statvfs status {};
  std::string available = "an unknown number of";
  if (fstatvfs(directory_fd, &status) == 0) {
    available = std::to_string(std::uint64_t{status.f_bavail} * status.f_frsize);
  }
  return {Errc::NoMemory, "the memory does not fit: " + std::to_string(needed) + " bytes needed, " +
                              available + " bytes available on the tmpfs of the memory directory; "
                              "lower capacity.keys or make that tmpfs larger"};
}

/// Makes one file with all its pages; 0 or an errno.
int make_file(int directory_fd, FileKind file, std::uint64_t length, UniqueFd& out) {
  const std::string name = next_name(file);
  UniqueFd fd(openat(directory_fd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                     0600));
  if (!fd) return errno;
  CUTWATER_SYNC_POINT("segment.next_created");
  // fallocate itself: where it is not supported the posix form would write zeros page by page.
  while (fallocate(fd.get(), 0, 0, static_cast<off_t>(length)) != 0) {
    if (errno != EINTR) return errno;
  }
  CUTWATER_SYNC_POINT("segment.pages_reserved");
  out = std::move(fd);
  return 0;
}

Result<void> rename_into_place(int directory_fd) {
  // An older memory is taken apart from `rules` on, so that at no step two memories are mixed.
  if (auto removed = remove(directory_fd, plain(FileKind::Rules)); !removed) return removed;
  for (const FileKind file : kRenameOrder) {
    CUTWATER_SYNC_POINT("segment.before_rename");
    if (renameat(directory_fd, next_name(file).c_str(), directory_fd, plain(file).c_str()) != 0) {
      return system_error("cannot rename `" + next_name(file) + "`", errno);
    }
  }
  CUTWATER_SYNC_POINT("segment.renamed");
  return {};
}

void close_all(SegmentFiles& files) noexcept {
  for (int& fd : files) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
}

Result<SegmentFiles> open_files_for(int directory_fd, Access access) {
  SegmentFiles files = {-1, -1, -1};
  for (const FileKind file : kRemoveOrder) {
    const bool writable = access == Access::Owner ||
                          (access == Access::Client && file != FileKind::Rules);
    const int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int fd = openat(directory_fd, plain(file).c_str(), flags);
    if (fd < 0) {
      const int error_number = errno;
      close_all(files);
      if (error_number == ENOENT && file == FileKind::Rules) {
        return Error{Errc::NoDaemon, "there is no memory in this directory (no file `rules`)"};
      }
      if (error_number == ENOENT) {
        return Error{Errc::Damaged, "memory file `" + plain(file) + "`: missing"};
      }
      if (error_number == ELOOP) {
        return Error{Errc::NotOurs, "memory file `" + plain(file) + "`: is a symbolic link"};
      }
      return system_error("memory file `" + plain(file) + "`: cannot be opened", error_number);
    }
    files[static_cast<std::size_t>(file)] = fd;
  }
  return files;
}

}  // namespace

std::string next_name(FileKind file) { return plain(file) + ".next"; }

void remove_next_files(int directory_fd) noexcept {
  for (const FileKind file : kRemoveOrder) unlinkat(directory_fd, next_name(file).c_str(), 0);
}

Result<std::array<UniqueFd, 3>> make_next_files(int directory_fd,
                                                const std::array<std::uint64_t, 3>& lengths) {
  remove_next_files(directory_fd);
  std::array<UniqueFd, 3> fds;
  for (const FileKind file : kRemoveOrder) {
    const auto i = static_cast<std::size_t>(file);
    const int error_number = make_file(directory_fd, file, lengths[i], fds[i]);
    if (error_number == 0) continue;
    for (UniqueFd& open_fd : fds) open_fd.reset();
    remove_next_files(directory_fd);   // first, so that "available" counts what was given back
    if (error_number == ENOSPC) return no_room(directory_fd, lengths[0] + lengths[1] + lengths[2]);
    return system_error("cannot make `" + next_name(file) + "`", error_number);
  }
  return fds;
}

Result<Segment> Segment::create_files(int directory_fd, const SegmentOptions& options) {
  if (auto checked = check_capacity(options.capacity); !checked) return checked.error();
  std::array<std::uint64_t, 3> lengths{};
  for (const FileKind file : kRemoveOrder) {
    lengths[static_cast<std::size_t>(file)] = file_length(options.capacity, file);
  }
  auto made = make_next_files(directory_fd, lengths);
  if (!made) return made.error();
  const std::array<UniqueFd, 3>& fds = *made;
  auto segment = create({fds[0].get(), fds[1].get(), fds[2].get()}, options);
  if (segment) {
    if (auto renamed = rename_into_place(directory_fd); !renamed) segment = renamed.error();
  }
  if (!segment) remove_next_files(directory_fd);
  return segment;
}

Result<Segment> Segment::open_files(int directory_fd, Access access, bool check_boot) {
  auto files = open_files_for(directory_fd, access);
  if (!files) return files.error();
  auto segment = map(*files, access, check_boot);
  close_all(*files);
  return segment;
}

Result<SegmentFiles> open_descriptors(int directory_fd, bool read_only) {
  return open_files_for(directory_fd, read_only ? Access::ReadOnly : Access::Client);
}

bool files_of_another_boot(int directory_fd) {
  auto segment = Segment::open_files(directory_fd, Access::ReadOnly, false);
  if (!segment) return false;
  HeaderSet headers;
  for (const FileKind file : kRemoveOrder) {
    headers[static_cast<std::size_t>(file)] = segment->header(file);
  }
  return is_of_another_boot(headers);
}

Result<void> discard_files(int directory_fd) {
  remove_next_files(directory_fd);
  for (const FileKind file : kRemoveOrder) {
    if (auto removed = remove(directory_fd, plain(file)); !removed) return removed;
  }
  return {};
}

Result<void> set_aside_files(int directory_fd) {
  remove_next_files(directory_fd);
  for (const FileKind file : kRemoveOrder) {
    const std::string name = plain(file), bad = plain(file) + ".bad";
    if (renameat(directory_fd, name.c_str(), directory_fd, bad.c_str()) != 0 && errno != ENOENT) {
      return system_error("cannot rename `" + name + "` to `" + bad + "`", errno);
    }
  }
  return {};
}

}  // namespace cutwater::shm
