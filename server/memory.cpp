// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/guard.hpp"
#include "rows/config_report.hpp"
#include "shm/counters.hpp"

namespace cutwater::server {

namespace {

constexpr std::uint64_t kSweepSlots = std::uint64_t{1} << 20;
constexpr int kPublishTries = 50;
constexpr std::int64_t kMaxPauseNs = 200'000'000;

void sleep_ns(std::int64_t ns) {
  const std::int64_t bounded = ns < 0 ? 0 : ns > kMaxPauseNs ? kMaxPauseNs : ns;
  const timespec pause{0, static_cast<long>(bounded)};
  ::nanosleep(&pause, nullptr);
}

/// Before the loop runs: until the clock has passed what a former owner published last.
void wait_until_ready(const shm::View& view, const shm::Publisher& publisher) {
  const std::int64_t missing = publisher.ready_at() - view.clock.now();
  if (missing <= 0) return;
  if (view.clock.is_stepped()) static_cast<void>(shm::step_clock(view, publisher.ready_at()));
  else sleep_ns(missing);
}

bool kernel_gives_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string text;
  std::getline(file, text);
  return text.find("[advise]") != std::string::npos || text.find("[always]") != std::string::npos ||
         text.find("[within_size]") != std::string::npos;
}

/// `lock-memory`: the pages of `state` stay in RAM.
Result<void> lock_state(const config::Config& config, const shm::Segment& segment,
                        std::vector<std::string>& remarks) {
  using config::LockMemory;
  if (config.instance.lock_memory == LockMemory::No) return {};
  const auto* control = reinterpret_cast<const std::uint8_t*>(segment.view().state_control);
  const auto* base = control - shm::kPage;
  const std::uint64_t length = segment.header(shm::FileKind::State).total_length;
  if (::mlock(base, length) == 0) return {};
  const int error_number = errno;
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string why = fmt::format(
      "{} bytes of memory cannot be locked: {} (limit of locked memory: {} bytes); raise "
      "LimitMEMLOCK or set instance.lock-memory: false",
      length, std::strerror(error_number), static_cast<std::uint64_t>(limit.rlim_cur));
  if (config.instance.lock_memory == LockMemory::Yes) return Error(Errc::NotPermitted, why);
  remarks.push_back(why);
  return {};
}

}  // namespace

shm::SegmentOptions segment_options(const config::Config& config, bool stepped) {
  shm::SegmentOptions options;
  options.capacity = rows::capacity_of(config);
  options.clock = stepped ? shm::ClockKind::Stepped : shm::ClockKind::Boottime;
  options.tsc = !stepped && config.instance.clock == config::Clock::Tsc;
  options.huge_pages = config.instance.huge_pages != config::HugePages::Never;
  return options;
}

Result<std::unique_ptr<Memory>> Memory::open(const config::Config& config, const MemoryPlan& plan,
                                             std::vector<std::string>& remarks) {
  if (config.instance.clock == config::Clock::Tsc && !plan.stepped && !tsc_usable()) {
    return Error(Errc::Unsupported, "instance.clock: the time-stamp counter of this machine is not "
                                    "invariant or not the kernel's clock source; use boottime");
  }
  if (config.instance.huge_pages == config::HugePages::Always && !kernel_gives_huge_pages()) {
    remarks.emplace_back("instance.huge-pages: the kernel gives none to shared memory; write "
                         "`advise` to /sys/kernel/mm/transparent_hugepage/shmem_enabled");
  }
  auto directory = shm::open_directory({.setting = config.instance.memory_directory,
                                        .instance = config.instance.name,
                                        .runtime_directory = plan.runtime_directory,
                                        .xdg_runtime_dir = plan.xdg_runtime_dir,
                                        .create = true});
  if (!directory) return directory.error();
  auto lock = shm::take_lock(*directory);
  if (!lock) return lock.error();
  auto birth = adopt_or_create(directory->fd.get(), segment_options(config, plan.stepped),
                               config.instance.initial_after_damage);
  if (!birth) {
    const Error& why = birth.error();
    return Error(why.code(), directory->path + ": " + why.text());
  }
  if (!guarded(Guard::LockHeldForLife)) lock->reset();

  auto memory = std::unique_ptr<Memory>(
      new Memory(std::move(*directory), std::move(*lock), std::move(*birth)));
  if (auto locked = lock_state(config, memory->segment(), remarks); !locked) return locked.error();
  if (auto opened = memory->open_descriptors(); !opened) return opened.error();
  memory->lock_memory_ = config.instance.lock_memory != config::LockMemory::No;
  const Rules rules{config.limits, config.breakers, config.bulkheads, config.hash};
  if (auto published = memory->publish(rules, memory->birth_.inherits()); !published) {
    return published.error();
  }
  if (auto row = memory->take_daemon_row(); !row) return row.error();
  return memory;
}

Memory::Memory(shm::MemoryDirectory directory, shm::UniqueFd lock, Birth birth)
    : directory_(std::move(directory)), lock_(std::move(lock)), birth_(std::move(birth)) {}

Memory::~Memory() {
  for (const auto* files : {&client_files_, &reader_files_}) {
    for (const int fd : *files) {
      if (fd >= 0) ::close(fd);
    }
  }
}

bool Memory::tsc() const noexcept {
  const shm::FileHeader& header = birth_.segment.header(shm::FileKind::Rules);
  return (header.features_optional & shm::kFeatureTsc) != 0;
}

Result<void> Memory::open_descriptors() {
  auto for_clients = shm::open_descriptors(directory_.fd.get(), false);
  if (!for_clients) return for_clients.error();
  client_files_ = *for_clients;
  auto for_readers = shm::open_descriptors(directory_.fd.get(), true);
  if (!for_readers) return for_readers.error();
  reader_files_ = *for_readers;
  return {};
}

/// The same numbers name the new files: a greeting under way sends these.
Result<void> Memory::reopen_descriptors() {
  for (auto* files : {&client_files_, &reader_files_}) {
    auto opened = shm::open_descriptors(directory_.fd.get(), files == &reader_files_);
    if (!opened) return opened.error();
    for (std::size_t i = 0; i < files->size(); ++i) {
      const shm::UniqueFd fd((*opened)[i]);
      if (::dup3(fd.get(), (*files)[i], O_CLOEXEC) < 0) {
        return Error(Errc::System, fmt::format("dup3: {}", std::strerror(errno)));
      }
    }
  }
  return {};
}

Result<shm::CopyReport> Memory::move_to_named_files() {
  for (const char* name : {"rules", "state", "stats"}) {
    struct stat found {};
    const bool there = ::fstatat(directory_.fd.get(), name, &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISDIR(found.st_mode)) {
      return Error(Errc::NotOurs, fmt::format("a directory is in the way: {}", name));
    }
  }
  const std::uint64_t current = view().current();
  const auto* image = reinterpret_cast<const shm::ImageHead*>(
      view().image[current & shm::kCurrentImageBit]);
  const Rules rules{publisher_->limits(), publisher_->breakers(), publisher_->bulkheads(),
                    image->config_hash};
  const shm::FileHeader& header = birth_.segment.header(shm::FileKind::Rules);
  const shm::SegmentOptions options{.capacity = birth_.segment.capacity(),
                                    .clock = static_cast<shm::ClockKind>(header.clock),
                                    .tsc = tsc(),
                                    .huge_pages = header.page_kind != 0};
  auto moved = shm::supersede(directory_.fd.get(), birth_.segment, options);
  if (!moved) return moved.error();
  birth_.segment = std::move(moved->segment);
  if (lock_memory_) {
    // As at the start; a refusal was told there.
    const auto* base = reinterpret_cast<const std::uint8_t*>(view().state_control) - shm::kPage;
    static_cast<void>(::mlock(base, birth_.segment.header(shm::FileKind::State).total_length));
  }
  if (auto opened = reopen_descriptors(); !opened) return opened.error();
  if (auto published = publish(rules, true); !published) return published.error();
  if (auto row = take_daemon_row(); !row) return row.error();
  return moved->copied;
}

Result<void> Memory::publish(const Rules& rules, bool inherits) {
  publisher_ = std::make_unique<shm::Publisher>(view());
  rows_ = std::make_unique<shm::RowTable>(view(), !inherits);
  if (inherits) {
    wait_until_ready(view(), *publisher_);
    while (!publisher_->sweep(kSweepSlots)) wait_until_ready(view(), *publisher_);
    publisher_->announce_takeover();
  }
  publisher_->set_all_floors_empty(birth_.start_empty);
  publisher_->set_breakers(rules.breakers);
  publisher_->set_bulkheads(rules.bulkheads);
  for (int i = 0; i < kPublishTries; ++i) {
    auto report = publisher_->publish(rules.limits, rules.hash);
    if (report) {
      publisher_->set_all_floors_empty(false);   // limits added later are not of the lost memory
      return {};
    }
    if (report.error().code() != Errc::Busy || i + 1 == kPublishTries) return report.error();
    wait_until_ready(view(), *publisher_);
    static_cast<void>(publisher_->sweep(kSweepSlots));
  }
  return {};
}

Result<void> Memory::take_daemon_row() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::uint64_t start_time = shm::process_start_time(pid);
  shm::RowInfo former;
  const bool had_former = shm::read_row(view(), shm::kDaemonRow, former);
  auto row = rows_->grant({.kind = shm::RowKind::Daemon,
                           .pid = pid,
                           .uid = ::geteuid(),
                           .start_time = start_time,
                           .pid_namespace = shm::pid_namespace_of(0),
                           .connection = 0,
                           .name = "cutwaterd"});
  if (!row) return row.error();
  daemon_row_ = *row;
  // What a killed daemon counted with.
  if (had_former && former.word.generation != row->generation) {
    shm::release_stripes_of(view(), shm::kDaemonRow, former.word.generation);
  }
  // relaxed: for people; nothing is read because of them.
  shm::RulesControl& control = *view().rules_control;
  __atomic_store_n(&control.daemon_start_time, start_time, __ATOMIC_RELAXED);
  __atomic_store_n(&control.daemon_pid, pid, __ATOMIC_RELAXED);
  return {};
}

Memory::Identity Memory::state_identity() const noexcept {
  struct stat status {};
  const int fd = client_files_[static_cast<std::size_t>(shm::FileKind::State)];
  if (::fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

bool Memory::names_in_place() const {
  constexpr const char* kNames[] = {"rules", "state", "stats"};
  for (std::size_t i = 0; i < 3; ++i) {
    struct stat named {}, ours {};
    if (::fstat(client_files_[i], &ours) != 0) return false;
    if (::fstatat(directory_.fd.get(), kNames[i], &named, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (named.st_ino != ours.st_ino || named.st_dev != ours.st_dev) return false;
  }
  return true;
}

std::uint64_t Memory::unix_now_s() const noexcept {
  if (view().clock.is_stepped()) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(view().clock.now(), 0)) /
           rule::kNanosPerSecond;
  }
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(now.tv_sec, 0));
}

void Memory::note(shm::EventKind kind, std::uint32_t object, std::string_view text) {
  shm::Event event;
  event.kind = kind;
  event.object = object;
  static_cast<void>(text.copy(event.text, sizeof event.text - 1));   // the rest is 0
  static_cast<void>(shm::append_event(view(), event));
}

void Memory::say_farewell() {
  note(shm::EventKind::DaemonStopped, static_cast<std::uint32_t>(::getpid()), "stopped as asked");
  rows_->mark_dead(daemon_row_);
  shm::release_stripes_of(view(), daemon_row_.index, daemon_row_.generation);
  rows_->free(daemon_row_);
  __atomic_store_n(&view().rules_control->daemon_pid, 0U, __ATOMIC_RELAXED);
}

}  // namespace cutwater::server
