// SPDX-License-Identifier: Apache-2.0
#include "acts/journal.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cutwater::server {

namespace {

/// A killed daemon keeps its lock until the kernel has torn it down: its successor tries for a
/// second, before it would go on without the acts that stand in the journal.
constexpr int kLockAttempts = 100;
constexpr long kLockPauseNs = 10'000'000;

bool lock_within_patience(int fd) noexcept {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    const timespec pause{0, kLockPauseNs};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

constexpr const char* kFile = "journal";
constexpr const char* kNewFile = "journal.new";
constexpr const char* kBadFile = "journal.bad";
constexpr int kOpenFlags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

std::string system_text(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

Error system_error(const std::string& what) { return {Errc::System, system_text(what)}; }

/// Makes the directory and those above it as far as they are missing; "" or why not.
std::string make_directories(const std::string& path) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    const mode_t mode = at == path.size() ? 0700 : 0755;
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) return system_text(part);
  }
  return {};
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::string lines_of(const std::vector<JournalEntry>& entries) {
  std::string out;
  for (const JournalEntry& entry : entries) out += to_line(entry);
  return out;
}

}  // namespace

std::vector<std::string> state_directory_candidates(const StatePlan& plan) {
  if (!plan.setting.empty() && plan.setting != "auto") return {plan.setting};
  std::vector<std::string> out;
  const std::string given = plan.state_directory.substr(0, plan.state_directory.find(':'));
  if (!given.empty()) out.push_back(given);
  out.push_back("/var/lib/cutwater/" + plan.instance);
  if (!plan.xdg_state_home.empty()) {
    out.push_back(plan.xdg_state_home + "/cutwater/" + plan.instance);
  }
  return out;
}

Journal::Opened Journal::open(asio::io_context& loop, const StatePlan& plan) {
  Opened out;
  out.journal.reset(new Journal(loop));
  Journal& journal = *out.journal;
  if (plan.setting == "off") {
    journal.why_not_ = "instance.state-directory is off";
    return out;
  }
  std::string looked_at;
  for (const std::string& path : state_directory_candidates(plan)) {
    const std::string why = journal.open_file(path);
    if (why.empty()) break;
    looked_at += (looked_at.empty() ? "" : "; ") + why;
  }
  if (journal.path_.empty()) {
    journal.why_not_ = "no state directory: " + looked_at;
    out.remarks.push_back("manual acts are not saved and may not come back when the daemon "
                          "starts again: " +
                          journal.why_not_ + "; set instance.state-directory, or `off`");
    return out;
  }
  out.entries = journal.read_all(out.remarks);
  journal.start();
  return out;
}

Journal::~Journal() {
  alive_.reset();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

/// "" when the directory and its file are ours, else why not.
std::string Journal::open_file(const std::string& directory) {
  if (directory.empty() || directory[0] != '/') return directory + ": not an absolute path";
  if (std::string why = make_directories(directory); !why.empty()) return why;
  shm::UniqueFd at(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!at) return system_text(directory);
  struct stat status {};
  if (::fstat(at.get(), &status) != 0) return system_text(directory);
  if (status.st_uid != ::geteuid()) {
    return fmt::format("{}: belongs to uid {}, not to us (uid {})", directory, status.st_uid,
                       ::geteuid());
  }
  if ((status.st_mode & 0022) != 0) {
    return fmt::format("{}: others may write there; chmod go-w it", directory);
  }
  shm::UniqueFd file(::openat(at.get(), kFile, kOpenFlags, 0600));
  if (!file) return system_text(directory + "/" + kFile);
  if (!lock_within_patience(file.get())) {
    return fmt::format("{}/{}: another daemon writes it; give each its own "
                       "instance.state-directory", directory, kFile);
  }
  directory_ = std::move(at);
  file_ = std::move(file);
  path_ = directory + "/" + kFile;
  return {};
}

std::vector<JournalEntry> Journal::read_all(std::vector<std::string>& remarks) {
  struct stat status {};
  std::string bytes;
  if (::fstat(file_.get(), &status) == 0) {
    bytes.resize(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kMaxBytes));
  }
  const ssize_t n = ::pread(file_.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  std::vector<JournalEntry> out;
  std::size_t skipped = 0, number = 0;
  std::string first;
  const bool cut = !bytes.empty() && bytes.back() != '\n';
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = bytes.find('\n', at);
    if (end == std::string::npos) break;   // cut by a crash: it was never said to be saved
    ++number;
    auto entry = from_line(std::string_view(bytes).substr(at, end - at));
    at = end + 1;
    if (entry) {
      out.push_back(std::move(*entry));
    } else if (skipped++ == 0) {
      first = fmt::format("line {}: {}", number, entry.error().text());
    }
  }
  lines_ = out.size();
  if (skipped != 0) {
    remarks.push_back(fmt::format("{}: {} lines are damaged and were skipped ({}); the file is "
                                  "kept as {}", path_, skipped, first, kBadFile));
    static_cast<void>(::linkat(directory_.get(), kFile, directory_.get(), kBadFile, 0));
  }
  if (skipped == 0 && !cut) return out;
  if (auto written = write_anew(lines_of(out)); !written) {
    remarks.push_back(path_ + " " + written.error().text());
  }
  return out;
}

void Journal::start() {
  thread_ = std::thread([this, alive = std::weak_ptr<bool>(alive_)] { run(alive); });
}

void Journal::append(const std::vector<JournalEntry>& entries, Done done, Pending pending) {
  lines_ += entries.size();
  if (pending && !path_.empty()) done = with_patience(std::move(done), std::move(pending));
  hand_over({lines_of(entries), false, std::move(done)});
}

/// `done`, which calls off a timer that would say `pending`.
Journal::Done Journal::with_patience(Done done, Pending pending) {
  struct Waiting {
    asio::steady_timer timer;
    bool told = false;
  };
  auto waiting = std::make_shared<Waiting>(Waiting{asio::steady_timer(loop_, kPatience)});
  waiting->timer.async_wait([weak = std::weak_ptr<Waiting>(waiting), pending = std::move(pending),
                             alive = std::weak_ptr<bool>(alive_)](const std::error_code& error) {
    const auto mine = weak.lock();
    if (!error && mine && !mine->told && !alive.expired()) pending();
  });
  return [waiting, done = std::move(done)](const Result<void>& saved) {
    waiting->told = true;
    waiting->timer.cancel();
    done(saved);
  };
}

bool Journal::wants_rewrite(std::size_t standing) const noexcept {
  return !path_.empty() && lines_ > standing + kLinesBeforeCompaction;
}

void Journal::rewrite(const std::vector<JournalEntry>& entries, Done done) {
  lines_ = entries.size();
  hand_over({lines_of(entries), true, std::move(done)});
}

void Journal::hand_over(Job job) {
  Result<void> refused;
  if (path_.empty()) {
    refused = Error(Errc::Unsupported, why_not_);
  } else {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.size() >= kMaxQueued) refused = Error(Errc::Busy, "the disk is too slow");
    else jobs_.push_back(std::move(job));
  }
  if (!refused) return job.done(refused);
  wake_.notify_one();
}

/// The thread. What was handed over is still written when the daemon ends.
void Journal::run(const std::weak_ptr<bool>& alive) {
  while (true) {
    Job job;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Result<void> written = write(job);
    asio::post(loop_, [alive, done = std::move(job.done),
                       written = std::move(written)] {
      if (!alive.expired()) done(written);
    });
  }
}

Result<void> Journal::write(const Job& job) {
  if (job.whole) return write_anew(job.bytes);
  struct stat before {};
  if (::fstat(file_.get(), &before) != 0) return system_error(path_);
  if (!is_in_place(before)) return put_back(before, job.bytes);
  Result<void> done = write_all(file_.get(), job.bytes);
  if (done && ::fdatasync(file_.get()) != 0) done = system_error("cannot be synced");
  // Half a line would spoil the next one.
  if (!done) static_cast<void>(::ftruncate(file_.get(), before.st_size));
  return done;
}

/// Is the file that we write to the one that the next daemon will find?
bool Journal::is_in_place(const struct stat& ours) const {
  struct stat found {};
  return ::fstatat(directory_.get(), kFile, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         found.st_dev == ours.st_dev && found.st_ino == ours.st_ino;
}

/// Somebody removed or replaced it: what it held comes back, with `more`.
Result<void> Journal::put_back(const struct stat& ours, const std::string& more) {
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(ours.st_size, 0)), '\0');
  if (::pread(file_.get(), bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return system_error("was removed and cannot be read");
  }
  static_cast<void>(::linkat(directory_.get(), kFile, directory_.get(), kBadFile, 0));
  return write_anew(bytes + more);
}

Result<void> Journal::write_anew(const std::string& bytes) {
  const int flags = kOpenFlags | O_TRUNC;
  shm::UniqueFd fresh(::openat(directory_.get(), kNewFile, flags, 0600));
  if (!fresh) return system_error("cannot be made anew");
  if (::flock(fresh.get(), LOCK_EX | LOCK_NB) != 0) return system_error("cannot be locked");
  if (auto done = write_all(fresh.get(), bytes); !done) return done;
  if (::fdatasync(fresh.get()) != 0) return system_error("cannot be synced");
  if (::renameat(directory_.get(), kNewFile, directory_.get(), kFile) != 0) {
    return system_error("cannot be put in place");
  }
  file_ = std::move(fresh);
  static_cast<void>(::fsync(directory_.get()));
  return {};
}

}  // namespace cutwater::server
