// SPDX-License-Identifier: Apache-2.0
#include "shm/process_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace cutwater::shm {
namespace {

constexpr int kReadAttempts = 4;
constexpr std::size_t kRowWords = sizeof(ProcessRow) / sizeof(std::uint64_t);

std::uint64_t load_word(const View& view, std::uint32_t index) noexcept {
  // acquire: pairs with the release in store_word, so the fields belong to the word seen.
  return __atomic_load_n(&view.rows[index].word, __ATOMIC_ACQUIRE);
}

void store_word(const View& view, std::uint32_t index, std::uint64_t word) noexcept {
  __atomic_store_n(&view.rows[index].word, word, __ATOMIC_RELEASE);
}

/// A copy word by word: the row may be written meanwhile.
ProcessRow copy_row(const ProcessRow& row) noexcept {
  std::uint64_t words[kRowWords];
  const auto* from = reinterpret_cast<const std::uint64_t*>(&row);
  // acquire: none of these loads may move past the second look at the row's word.
  for (std::size_t i = 0; i < kRowWords; ++i) {
    words[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
  }
  ProcessRow out;
  std::memcpy(&out, words, sizeof out);
  return out;
}

/// Stores everything behind the word.
void store_fields(ProcessRow& row, const ProcessRow& fields) noexcept {
  std::uint64_t words[kRowWords];
  std::memcpy(words, &fields, sizeof words);
  auto* to = reinterpret_cast<std::uint64_t*>(&row);
  // relaxed: the release of the row's word publishes them.
  for (std::size_t i = 1; i < kRowWords; ++i) __atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
}

bool is_known(RowState state) noexcept {
  return static_cast<std::uint8_t>(state) <= static_cast<std::uint8_t>(RowState::Dead);
}

std::uint64_t namespace_inode(const char* path) noexcept {
  struct stat status {};
  return stat(path, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

RowWord unpack_row(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word >> 32), static_cast<RowKind>((word >> 24) & 0xff),
          static_cast<RowState>((word >> 16) & 0xff)};
}

std::uint64_t pack_row(RowWord row) noexcept {
  const std::uint64_t kind = static_cast<std::uint8_t>(row.kind);
  const std::uint64_t state = static_cast<std::uint8_t>(row.state);
  return std::uint64_t{row.generation} << 32 | kind << 24 | state << 16;
}

bool read_row(const View& view, std::uint32_t index, RowInfo& out) noexcept {
  if (index >= view.row_count) return false;
  ProcessRow row{};
  for (int i = 0; i < kReadAttempts; ++i) {   // then whatever was read: a picture for people
    row = copy_row(view.rows[index]);
    if (load_word(view, index) == row.word) break;
  }
  out.index = index;
  out.word = unpack_row(row.word);
  out.pid = row.pid;
  out.uid = row.uid;
  out.start_time = row.start_time;
  out.pid_namespace = row.pid_namespace;
  out.connection = row.connection;
  out.attached_ns = row.attached_ns;
  out.due_ns = row.due_ns;
  std::memcpy(out.name, row.name, sizeof out.name);
  out.name[sizeof out.name - 1] = 0;
  return true;
}

bool row_alive(const View& view, std::uint32_t index, std::uint32_t generation) noexcept {
  if (index == 0 || index >= view.row_count) return false;
  const RowWord word = unpack_row(load_word(view, index));
  return word.generation == generation &&
         (word.state == RowState::Live || word.state == RowState::Orphan);
}

RowTable::RowTable(const View& view, bool fresh) : view_(view), truth_(view.row_count) {
  for (std::uint32_t index = 0; index < view.row_count; ++index) {
    RowWord word = unpack_row(load_word(view, index));
    if (fresh) {
      word.state = RowState::Free;
      word.kind = RowKind::None;
    } else if (!is_known(word.state)) {
      word.state = RowState::Dead;   // damage: whatever it was, its things are given back
    }
    truth_[index] = pack_row(word);
    store_word(view, index, truth_[index]);
    if (index >= kFirstClientRow && word.state == RowState::Free) free_.push_back(index);
  }
}

Result<RowGrant> RowTable::grant(const Owner& owner) {
  std::uint32_t index = kDaemonRow;
  if (owner.kind != RowKind::Daemon) {
    if (free_.empty()) {
      return Error{Errc::Busy,
                   "all " + std::to_string(view_.row_count - kFirstClientRow) +
                       " rows of the process table are taken; raise capacity.processes"};
    }
    index = free_.front();
    free_.pop_front();
  }
  RowWord word = unpack_row(truth_[index]);
  ++word.generation;
  word.kind = owner.kind;
  word.state = RowState::Live;

  ProcessRow row{};
  row.pid = owner.pid;
  row.uid = owner.uid;
  row.start_time = owner.start_time;
  row.pid_namespace = owner.pid_namespace;
  row.attached_ns = view_.clock.now();
  row.connection = owner.connection;
  const std::size_t length = std::min(owner.name.size(), sizeof row.name - 1);
  for (std::size_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(owner.name[i]);
    row.name[i] = byte < 0x20 || byte == 0x7f ? '?' : owner.name[i];
  }
  store_fields(view_.rows[index], row);
  truth_[index] = pack_row(word);
  store_word(view_, index, truth_[index]);
  return RowGrant{index, word.generation};
}

void RowTable::set_state(RowGrant row, RowState from, RowState to) {
  if (row.index == 0 || row.index >= truth_.size()) return;
  RowWord word = unpack_row(truth_[row.index]);
  if (word.generation != row.generation || word.state != from) return;
  word.state = to;
  truth_[row.index] = pack_row(word);
  store_word(view_, row.index, truth_[row.index]);
  if (to == RowState::Free && row.index >= kFirstClientRow) free_.push_back(row.index);
}

void RowTable::mark_orphan(RowGrant row, std::int64_t due_ns) {
  if (row.index == 0 || row.index >= truth_.size()) return;
  const RowWord word = unpack_row(truth_[row.index]);
  const bool alive = word.state == RowState::Live || word.state == RowState::Orphan;
  if (!alive || word.generation != row.generation) return;
  // relaxed: only the next daemon reads it.
  __atomic_store_n(&view_.rows[row.index].due_ns, due_ns, __ATOMIC_RELAXED);
  set_state(row, RowState::Live, RowState::Orphan);
}

void RowTable::mark_live(RowGrant row) { set_state(row, RowState::Orphan, RowState::Live); }

void RowTable::mark_dead(RowGrant row) {
  set_state(row, RowState::Live, RowState::Dead);
  set_state(row, RowState::Orphan, RowState::Dead);
}

void RowTable::free(RowGrant row) { set_state(row, RowState::Dead, RowState::Free); }

std::vector<RowInfo> RowTable::in_use() const {
  std::vector<RowInfo> out;
  for (std::uint32_t index = kDaemonRow; index < truth_.size(); ++index) {
    const RowWord word = unpack_row(truth_[index]);
    if (word.state == RowState::Free) continue;
    RowInfo info;
    read_row(view_, index, info);
    info.word = word;   // the truth, whatever somebody wrote into the shared row
    out.push_back(info);
  }
  return out;
}

std::uint32_t RowTable::live_count() const {
  const auto alive = [](std::uint64_t word) {
    const RowState state = unpack_row(word).state;
    return state == RowState::Live || state == RowState::Orphan;
  };
  return static_cast<std::uint32_t>(std::count_if(truth_.begin(), truth_.end(), alive));
}

std::uint64_t process_start_time(std::uint32_t pid) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  // Field 2 is the command in parentheses and may hold anything; the last ')' ends it.
  const char* at = std::strrchr(text, ')');
  constexpr int kFieldsToSkip = 20;   // 3..22 begin after as many blanks
  for (int field = 0; at != nullptr && field < kFieldsToSkip; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

std::uint64_t pid_namespace_of(std::uint32_t pid) noexcept {
  if (pid == 0) return namespace_inode("/proc/self/ns/pid");
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%u/ns/pid", pid);
  return namespace_inode(path);
}

std::uint64_t time_namespace_of_self() noexcept { return namespace_inode("/proc/self/ns/time"); }

}  // namespace cutwater::shm
