// SPDX-License-Identifier: Apache-2.0
#include "shared_log.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <unordered_map>

namespace cutwater::quickstart {
namespace {

/// A log that goes on for longer is cut: the segment's clock ends.
constexpr std::int64_t kMaxSpanNs = 9LL * 365 * 86'400 * 1'000'000'000;

std::size_t padded(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

}  // namespace

/// The log while it is being read.
struct SharedLog::Draft {
  std::vector<Request> requests;
  std::vector<std::uint64_t> ends{0};
  std::string names;
  std::unordered_map<std::string, std::uint32_t> index;

  std::uint32_t client(std::string_view name) {
    const auto [found, added] =
        index.emplace(std::string(name), static_cast<std::uint32_t>(index.size()));
    if (added) {
      names += name;
      ends.push_back(names.size());
    }
    return found->second;
  }
};

Result<SharedLog> SharedLog::read(ctl::AccessLog& log) {
  Draft draft;
  SharedLog out;
  ctl::LogEntry entry;
  std::int64_t first = 0, latest = 0;
  while (log.next(entry)) {
    if (draft.requests.empty()) first = latest = entry.stamp_ns;
    if (entry.stamp_ns - first > kMaxSpanNs) {
      log.reject("time lies more than 9 years behind the first line's");
      continue;
    }
    if (draft.requests.size() >= kMaxRequests || draft.names.size() >= kMaxNameBytes) {
      ++out.left_out_;
      continue;
    }
    if (entry.stamp_ns < latest) ++out.out_of_order_;
    latest = std::max(latest, entry.stamp_ns);
    draft.requests.push_back({latest - first, draft.client(entry.client), 0});
  }
  if (!log.failed().empty()) return Error{Errc::System, log.failed()};
  out.skipped_ = log.skipped();
  out.faults_ = log.faults();
  if (draft.requests.empty()) {
    return Error{Errc::InvalidArgument, "no line of the log could be read"};
  }
  if (!out.place(draft)) return Error{Errc::NoMemory, "no memory to share the log in"};
  return out;
}

bool SharedLog::place(const Draft& draft) {
  count_ = static_cast<std::uint32_t>(draft.requests.size());
  clients_ = static_cast<std::uint32_t>(draft.index.size());
  const std::size_t requests = padded(sizeof(Control));
  const std::size_t ends = requests + padded(draft.requests.size() * sizeof(Request));
  const std::size_t names = ends + padded(draft.ends.size() * sizeof(std::uint64_t));
  length_ = names + std::max<std::size_t>(draft.names.size(), 1);
  void* memory =
      ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  auto* bytes = static_cast<char*>(memory_);
  control_ = new (bytes) Control{};
  requests_ = reinterpret_cast<Request*>(bytes + requests);
  ends_ = reinterpret_cast<std::uint64_t*>(bytes + ends);
  names_ = bytes + names;
  std::copy(draft.requests.begin(), draft.requests.end(), requests_);
  std::copy(draft.ends.begin(), draft.ends.end(), ends_);
  std::copy(draft.names.begin(), draft.names.end(), names_);
  return true;
}

SharedLog::SharedLog(SharedLog&& other) noexcept
    : memory_(other.memory_),
      length_(other.length_),
      control_(other.control_),
      requests_(other.requests_),
      ends_(other.ends_),
      names_(other.names_),
      count_(other.count_),
      clients_(other.clients_),
      skipped_(other.skipped_),
      out_of_order_(other.out_of_order_),
      left_out_(other.left_out_),
      faults_(std::move(other.faults_)) {
  other.memory_ = nullptr;
}

SharedLog::~SharedLog() {
  if (memory_ != nullptr) ::munmap(memory_, length_);
}

std::uint32_t SharedLog::end_of_group(std::uint32_t i) const noexcept {
  std::uint32_t end = i;
  while (end < count_ && requests_[end].at_ns == requests_[i].at_ns) ++end;
  return end;
}

void SharedLog::fail(const std::string& why) const noexcept {
  if (control_->failed.exchange(1, std::memory_order_acq_rel) == 0) {
    std::snprintf(control_->failure, sizeof control_->failure, "%s", why.c_str());
    // PUBLISHES failure[] to the parent, which reads it only at 2.
    control_->failed.store(2, std::memory_order_release);
  }
  futex_wake(control_->done);
  futex_wake(control_->ready);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, int at_most_ms) noexcept {
  const timespec timeout{at_most_ms / 1000, at_most_ms % 1000 * 1'000'000L};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace cutwater::quickstart
