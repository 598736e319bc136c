// SPDX-License-Identifier: Apache-2.0
#include "file_watch.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cutwater::server {

namespace {

constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE |
                                  IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::string fingerprint_of(const std::string& path) {
  char resolved[PATH_MAX];
  struct stat status {};
  if (::realpath(path.c_str(), resolved) == nullptr || ::stat(resolved, &status) != 0) return {};
  return fmt::format("{} {} {} {} {}.{} {}.{}", resolved, status.st_dev, status.st_ino,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                     status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

FileWatch::FileWatch(asio::io_context& loop, std::string path, std::function<void()> changed,
                     std::chrono::milliseconds look_every, std::string known)
    : loop_(loop),
      path_(std::move(path)),
      changed_(std::move(changed)),
      look_every_(look_every),
      inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      known_(known.empty() ? fingerprint_of(path_) : std::move(known)) {
  if (!inotify_ || !watch_folder()) {
    why_slow_ = folder_of(path_) + " cannot be watched: " + std::strerror(errno);
    inotify_.reset();
  }
  thread_ = std::thread([this, alive = std::weak_ptr<bool>(alive_)] { run(alive); });
}

FileWatch::~FileWatch() {
  alive_.reset();
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_.get(), &one, sizeof one));
  thread_.join();
}

/// Adding it again changes nothing, unless another folder has its name now.
bool FileWatch::watch_folder() {
  return ::inotify_add_watch(inotify_.get(), folder_of(path_).c_str(), kEvents) >= 0;
}

/// Until something happened in the folder, or `patience` is over. False: it is to end.
bool FileWatch::wait(std::chrono::milliseconds patience) {
  pollfd fds[2] = {{stop_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
  static_cast<void>(::poll(fds, inotify_ ? 2 : 1, static_cast<int>(patience.count())));
  if ((fds[0].revents & POLLIN) != 0) return false;
  char drained[4096];
  while (inotify_ && ::read(inotify_.get(), drained, sizeof drained) > 0) {}
  return true;
}

void FileWatch::run(const std::weak_ptr<bool>& alive) {
  std::string seen = known_;
  // It may have changed already, before anything in the folder told so.
  auto patience = fingerprint_of(path_) == known_ ? look_every_ : kSettle;
  while (wait(patience)) {
    const std::string now = fingerprint_of(path_);
    const bool settled = now == seen;
    seen = now;
    patience = settled ? look_every_ : kSettle;
    if (inotify_) static_cast<void>(watch_folder());
    if (!settled || now.empty() || now == known_) continue;
    known_ = now;
    asio::post(loop_, [this, alive] {
      if (!alive.expired()) changed_();
    });
  }
}

}  // namespace cutwater::server
