// SPDX-License-Identifier: Apache-2.0
#include "socket_file.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shm/socket_place.hpp"

namespace cutwater::server {

namespace {

constexpr int kBacklog = 512;
constexpr int kFolderLockTries = 50;
constexpr long kFolderLockPauseNs = 20'000'000;

Error refused(Errc code, const std::string& path, const std::string& why) {
  return {code, "listen.unix.path: " + path + ": " + why};
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

sockaddr_un address_of(const std::string& path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Makes a folder others may pass through, and lets them pass through the one above, when that one
/// is ours.
Result<void> make_folder(const std::string& path) {
  const std::string folder = folder_of(path), above = folder_of(folder);
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return refused(Errc::System, folder,
                   std::string("cannot be made: ") + std::strerror(errno) +
                       "; others must reach the socket and the memory directory is closed to them: "
                       "set listen.unix.path to a folder they can enter");
  }
  const shm::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_uid != ::geteuid()) {
    return refused(Errc::NotOurs, folder, "is a link or belongs to somebody else");
  }
  if (::fchmod(fd.get(), 0755) != 0) {
    return refused(Errc::System, folder, std::string("mode 0755: ") + std::strerror(errno));
  }
  if (::stat(above.c_str(), &status) == 0 && status.st_uid == ::geteuid() &&
      (status.st_mode & 0011) != 0011 && above != "/") {
    static_cast<void>(::chmod(above.c_str(), (status.st_mode & 07777) | 0011));
  }
  return {};
}

/// Held while looking at the path and making the socket. Without it (somebody else holds on to it)
/// we go on: it only matters to two daemons that start in the same instant.
shm::UniqueFd lock_folder(const std::string& folder, bool patient) {
  shm::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; fd && i < kFolderLockTries; ++i) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || !patient) break;
    const timespec pause{0, kFolderLockPauseNs};
    ::nanosleep(&pause, nullptr);
  }
  return fd;
}

bool somebody_answers(const std::string& path) {
  const shm::UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(path);
  if (!probe) return true;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return true;
  }
  // Only a refused connection proves that nobody listens; a full queue (EAGAIN) is somebody.
  return errno != ECONNREFUSED && errno != ENOENT;
}

/// Leaves the path free, or says why it cannot be had.
Result<void> clear_path(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return refused(Errc::System, path, std::strerror(errno));
  }
  if (!S_ISSOCK(status.st_mode)) {
    const char* kind = S_ISLNK(status.st_mode) ? "a symbolic link"
                       : S_ISDIR(status.st_mode) ? "a directory" : "not a socket";
    return refused(Errc::NotOurs, path,
                   std::string("there is ") + kind + " and it stays untouched; remove it or set "
                                                     "listen.unix.path to another place");
  }
  if (somebody_answers(path)) {
    return refused(Errc::Busy, path,
                   "another process listens there; stop it or set listen.unix.path to another "
                   "place");
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return refused(Errc::System, path, std::string("the stale socket cannot be removed: ") +
                                           std::strerror(errno));
  }
  return {};
}

Result<void> bind_closed(int fd, const std::string& path) {
  const sockaddr_un address = address_of(path);
  const mode_t before = ::umask(0177);
  const int failed = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error_number = errno;
  ::umask(before);
  if (failed == 0) return {};
  const Errc code = error_number == EADDRINUSE ? Errc::Busy : Errc::System;
  return refused(code, path, std::strerror(error_number));
}

Result<void> open_to(const SocketSettings& settings) {
  const char* path = settings.path.c_str();
  if (settings.group &&
      ::lchown(path, static_cast<uid_t>(-1), static_cast<gid_t>(*settings.group)) != 0) {
    return refused(Errc::NotPermitted, settings.path,
                   "group " + std::to_string(*settings.group) + " cannot be given: " +
                       std::strerror(errno) +
                       "; the daemon's user must be a member, or change listen.unix.group");
  }
  if (::chmod(path, static_cast<mode_t>(settings.mode)) != 0) {
    return refused(Errc::System, settings.path, std::string("mode: ") + std::strerror(errno));
  }
  return {};
}

}  // namespace

Result<SocketFile> SocketFile::listen(const SocketSettings& settings) {
  const std::string& path = settings.path;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return refused(Errc::InvalidConfig, path,
                   "longer than the 107 bytes a socket's address has; set listen.unix.path");
  }
  if (settings.own_directory) {
    if (auto made = make_folder(path); !made) return made.error();
  }
  const shm::UniqueFd folder = lock_folder(folder_of(path), settings.patient);
  if (!folder) {
    return refused(Errc::System, path, "its folder: " + std::string(std::strerror(errno)) +
                                           "; make it or set listen.unix.path");
  }
  if (auto cleared = clear_path(path); !cleared) return cleared.error();

  SocketFile out;
  out.path_ = path;
  out.fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.fd_) return refused(Errc::System, path, std::strerror(errno));
  if (auto bound = bind_closed(out.fd(), path); !bound) return bound.error();
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return refused(Errc::System, path, std::strerror(errno));
  out.device_ = status.st_dev;
  out.inode_ = status.st_ino;
  auto opened = open_to(settings);
  if (opened && ::listen(out.fd(), kBacklog) != 0) {
    opened = refused(Errc::System, path, std::strerror(errno));
  }
  if (!opened) {
    out.remove();
    return opened.error();
  }
  return out;
}

bool SocketFile::is_in_place() const noexcept {
  struct stat status {};
  return ::lstat(path_.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
         status.st_dev == device_ && status.st_ino == inode_;
}

bool SocketFile::is_gone() const noexcept {
  struct stat status {};
  return ::lstat(path_.c_str(), &status) != 0 && errno == ENOENT;
}

void SocketFile::remove() noexcept {
  if (!path_.empty() && is_in_place()) ::unlink(path_.c_str());
}

std::string socket_path_for(const std::string& memory_directory, bool others) {
  return others ? shm::shared_socket_path(memory_directory)
                : shm::private_socket_path(memory_directory);
}

}  // namespace cutwater::server
