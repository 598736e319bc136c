// SPDX-License-Identifier: Apache-2.0
#include "peer.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shm/process_table.hpp"

namespace cutwater::server {

namespace {

constexpr int kPeerPidfd = 77;      // SO_PEERPIDFD; younger than Debian 12's headers
constexpr int kPeerGroups = 59;     // SO_PEERGROUPS
constexpr std::size_t kMaxGroups = 65536;
constexpr std::size_t kMaxMapsBytes = std::size_t{8} << 20;

int pidfd_open_of(std::uint32_t pid) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

bool is_hung_up(int socket) noexcept {
  pollfd entry{socket, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

std::vector<std::uint32_t> groups_of(int socket) {
  std::vector<gid_t> groups(64);
  while (true) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, kPeerGroups, groups.data(), &bytes) == 0) {
      groups.resize(bytes / sizeof(gid_t));
      return {groups.begin(), groups.end()};
    }
    // Too small: the kernel wrote how many bytes it wants. Anything else: no groups, fewer rights.
    if (errno != ERANGE || bytes > kMaxGroups * sizeof(gid_t)) return {};
    groups.resize(bytes / sizeof(gid_t));
  }
}

shm::UniqueFd pidfd_of(int socket, std::uint32_t pid) {
  int fd = -1;
  socklen_t length = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &fd, &length) == 0 && fd >= 0) {
    return shm::UniqueFd(fd);
  }
  if (errno != ENOPROTOOPT) return {};
  shm::UniqueFd opened(pidfd_open_of(pid));
  // The pid may have been given away between connect() and here; then its socket is hung up.
  if (opened && is_hung_up(socket)) opened.reset();
  return opened;
}

}  // namespace

bool has_ended(const shm::UniqueFd& pidfd) noexcept {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

Result<PeerProcess> read_peer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Error(Errc::System, std::string("SO_PEERCRED: ") + std::strerror(errno));
  }
  PeerProcess peer;
  peer.identity = {credentials.uid, credentials.gid, groups_of(socket)};
  if (credentials.pid <= 0) return peer;
  peer.pid = static_cast<std::uint32_t>(credentials.pid);
  peer.pidfd = pidfd_of(socket, peer.pid);
  peer.start_time = shm::process_start_time(peer.pid);
  peer.pid_namespace = shm::pid_namespace_of(peer.pid);
  // Read while the process was there: only then they are its own.
  if (!peer.pidfd || has_ended(peer.pidfd)) peer.start_time = peer.pid_namespace = 0;
  return peer;
}

Result<shm::UniqueFd> open_known_process(std::uint32_t pid, std::uint64_t start_time) {
  if (pid == 0) return shm::UniqueFd();
  shm::UniqueFd pidfd(pidfd_open_of(pid));
  if (!pidfd) {
    if (errno == ESRCH || errno == EINVAL) return shm::UniqueFd();
    return Error(Errc::NoMemory, std::string("pidfd_open: ") + std::strerror(errno));
  }
  if (has_ended(pidfd)) return shm::UniqueFd();
  const std::uint64_t now = shm::process_start_time(pid);
  if (now != start_time || has_ended(pidfd)) return shm::UniqueFd();
  return pidfd;
}

Mapping look_for_mapping(std::uint32_t pid, std::uint64_t device, std::uint64_t inode) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%u/maps", pid);
  const shm::UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return Mapping::Unreadable;
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, " %02x:%02x %llu ", ::major(device), ::minor(device),
                static_cast<unsigned long long>(inode));
  const std::size_t overlap = std::strlen(wanted);
  std::string text;
  char piece[16384];
  for (std::size_t total = 0; total < kMaxMapsBytes;) {
    const ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0) return Mapping::Unreadable;
    // A process whose main thread has ended lists nothing, though its other threads run on: then
    // nothing is known.
    if (n == 0) return total == 0 ? Mapping::Unreadable : Mapping::Gone;
    total += static_cast<std::size_t>(n);
    if (text.size() > overlap) text.erase(0, text.size() - overlap);
    text.append(piece, static_cast<std::size_t>(n));
    if (text.find(wanted) != std::string::npos) return Mapping::There;
  }
  return Mapping::Unreadable;   // more maps than we read: nothing is known
}

}  // namespace cutwater::server
