// SPDX-License-Identifier: Apache-2.0
#include "acts/act_book.hpp"

#include <algorithm>

namespace cutwater::server {

std::string_view name_of(Saving saving) noexcept {
  switch (saving) {
    case Saving::Saved: return "saved";
    case Saving::Pending: return "pending";
    case Saving::Failed: return "failed";
  }
  return "?";
}

void ActBook::replay(const JournalEntry& entry) {
  if (const auto* act = std::get_if<Act>(&entry)) {
    last_id_ = std::max(last_id_, act->id);
    if (is_momentary(act->kind)) {
      return remember(*act, {act->id, EndKind::Done, act->at_s, act->who});
    }
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

JournalEntry ActBook::moment(Act act) {
  act.id = ++last_id_;
  remember(act, {act.id, EndKind::Done, act.at_s, act.who});
  return act;
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

const Act* ActBook::replacer(const Act& act) const {
  const Act* found = nullptr;
  const auto look = [&](const Act& one) {
    const bool same = one.kind == act.kind && subject_of(one) == subject_of(act) &&
                      one.key == act.key && one.id > act.id;
    if (same && (found == nullptr || one.id < found->id)) found = &one;
  };
  for (const auto& [id, one] : standing_) look(one);
  for (const EndedAct& ended : ended_) look(ended.act);
  return found;
}

const EndedAct* ActBook::last_ended(std::string_view breaker) const {
  for (auto at = ended_.rbegin(); at != ended_.rend(); ++at) {
    if (is_about_breaker(at->act.kind) && at->act.breaker == breaker) return &*at;
  }
  return nullptr;
}

void ActBook::close(std::map<std::uint64_t, Act>::iterator at, ActEnd end) {
  Act act = std::move(at->second);
  standing_.erase(at);
  remember(std::move(act), std::move(end));
}

void ActBook::remember(Act act, ActEnd end) {
  ended_.push_back({std::move(act), std::move(end)});
  if (ended_.size() <= kMaxEnded) return;
  unsaved_.erase(ended_.front().act.id);
  ended_.pop_front();
}

void ActBook::set_saving(const std::vector<std::uint64_t>& ids, Saving saving) {
  for (const std::uint64_t id : ids) {
    const auto about = [id](const EndedAct& ended) {
      return ended.act.id == id && ended.end.how != EndKind::Replaced;
    };
    const bool known =
        standing_.contains(id) || std::any_of(ended_.rbegin(), ended_.rend(), about);
    if (saving == Saving::Saved || !known) {
      unsaved_.erase(id);
    } else {
      unsaved_[id] = saving;
    }
  }
}

void ActBook::all_saved_anew() {
  std::erase_if(unsaved_, [](const auto& entry) { return entry.second == Saving::Failed; });
}

Saving ActBook::saving(std::uint64_t id) const {
  const auto at = unsaved_.find(id);
  return at == unsaved_.end() ? Saving::Saved : at->second;
}

std::vector<JournalEntry> ActBook::entries() const {
  std::vector<JournalEntry> out;
  for (const EndedAct& ended : ended_) {
    out.emplace_back(ended.act);
    if (!is_momentary(ended.act.kind)) out.emplace_back(ended.end);
  }
  for (const auto& [id, act] : standing_) out.emplace_back(act);
  return out;
}

}  // namespace cutwater::server
