// SPDX-License-Identifier: Apache-2.0
#include "row_book.hpp"

#include <algorithm>

#include "base/guard.hpp"

namespace cutwater::server {

namespace {
RowAction act(RowAction::Kind kind, const RowHolder& holder) {
  return {kind, holder.row, holder.pid};
}
}  // namespace

void RowBook::attached(const RowHolder& holder) {
  entries_[holder.row.index] = {holder};
  if (holder.connection != 0) by_connection_[holder.connection] = holder.row.index;
}

RowActions RowBook::adopted(const RowHolder& holder, std::uint64_t now_ns,
                            std::optional<std::uint64_t> left_ns) {
  RowActions out;
  const std::uint64_t left = std::min(left_ns.value_or(kOrphanGraceNs), kOrphanGraceNs);
  const bool due = left_ns.has_value() || !holder.watched;
  entries_[holder.row.index] = {holder, true, now_ns + left, due, false};
  if (holder.asks && !left_ns) {
    out.push_back(act(due ? RowAction::Kind::Due : RowAction::Kind::Orphan, holder));
  }
  return out;
}

RowActions RowBook::came_back(shm::RowGrant row, std::uint64_t now_ns) {
  RowActions out;
  const auto found = entries_.find(row.index);
  if (found == entries_.end()) return out;
  Entry& entry = found->second;
  const bool former = entry.orphan && entry.holder.asks && !entry.due &&
                      entry.holder.row.generation == row.generation;
  if (!former) return out;
  entry.due = true;
  entry.look_ns = now_ns + kOrphanGraceNs;
  out.push_back(act(RowAction::Kind::Due, entry.holder));
  return out;
}

void RowBook::memory_moved() {
  for (auto& [row, entry] : entries_) entry.moved = !entry.holder.asks;
}

std::optional<shm::RowGrant> RowBook::offered(std::uint32_t pid, std::uint64_t start_time,
                                              std::optional<shm::RowGrant> token,
                                              std::uint64_t connection, RowActions& out) {
  const auto is_its_own = [&](const Entry& entry) {
    const bool free = (entry.orphan && entry.holder.connection == 0) || (entry.moved && token);
    return free && !entry.holder.asks && entry.holder.pid == pid &&
           entry.holder.start_time == start_time && pid != 0;
  };
  auto found = entries_.end();
  if (token) {
    found = entries_.find(token->index);
    if (found != entries_.end() && (found->second.holder.row.generation != token->generation ||
                                    !is_its_own(found->second))) {
      found = entries_.end();
    }
  } else {
    for (auto it = entries_.begin(); it != entries_.end() && found == entries_.end(); ++it) {
      if (is_its_own(it->second)) found = it;
    }
  }
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  entry.orphan = entry.moved = entry.due = false;
  if (entry.holder.connection != 0) by_connection_.erase(entry.holder.connection);
  entry.holder.connection = connection;
  by_connection_[connection] = found->first;
  out.push_back(act(RowAction::Kind::Live, entry.holder));
  return entry.holder.row;
}

bool RowBook::taken_over(shm::RowGrant row, std::uint64_t connection, RowActions& out) {
  const auto found = entries_.find(row.index);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  const bool same = entry.orphan && entry.holder.asks &&
                    entry.holder.row.generation == row.generation;
  if (!same) return false;
  entry.orphan = entry.due = false;
  entry.holder.connection = connection;
  by_connection_[connection] = found->first;
  out.push_back(act(RowAction::Kind::Live, entry.holder));
  return true;
}

RowActions RowBook::connection_ended(std::uint64_t connection, bool said_bye,
                                     std::uint64_t now_ns, bool ours) {
  RowActions out;
  const auto known = by_connection_.find(connection);
  if (known == by_connection_.end()) return out;
  const auto found = entries_.find(known->second);
  by_connection_.erase(known);
  if (found == entries_.end()) return out;
  Entry& entry = found->second;
  entry.holder.connection = 0;
  const bool may_live = entry.holder.watched && guarded(Guard::ReapOnPidfdOnly);
  if (said_bye || (!may_live && !entry.holder.asks)) {
    bury(found, out);
    return out;
  }
  entry.orphan = true;
  entry.look_ns = now_ns + kOrphanGraceNs;
  entry.due = entry.holder.asks && !(ours && entry.holder.watched);
  out.push_back(act(entry.due ? RowAction::Kind::Due : RowAction::Kind::Orphan, entry.holder));
  return out;
}

RowActions RowBook::process_ended(std::uint32_t row) {
  RowActions out;
  const auto found = entries_.find(row);
  if (found != entries_.end()) bury(found, out);
  return out;
}

RowActions RowBook::looked(shm::RowGrant row, bool gone, std::uint64_t now_ns) {
  RowActions out;
  const auto found = entries_.find(row.index);
  if (found == entries_.end() || !found->second.orphan) return out;
  if (found->second.holder.row.generation != row.generation) return out;
  if (gone) bury(found, out);
  else found->second.look_ns = now_ns + kOrphanGraceNs;
  return out;
}

RowActions RowBook::tick(std::uint64_t now_ns) {
  RowActions out;
  std::size_t looks = 0;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto at = it++;
    Entry& entry = at->second;
    if (!entry.orphan || now_ns < entry.look_ns) continue;
    if (!entry.holder.watched || entry.due) {
      bury(at, out);
    } else if (!entry.moved && looks < kMaxLooks) {
      ++looks;
      entry.look_ns = now_ns + kOrphanGraceNs;
      out.push_back(act(entry.holder.asks ? RowAction::Kind::LookAtCells
                                          : RowAction::Kind::LookAtMaps, entry.holder));
    }
  }
  return out;
}

const RowHolder* RowBook::find(std::uint32_t row) const {
  const auto found = entries_.find(row);
  return found == entries_.end() ? nullptr : &found->second.holder;
}

bool RowBook::is_orphan(std::uint32_t row) const {
  const auto found = entries_.find(row);
  return found != entries_.end() && found->second.orphan;
}

void RowBook::bury(std::map<std::uint32_t, Entry>::iterator at, RowActions& out) {
  out.push_back(act(RowAction::Kind::Reap, at->second.holder));
  if (at->second.holder.connection != 0) by_connection_.erase(at->second.holder.connection);
  entries_.erase(at);
}

}  // namespace cutwater::server
