// SPDX-License-Identifier: Apache-2.0
#include "act_book.hpp"

#include <algorithm>

namespace cutwater::server {

void ActBook::replay(const JournalEntry& entry) {
  if (const auto* act = std::get_if<Act>(&entry)) {
    last_id_ = std::max(last_id_, act->id);
    standing_[act->id] = *act;
    return;
  }
  const ActEnd& end = std::get<ActEnd>(entry);
  const auto at = standing_.find(end.id);
  if (at != standing_.end()) close(at, end);
}

Result<std::vector<JournalEntry>> ActBook::begin(Act act) {
  std::vector<JournalEntry> out;
  const Act* former = find(act.kind, subject_of(act), act.key);
  if (former == nullptr && standing_.size() >= kMaxStanding) {
    return Error(Errc::Busy, fmt::format("{} manual acts stand, as many as there may be; undo some "
                                         "(cutwaterctl journal list, journal undo ID)",
                                         standing_.size()));
  }
  if (former != nullptr) {
    if (auto ended = end(former->id, EndKind::Replaced, act.at_s, act.who)) out.push_back(*ended);
  }
  act.id = ++last_id_;
  standing_.emplace(act.id, act);
  out.emplace_back(std::move(act));
  return out;
}

std::optional<ActEnd> ActBook::end(std::uint64_t id, EndKind how, std::uint64_t at_s,
                                   std::string who) {
  const auto at = standing_.find(id);
  if (at == standing_.end()) return std::nullopt;
  ActEnd end{id, how, at_s, std::move(who)};
  close(at, end);
  return end;
}

std::vector<JournalEntry> ActBook::expire(std::uint64_t now_s) {
  std::vector<JournalEntry> out;
  for (auto at = standing_.begin(); at != standing_.end();) {
    const auto here = at++;
    if (here->second.until_s == 0 || here->second.until_s > now_s) continue;
    ActEnd end{here->first, EndKind::Expired, now_s, {}};
    close(here, end);
    out.emplace_back(std::move(end));
  }
  return out;
}

const Act* ActBook::find(std::uint64_t id) const {
  const auto at = standing_.find(id);
  return at == standing_.end() ? nullptr : &at->second;
}

const Act* ActBook::find(ActKind kind, std::string_view subject, std::string_view key) const {
  for (const auto& [id, act] : standing_) {
    if (act.kind == kind && subject_of(act) == subject && act.key == key) return &act;
  }
  return nullptr;
}

const EndedAct* ActBook::last_ended(std::string_view breaker) const {
  for (auto at = ended_.rbegin(); at != ended_.rend(); ++at) {
    if (at->act.kind == ActKind::Breaker && at->act.breaker == breaker) return &*at;
  }
  return nullptr;
}

void ActBook::close(std::map<std::uint64_t, Act>::iterator at, ActEnd end) {
  ended_.push_back({std::move(at->second), std::move(end)});
  standing_.erase(at);
  if (ended_.size() > kMaxEnded) ended_.pop_front();
}

}  // namespace cutwater::server
