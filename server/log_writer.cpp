// SPDX-License-Identifier: Apache-2.0
#include "log_writer.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cutwater::server {

namespace {
constexpr int kPollMs = 100;   // how often a stuck writer looks whether it shall stop
constexpr int kRetryMs = 100;  // pause after a write that was refused
}

Result<shm::UniqueFd> open_log_file(const std::string& path) {
  constexpr int kFlags = O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = ::open(path.c_str(), O_WRONLY | kFlags, 0640);
  // A FIFO nobody reads: holding its other end too lets lines wait in it until somebody does.
  if (fd < 0 && errno == ENXIO) fd = ::open(path.c_str(), O_RDWR | kFlags, 0640);
  if (fd < 0) {
    return Error(Errc::System, "log.target: " + path + " cannot be opened: " +
                                   std::strerror(errno) + "; name a file the daemon may write");
  }
  return shm::UniqueFd(fd);
}

Result<std::shared_ptr<LogWriter>> LogWriter::start(const std::string& path, Bounds bounds) {
  auto writer = std::shared_ptr<LogWriter>(new LogWriter(bounds));
  if (auto opened = writer->retarget(path); !opened) return opened.error();
  // The thread keeps the writer alive, whatever becomes of everybody else.
  std::thread([writer] { writer->run(); }).detach();
  return writer;
}

void LogWriter::push(std::string line) noexcept {
  std::lock_guard lock(mutex_);
  if (stopping_ || lines_.size() >= bounds_.lines || bytes_ + line.size() > bounds_.bytes) {
    ++dropped_;
    return;
  }
  try {
    const std::size_t size = line.size();
    lines_.push_back(std::move(line));
    bytes_ += size;
    wake_.notify_one();
  } catch (const std::bad_alloc&) {
    ++dropped_;                        // a log line is the first thing to go without
  }
}

Result<void> LogWriter::retarget(const std::string& path) {
  std::shared_ptr<shm::UniqueFd> file;
  if (!path.empty()) {
    auto opened = open_log_file(path);
    if (!opened) return opened.error();
    file = std::make_shared<shm::UniqueFd>(std::move(*opened));
  }
  std::lock_guard lock(mutex_);
  path_ = path;
  file_ = std::move(file);
  return {};
}

void LogWriter::reopen() noexcept try {
  std::string path;
  {
    std::lock_guard lock(mutex_);
    path = path_;
  }
  // A file that cannot be opened anew: the old one is better than none.
  if (!path.empty()) static_cast<void>(retarget(path));
} catch (const std::bad_alloc&) {
  // nor can one without memory for its name
}

std::uint64_t LogWriter::dropped() const noexcept {
  std::lock_guard lock(mutex_);
  return dropped_;
}

bool LogWriter::stop(std::chrono::milliseconds patience) noexcept {
  std::unique_lock lock(mutex_);
  const bool empty = done_.wait_for(lock, patience, [&] { return lines_.empty() && !busy_; });
  stopping_ = true;
  lines_.clear();
  wake_.notify_one();
  return empty;
}

void LogWriter::set_drop_line(std::string prefix, std::string suffix) {
  std::lock_guard lock(mutex_);
  drop_prefix_ = std::move(prefix);
  drop_suffix_ = std::move(suffix);
}

void LogWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !lines_.empty(); });
    if (stopping_) break;
    const std::uint64_t told = dropped_told_;
    std::string line;
    try {
      line = next_line(lock);
    } catch (const std::bad_alloc&) {  // later, then
      wake_.wait_for(lock, std::chrono::milliseconds{kRetryMs}, [&] { return stopping_; });
      continue;
    }
    const bool about_drops = dropped_told_ != told;
    const std::shared_ptr<shm::UniqueFd> file = file_;
    busy_ = true;
    lock.unlock();
    const bool written = write_line(file ? file->get() : STDERR_FILENO, line);
    lock.lock();
    busy_ = false;
    if (!written) {
      // A full disk takes nothing: what was lost is said later, and not asked for in a circle.
      if (about_drops) dropped_told_ = told;
      else ++dropped_;
      wake_.wait_for(lock, std::chrono::milliseconds{kRetryMs}, [&] { return stopping_; });
    }
    if (lines_.empty()) done_.notify_all();
  }
  ended_ = true;
}

/// The line to write now: first what was lost since it was last said.
std::string LogWriter::next_line(std::unique_lock<std::mutex>&) {
  if (dropped_ != dropped_told_ && !drop_prefix_.empty()) {
    std::string line = drop_prefix_ + std::to_string(dropped_ - dropped_told_) + drop_suffix_;
    dropped_told_ = dropped_;
    return line;
  }
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  bytes_ -= line.size();
  return line;
}

bool LogWriter::giving_up() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

bool LogWriter::wait_writable(int fd) {
  while (!giving_up()) {
    pollfd entry{fd, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, kPollMs);
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return (entry.revents & POLLOUT) != 0;   // an error or hang-up alone: refused
  }
  return false;
}

bool LogWriter::write_line(int fd, const std::string& line) {
  std::size_t sent = 0;
  while (sent < line.size()) {
    if (!wait_writable(fd)) return false;
    const char* rest = line.data() + sent;
    ssize_t n = ::send(fd, rest, line.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK) n = ::write(fd, rest, line.size() - sent);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return false;   // a full disk, a closed pipe: this line is lost, the next one tries
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace cutwater::server
