// SPDX-License-Identifier: Apache-2.0
#include "shm/directory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

namespace cutwater::shm {
namespace {

constexpr int kLockAttempts = 10;
constexpr long kLockPauseNs = 10'000'000;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Why a candidate was not taken. `missing`: nothing of that name, and it was not to be made.
struct Refusal {
  Errc code = Errc::Ok;
  std::string why;
  bool missing = false;
};

bool on_tmpfs(int fd) noexcept {
  struct statfs status {};
  return fstatfs(fd, &status) == 0 && static_cast<std::uint64_t>(status.f_type) == TMPFS_MAGIC;
}

bool is_link(int parent, const char* name) noexcept {
  struct stat status {};
  return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/// Ours, or we are root and only look.
bool owner_is_fine(int fd, bool create, std::string& why) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    why = std::strerror(errno);
    return false;
  }
  const uid_t self = geteuid();
  if (status.st_uid == self || (self == 0 && !create)) return true;
  why = "belongs to uid " + std::to_string(status.st_uid) + ", not to us (uid " +
        std::to_string(self) + ")";
  return false;
}

bool root_owns(int fd) noexcept {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_uid == 0;
}

/// One step down. `made` tells that the directory is new.
UniqueFd step(int parent, const std::string& name, bool create, Refusal& refusal) {
  UniqueFd fd(openat(parent, name.c_str(), kDirectoryFlags));
  if (!fd && errno == ENOENT && create) {
    // Made on a tmpfs only: a wrong setting shall not leave directories on a disk.
    if (!on_tmpfs(parent)) {
      refusal = {Errc::NotTmpfs, "`" + name + "` does not exist and its parent is not on a tmpfs",
                 false};
      return {};
    }
    if (mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
      refusal = {Errc::System, "`" + name + "` cannot be made: " + std::strerror(errno), false};
      return {};
    }
    fd.reset(openat(parent, name.c_str(), kDirectoryFlags));
  }
  if (fd) return fd;
  const int error_number = errno;
  if (is_link(parent, name.c_str())) {
    refusal = {Errc::NotOurs, "`" + name + "` is a symbolic link", false};
  } else {
    refusal = {Errc::System, "`" + name + "`: " + std::strerror(error_number),
               error_number == ENOENT};
  }
  return {};
}

/// The last checks, on the directory itself.
bool accept(int fd, bool create, Refusal& refusal) {
  if (std::string why; !owner_is_fine(fd, create, why)) {
    refusal = {Errc::NotOurs, why, false};
    return false;
  }
  if (!on_tmpfs(fd)) {
    refusal = {Errc::NotTmpfs, "is not on a tmpfs", false};
    return false;
  }
  struct stat status {};
  const bool other_mode = create && fstat(fd, &status) == 0 && (status.st_mode & 07777) != 0700;
  if (other_mode && fchmod(fd, 0700) != 0) {
    refusal = {Errc::System, std::string("mode cannot be set to 0700: ") + std::strerror(errno),
               false};
    return false;
  }
  return true;
}

/// Opens an absolute path step by step, following no link.
UniqueFd open_path(const std::string& path, bool create, Refusal& refusal) {
  if (path.empty() || path[0] != '/') {
    refusal = {Errc::InvalidArgument, "is not an absolute path", false};
    return {};
  }
  UniqueFd at(open("/", kDirectoryFlags));
  std::size_t begin = 1;
  bool last = false;
  while (at && !last) {
    const std::size_t slash = path.find('/', begin);
    const std::string name = path.substr(begin, slash == std::string::npos ? slash : slash - begin);
    last = slash == std::string::npos;
    begin = last ? begin : slash + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      refusal = {Errc::InvalidArgument, "must not contain `..`", false};
      return {};
    }
    std::string why;
    if (!root_owns(at.get()) && !owner_is_fine(at.get(), create, why)) {
      refusal = {Errc::NotOurs, "the directory above `" + name + "` " + why, false};
      return {};
    }
    at = step(at.get(), name, create, refusal);
  }
  if (at && !accept(at.get(), create, refusal)) at.reset();
  return at;
}

bool is_instance_name(const std::string& name) noexcept {
  return !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

bool has_setting(const DirectoryQuery& query) noexcept {
  return !query.setting.empty() && query.setting != "auto";
}

std::string holder_of(int fd) {
  char text[32] = {};
  const ssize_t length = pread(fd, text, sizeof text - 1, 0);
  std::string pid(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  pid.resize(std::min(pid.find_first_not_of("0123456789"), pid.size()));
  return pid.empty() ? "pid unknown" : "pid " + pid;
}

/// A killed daemon keeps its lock until the kernel has torn it down, and lock_is_held() of somebody
/// who looks takes it for a moment: so a taken lock is tried again for 0.1 s.
bool lock_within_patience(int fd) noexcept {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    const timespec pause{0, kLockPauseNs};
    nanosleep(&pause, nullptr);
  }
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

void UniqueFd::reset(int fd) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

std::vector<std::string> directory_candidates(const DirectoryQuery& query) {
  if (has_setting(query)) return {query.setting};
  std::vector<std::string> out;
  const std::string runtime = query.runtime_directory.substr(0, query.runtime_directory.find(':'));
  if (!runtime.empty()) out.push_back(runtime);
  out.push_back("/run/cutwater/" + query.instance);
  if (!query.xdg_runtime_dir.empty()) {
    out.push_back(query.xdg_runtime_dir + "/cutwater/" + query.instance);
  }
  out.push_back("/dev/shm/cutwater-" + std::to_string(geteuid()) + "/" + query.instance);
  return out;
}

Result<MemoryDirectory> open_directory(const DirectoryQuery& query) {
  if (!is_instance_name(query.instance)) {
    return Error{Errc::InvalidArgument, "instance name `" + query.instance +
                                            "` must be 1 to 64 characters without `/`"};
  }
  std::string looked_at;
  Errc code = Errc::Ok;
  bool all_missing = true;
  for (const std::string& path : directory_candidates(query)) {
    Refusal refusal;
    UniqueFd fd = open_path(path, query.create, refusal);
    if (fd) return MemoryDirectory{path, std::move(fd)};
    all_missing = all_missing && refusal.missing;
    // The most telling code: somebody else's directory, then a wrong file system, then the rest.
    if (code == Errc::Ok || refusal.code == Errc::NotOurs ||
        (code != Errc::NotOurs && refusal.code == Errc::NotTmpfs)) {
      code = refusal.code;
    }
    looked_at += (looked_at.empty() ? "" : "; ") + path + ": " + refusal.why;
  }
  if (!query.create && all_missing) code = Errc::NoDaemon;
  return Error{code, "no usable memory directory (" + looked_at +
                         "); set one on a tmpfs, for example: mount -t tmpfs -o "
                         "size=64m,mode=0755 tmpfs /run/cutwater"};
}

Result<UniqueFd> take_lock(const MemoryDirectory& directory) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(openat(directory.fd.get(), "lock", flags, 0600));
  if (!fd) {
    const bool link = errno == ELOOP;
    return Error{link ? Errc::NotOurs : Errc::System,
                 directory.path + "/lock cannot be opened: " + std::strerror(errno)};
  }
  if (!lock_within_patience(fd.get())) {
    if (errno != EWOULDBLOCK) {
      return Error{Errc::System, directory.path + "/lock: " + std::strerror(errno)};
    }
    return Error{Errc::Busy, "another daemon (" + holder_of(fd.get()) + ") holds " +
                                 directory.path +
                                 "/lock; one daemon serves a memory directory"};
  }
  // For people only: a full tmpfs must not keep the daemon from starting, so nothing is checked.
  const std::string pid = std::to_string(getpid()) + "\n";
  [[maybe_unused]] const int cut = ftruncate(fd.get(), 0);
  [[maybe_unused]] const ssize_t written = pwrite(fd.get(), pid.data(), pid.size(), 0);
  return fd;
}

bool lock_is_held(const MemoryDirectory& directory) {
  const UniqueFd fd(openat(directory.fd.get(), "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return false;
  // Shared, so that two who look do not see each other; the descriptor's end gives it back.
  return flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace cutwater::shm
