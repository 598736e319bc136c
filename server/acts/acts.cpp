// SPDX-License-Identifier: Apache-2.0
#include "acts/acts.hpp"

#include <algorithm>

#include "rows/segment_rows.hpp"
#include "shm/limit/admit.hpp"

namespace cutwater::server {

namespace {

constexpr std::uint64_t kNanos = 1'000'000'000;

rule::OverrideSettings override_of(const Act& act) {
  rule::OverrideSettings out;
  out.key = act.key;
  out.until_unix_s = act.until_s;
  out.note = act.note;
  if (act.kind == ActKind::Ban) {
    out.kind = rule::LimitKind::Blocked;
  } else if (act.rate_count == 0) {
    out.kind = rule::LimitKind::Unlimited;
  } else {
    out.windows = {rule::rate_window(act.rate_count, act.rate_period_ns, act.burst)};
  }
  return out;
}

/// Where a key's override stands in each limit: limits and acts may both be many.
using Places = std::map<std::pair<std::string_view, std::string_view>, std::size_t>;

Places places_of(const std::vector<rule::LimitSettings>& limits,
                 const std::map<std::uint64_t, Act>& standing) {
  std::set<std::string_view> named;
  for (const auto& [id, act] : standing) named.insert(act.limit);
  Places out;
  for (const rule::LimitSettings& limit : limits) {
    if (!named.contains(limit.name)) continue;
    for (std::size_t i = 0; i < limit.overrides.size(); ++i) {
      if (!limit.overrides[i].pattern) out[{limit.name, limit.overrides[i].key}] = i;
    }
  }
  return out;
}

std::string time_text(std::uint64_t for_ns) {
  if (for_ns == 0) return "until undone";
  return fmt::format("for {} s", (for_ns + kNanos - 1) / kNanos);
}

}  // namespace

std::vector<rule::LimitSettings> with_acts(const std::vector<rule::LimitSettings>& limits,
                                           const std::map<std::uint64_t, Act>& standing,
                                           const std::set<std::uint64_t>& placed) {
  std::vector<rule::LimitSettings> out = limits;
  if (standing.empty()) return out;
  std::map<std::string_view, rule::LimitSettings*> by_name;
  for (rule::LimitSettings& limit : out) by_name[limit.name] = &limit;
  Places places = places_of(limits, standing);
  // A ban beats an override of the same key, whichever came first.
  for (const bool bans : {false, true}) {
    for (const auto& [id, act] : standing) {
      const auto found = by_name.find(act.limit);
      if (found == by_name.end() || (act.kind == ActKind::Ban) != bans) continue;
      rule::LimitSettings& limit = *found->second;
      if (act.kind == ActKind::Shadow) {
        limit.mode = act.shadow ? rule::Mode::Shadow : rule::Mode::Enforce;
        continue;
      }
      if (placed.contains(id)) continue;
      const auto [place, is_new] = places.try_emplace({act.limit, act.key},
                                                      limit.overrides.size());
      if (is_new) limit.overrides.push_back(override_of(act));
      else limit.overrides[place->second] = override_of(act);
    }
  }
  return out;
}

Acts::Acts(Journal::Opened opened, Log& log) : log_(log), journal_(std::move(opened.journal)) {
  for (const std::string& remark : opened.remarks) log_.error("journal: {}", remark);
  for (const JournalEntry& entry : opened.entries) book_.replay(entry);
  if (!book_.standing().empty()) {
    log_.info("journal {}: {} manual acts stand", journal_->path(), book_.standing().size());
  }
}

void Acts::begin(Memory& memory, const Running& running, Publish publish,
                 std::function<void()> announced) {
  memory_ = &memory;
  running_ = &running;
  publish_ = std::move(publish);
  announced_ = std::move(announced);
  put_bans();
  look_at_breakers();
}

/// Before the first publication nothing is known to be placed, so timed bans are overrides then;
/// here they move to the table where they find a place.
void Acts::put_bans() {
  placed_.clear();
  for (const auto& [id, act] : book_.standing()) {
    if (act.kind == ActKind::Ban && act.until_s != 0 && place_ban(act)) placed_.insert(id);
  }
}

/// False: no such limit now, or no place for the entry.
bool Acts::place_ban(const Act& act) {
  const shm::View& view = memory_->view();
  const shm::LimitHandle limit = shm::resolve(view, act.limit);
  const std::uint64_t now_s = memory_->unix_now_s();
  if (limit.ref.index == shm::kNoLimit || act.until_s <= now_s) return false;
  const std::int64_t now = view.clock.now();
  const auto life = static_cast<std::int64_t>((act.until_s - now_s) * kNanos);
  // Whatever end the entry has: a ban for a shorter time than the one it replaces ends earlier.
  const shm::BanAnswer done =
      shm::ban(view, limit.ref, shm::hash_key(limit.secret, act.key), now + life);
  if (done.announce) announce();
  return done.outcome == shm::BanOutcome::Done;
}

/// What the mode of the limit makes of an act: a ban or an override of a limit that refuses nobody
/// does nothing, and a mode by hand holds against the file's.
std::string Acts::shadow_text(const Act& act) const {
  if (act.kind == ActKind::Shadow) {
    const rule::LimitSettings* file = running_->config.find_limit(act.limit);
    if (file == nullptr || file->mode != rule::Mode::Shadow) return {};
    return act.shadow ? "; the configuration says mode: shadow already"
                      : "; this beats mode: shadow of the configuration, reloads too";
  }
  for (const rule::LimitSettings& limit : memory_->publisher().limits()) {
    if (limit.name != act.limit || limit.mode != rule::Mode::Shadow) continue;
    return "; NO EFFECT now: the limit is in shadow mode, the key is let through and counted";
  }
  return {};
}

void Acts::carry_out(Act act, std::uint64_t for_ns, Done done) {
  if (!known_limit(act.limit)) {
    const auto row = rows::limit_row(memory_->view(), act.limit, std::nullopt, 1);
    return done({wire::kSteerNoSuchName, row ? "the limit was removed just now"
                                             : row.error().text()});
  }
  const bool off = act.kind == ActKind::Shadow && !act.shadow;
  if (off && running_->config.find_limit(act.limit)->mode == rule::Mode::Enforce) {
    return end_shadow(act, std::move(done));
  }
  act.at_s = memory_->unix_now_s();
  act.until_s = for_ns == 0 ? 0 : act.at_s + (for_ns + kNanos - 1) / kNanos;
  const std::string what(off ? "enforce" : name_of(act.kind));
  std::string text = fmt::format("{} {}{}", off ? "enforced" : what, time_text(for_ns),
                                 shadow_text(act));
  const Act* former = book_.find(act.kind, act.limit, act.key);
  const bool published_before = former != nullptr && !placed_.contains(former->id);
  const bool placeable = act.kind == ActKind::Ban && for_ns != 0 && !published_before;
  if (placeable) {
    // On a copy first: a ban that the book has no room for is not to stay in the table.
    ActBook trial = book_;
    if (auto tried = trial.begin(act); !tried) {
      return done({wire::kSteerNoRoom, tried.error().text()});
    }
  }
  if (placeable && place_ban(act)) {
    if (former != nullptr) placed_.erase(former->id);
    auto entries = book_.begin(act);
    if (!entries) return done({wire::kSteerNoRoom, entries.error().text()});
    placed_.insert(book_.last_id());
    note(act.limit, what);
    return save(*entries, std::move(text), std::move(done));
  }
  publish_then([act](ActBook& book) { return book.begin(act); }, {act.limit, what},
               std::move(text), std::move(done));
}

/// Where the configuration enforces, nothing is left standing.
void Acts::end_shadow(const Act& by, Done done) {
  const Act* standing = book_.find(ActKind::Shadow, by.limit, {});
  if (standing == nullptr) {
    return done({wire::kSteerDone, "nothing to do: the limit is enforced"});
  }
  end_act(*standing, by.who, [done = std::move(done)](ActVerdict verdict) {
    if (verdict.code == wire::kSteerDone) verdict.text = "enforced again: " + verdict.text;
    done(std::move(verdict));
  });
}

void Acts::unban(const std::string& limit, const std::string& key, const std::string& who,
                 Done done) {
  if (const Act* act = book_.find(ActKind::Ban, limit, key)) return end_act(*act, who, done);
  if (!known_limit(limit)) {
    const auto row = rows::limit_row(memory_->view(), limit, std::nullopt, 1);
    return done({wire::kSteerNoSuchName, row ? "the limit was removed just now"
                                             : row.error().text()});
  }
  const rule::LimitSettings* settings = running_->config.find_limit(limit);
  const auto banned = [&](const rule::OverrideSettings& one) {
    return !one.pattern && one.key == key && one.kind == rule::LimitKind::Blocked;
  };
  const auto& overrides = settings->overrides;
  if (std::any_of(overrides.begin(), overrides.end(), banned)) {
    return done({wire::kSteerInvalid, "this key is banned by the configuration (limits." + limit +
                                          ".keys): change it there and reload"});
  }
  const shm::LimitHandle handle = shm::resolve(memory_->view(), limit);
  const bool had_entry = handle.ref.index != shm::kNoLimit &&
                         shm::unban(memory_->view(), handle.ref,
                                    shm::hash_key(handle.secret, key));
  if (had_entry) note(limit, "unban");
  done({wire::kSteerDone, had_entry ? "unbanned" : "nothing to do: the key was not banned"});
}

void Acts::end_override(const std::string& limit, const std::string& key, const std::string& who,
                        Done done) {
  const Act* act = book_.find(ActKind::Override, limit, key);
  if (act != nullptr) return end_act(*act, who, std::move(done));
  if (known_limit(limit)) {
    return done({wire::kSteerDone, "nothing to end: no act overrides this key"});
  }
  const auto row = rows::limit_row(memory_->view(), limit, std::nullopt, 1);
  done({wire::kSteerNoSuchName, row ? "the limit was removed just now" : row.error().text()});
}

void Acts::undo(std::uint64_t id, const std::string& who, Done done) {
  const Act* act = book_.find(id);
  if (act == nullptr) {
    return done({wire::kSteerNoSuchName,
                 fmt::format("no act {} stands; `cutwaterctl journal list` shows those that do",
                             id)});
  }
  end_act(*act, who, std::move(done));
}

void Acts::end_act(const Act& act, const std::string& who, Done done) {
  if (act.kind == ActKind::Breaker) return end_breaker_act(act, who, std::move(done));
  const std::uint64_t id = act.id;
  const std::uint64_t at_s = memory_->unix_now_s();
  const bool enforced = act.kind == ActKind::Shadow && !act.shadow;
  std::string text = fmt::format("{} of act {} undone", enforced ? "enforce" : name_of(act.kind),
                                 id);
  const Note noted{act.limit, fmt::format("undo {}", name_of(act.kind))};
  if (act.kind == ActKind::Ban) {
    const shm::LimitHandle handle = shm::resolve(memory_->view(), act.limit);
    if (handle.ref.index != shm::kNoLimit) {
      static_cast<void>(shm::unban(memory_->view(), handle.ref,
                                   shm::hash_key(handle.secret, act.key)));
    }
  }
  if (placed_.erase(id) != 0) {
    note(noted.limit, noted.what);
    const auto end = book_.end(id, EndKind::Undone, at_s, who);
    return save({*end}, std::move(text), std::move(done));
  }
  publish_then([id, at_s, who](ActBook& book) -> Result<std::vector<JournalEntry>> {
    const auto end = book.end(id, EndKind::Undone, at_s, who);
    if (!end) return Error(Errc::UnknownName, "it was undone by somebody else meanwhile");
    return std::vector<JournalEntry>{*end};
  }, noted, std::move(text), std::move(done));
}

/// The change is tried on a copy of the book; it is the book's only when the rules are published.
void Acts::publish_then(Change change, Note noted, std::string text, Done done) {
  auto fault = std::make_shared<std::string>();
  publish_(
      [this, change, fault] {
        ActBook trial = book_;
        if (auto tried = change(trial); !tried) *fault = tried.error().text();
        return with_acts(running_->config.limits, trial.standing(), placed_);
      },
      [this, change, fault, noted = std::move(noted), text = std::move(text),
       done](const Result<void>& published) {
        if (!published) return done({wire::kSteerInvalid, published.error().text()});
        if (!fault->empty()) return done({wire::kSteerNoRoom, *fault});
        auto entries = change(book_);
        if (!entries) return done({wire::kSteerNoRoom, entries.error().text()});
        if (!noted.what.empty()) note(noted.limit, noted.what);
        save(*entries, text, done);
      });
}

namespace {

std::vector<std::uint64_t> ids_of(const std::vector<JournalEntry>& entries) {
  std::vector<std::uint64_t> out;
  for (const JournalEntry& entry : entries) {
    const Act* act = std::get_if<Act>(&entry);
    out.push_back(act != nullptr ? act->id : std::get<ActEnd>(entry).id);
  }
  return out;
}

/// The one that begins by these entries and stands; 0: none.
std::uint64_t act_begun(const std::vector<JournalEntry>& entries) {
  for (const JournalEntry& entry : entries) {
    const Act* act = std::get_if<Act>(&entry);
    if (act != nullptr && !is_momentary(act->kind)) return act->id;
  }
  return 0;
}

}  // namespace

void Acts::save(const std::vector<JournalEntry>& entries, std::string text, Done done) {
  const std::vector<std::uint64_t> ids = ids_of(entries);
  book_.set_saving(ids, Saving::Pending);
  ActVerdict verdict{wire::kSteerDone, std::move(text), act_begun(entries), wire::kSteerSaved};
  // Whichever comes first answers: the disk, or the end of our patience with it.
  auto answer = std::make_shared<Done>(std::move(done));
  const auto say = [answer](const ActVerdict& said) {
    if (const Done once = std::exchange(*answer, nullptr)) once(said);
  };
  const auto on_disk = [this, ids, verdict, say](const Result<void>& outcome) {
    saved(ids, outcome);
    ActVerdict said = verdict;
    if (!outcome) {
      said.saved = wire::kSteerNotSaved;
      said.text += "; NOT saved (" + outcome.error().text() +
                   "): it may not come back when the daemon starts again";
    }
    say(said);
  };
  journal_->append(entries, on_disk, [verdict, say] {
    ActVerdict said = verdict;
    said.saved = wire::kSteerSavePending;
    said.text += fmt::format("; in force, but the disk of the journal has not answered for {} ms: "
                             "`cutwaterctl journal list` shows when it is saved",
                             Journal::kPatience.count());
    say(said);
  });
  if (journal_->wants_rewrite(book_.standing().size())) write_anew();
}

/// The disk answered. Said in the log when that changes, not for each line.
void Acts::saved(const std::vector<std::uint64_t>& ids, const Result<void>& outcome) {
  book_.set_saving(ids, outcome ? Saving::Saved : Saving::Failed);
  if (outcome || journal_->path().empty()) return;
  if (fault_.empty()) {
    log_.error("journal {}: {}; acts hold and are not saved, tried again every {} s",
               journal_->path(), outcome.error().text(), kRetrySeconds);
    seconds_to_retry_ = kRetrySeconds;
  }
  fault_ = outcome.error().text();
}

void Acts::write_anew() {
  if (std::exchange(writes_anew_, true)) return;
  journal_->rewrite(book_.entries(), [this](const Result<void>& outcome) {
    writes_anew_ = false;
    if (!outcome) {
      if (fault_.empty()) seconds_to_retry_ = kRetrySeconds;
      fault_ = outcome.error().text();
      return;
    }
    book_.all_saved_anew();
    if (fault_.empty()) return;
    log_.info("journal {}: written anew, what could not be saved is", journal_->path());
    fault_.clear();
  });
}

void Acts::tick() {
  const std::vector<JournalEntry> ended = book_.expire(memory_->unix_now_s());
  if (shm::clear_bans(memory_->view())) announce();
  look_at_breakers(kBreakersPerTick);
  if (!fault_.empty() && seconds_to_retry_ > 0 && --seconds_to_retry_ == 0) {
    seconds_to_retry_ = kRetrySeconds;
    write_anew();
  }
  if (ended.empty()) return;
  bool published = false;
  for (const JournalEntry& entry : ended) {
    const std::uint64_t id = std::get<ActEnd>(entry).id;
    if (!was_breaker(id)) published = placed_.erase(id) == 0 || published;
  }
  save(ended, "", [](const ActVerdict&) {});
  if (published) publish_then([](ActBook&) { return std::vector<JournalEntry>{}; }, {}, "",
                              [](const ActVerdict&) {});
}

/// Clients look at their limits again.
void Acts::announce() {
  memory_->publisher().announce();
  announced_();
}

void Acts::note(const std::string& limit, std::string_view what) {
  const shm::LimitRef ref = shm::find_limit(memory_->view(), limit);
  memory_->note(shm::EventKind::ManualAct, ref.index, fmt::format("{} {}", what, limit));
}

bool Acts::known_limit(const std::string& name) const {
  return running_->config.find_limit(name) != nullptr;
}

}  // namespace cutwater::server
