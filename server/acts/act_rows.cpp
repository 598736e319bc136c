// SPDX-License-Identifier: Apache-2.0
#include "acts/act_rows.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "config/key_text.hpp"
#include "rule/breaker_pattern.hpp"
#include "shm/limit/key_hash.hpp"

namespace cutwater::server {

namespace {

const rule::LimitSettings* find(const std::vector<rule::LimitSettings>& limits,
                                std::string_view name) {
  const auto named = [&](const rule::LimitSettings& limit) { return limit.name == name; };
  const auto at = std::find_if(limits.begin(), limits.end(), named);
  return at == limits.end() ? nullptr : &*at;
}

const char* word_of(rule::LimitKind kind) {
  switch (kind) {
    case rule::LimitKind::Bucket: return "bucket";
    case rule::LimitKind::Unlimited: return "unlimited";
    case rule::LimitKind::Blocked: return "blocked";
  }
  return "?";
}

void set_times(wire::Value& row, const Act& act) {
  row.set("at_s", act.at_s);
  row.set("until_s", act.until_s);
  row.set("who", act.who);
  row.set("note", act.note);
}

wire::Value row_of(const shm::View& view, const Act& act,
                   const std::vector<rule::LimitSettings>& limits) {
  wire::Value row;
  row.set("id", act.id);
  row.set("do", name_of(act.kind));
  if (is_about_breaker(act.kind)) {
    row.set("breaker", act.breaker);
    if (act.kind == ActKind::Breaker) row.set("to", rule::name_of(act.state));
    set_times(row, act);
    return row;
  }
  row.set("limit", act.limit);
  if (act.kind == ActKind::Shadow) {
    row.set("on", act.shadow);
  } else {
    // Of a limit that is gone nobody says how its keys may be shown: hashed, as by default.
    const rule::LimitSettings* limit = find(limits, act.limit);
    rule::LimitSettings gone;
    gone.name = act.limit;
    row.set("key", shown_key(view, limit == nullptr ? gone : *limit, act.key));
  }
  if (act.kind == ActKind::Override && act.rate_count == 0) row.set("unlimited", true);
  if (act.kind == ActKind::Override && act.rate_count != 0) {
    row.set("count", act.rate_count);
    row.set("period_ns", act.rate_period_ns);
    row.set("burst", act.burst);
  }
  set_times(row, act);
  return row;
}

/// That it stands, and whether the disk knows.
void set_standing(wire::Value& row, const ActBook& book, const Act& act) {
  row.set("state", "stands");
  row.set("saved", name_of(book.saving(act.id)));
}

/// How it ended, and whether the disk knows; of a replaced one: whether it knows what replaced it.
void set_end(wire::Value& row, const ActBook& book, const EndedAct& ended) {
  const bool replaced = ended.end.how == EndKind::Replaced;
  const Act* by = replaced ? book.replacer(ended.act) : nullptr;
  row.set("state", name_of(ended.end.how));
  row.set("saved", name_of(book.saving(by == nullptr ? ended.act.id : by->id)));
  row.set("ended_s", ended.end.at_s);
  row.set("ended_by", ended.end.who);
  if (by != nullptr) row.set("replaced_by", by->id);
}

}  // namespace

std::string shown_key(const shm::View& view, const rule::LimitSettings& limit,
                      std::string_view key) {
  if (limit.show_keys == rule::ShowKeys::Hidden) return {};
  if (limit.show_keys == rule::ShowKeys::Hashed) {
    const auto secret = shm::make_limit_secret(view.secret, limit.name);
    return fmt::format("#{:016x}", shm::hash_key(secret, key).lo);
  }
  return config::spell_key(key);
}

rows::Rows journal_rows(const shm::View& view, const ActBook& book,
                        const std::vector<rule::LimitSettings>& limits) {
  std::map<std::uint64_t, wire::Value> by_id;
  for (const auto& [id, act] : book.standing()) {
    wire::Value row = row_of(view, act, limits);
    set_standing(row, book, act);
    by_id.emplace(id, std::move(row));
  }
  for (const EndedAct& ended : book.ended()) {
    wire::Value row = row_of(view, ended.act, limits);
    set_end(row, book, ended);
    by_id.emplace(ended.act.id, std::move(row));
  }
  rows::Rows out;
  for (auto& [id, row] : by_id) out.push_back(std::move(row));
  return out;
}

wire::Value breaker_act_row(const shm::View& view, const ActBook& book, std::string_view breaker) {
  if (const Act* act = book.find(ActKind::Breaker, breaker, {})) {
    wire::Value row = row_of(view, *act, {});
    set_standing(row, book, *act);
    return row;
  }
  const EndedAct* ended = book.last_ended(breaker);
  if (ended == nullptr) return {};
  wire::Value row = row_of(view, ended->act, {});
  set_end(row, book, *ended);
  return row;
}

wire::Value key_act_row(const shm::View& view, const ActBook& book,
                        const std::vector<rule::LimitSettings>& limits, std::string_view limit,
                        std::string_view key) {
  for (const ActKind kind : {ActKind::Ban, ActKind::Override}) {
    if (const Act* act = book.find(kind, limit, key)) {
      wire::Value row = row_of(view, *act, limits);
      set_standing(row, book, *act);
      return row;
    }
  }
  const rule::LimitSettings* settings = find(limits, limit);
  if (settings == nullptr) return {};
  for (const rule::OverrideSettings& one : settings->overrides) {
    if (one.pattern || one.key != key) continue;
    wire::Value row;
    row.set("do", one.kind == rule::LimitKind::Blocked ? "ban" : "override");
    row.set("state", "configuration");
    row.set("until_s", one.until_unix_s);
    row.set("note", one.note);
    return row;
  }
  return {};
}

wire::Value::Array acts_over_file(const ActBook& book,
                                  const std::vector<rule::LimitSettings>& limits) {
  std::set<std::string_view> named;
  for (const auto& [id, act] : book.standing()) named.insert(act.limit);
  std::set<std::pair<std::string_view, std::string_view>> keys;
  std::map<std::string_view, rule::Mode> modes;
  std::map<std::string_view, std::vector<std::string_view>> patterns;
  for (const rule::LimitSettings& limit : limits) {
    if (!named.contains(limit.name)) continue;
    modes[limit.name] = limit.mode;
    for (const rule::OverrideSettings& one : limit.overrides) {
      if (one.pattern) patterns[limit.name].push_back(one.key);
      else keys.insert({limit.name, one.key});
    }
  }
  const auto of_pattern = [&](const Act& act) {
    const auto found = patterns.find(act.limit);
    return found != patterns.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&](std::string_view pattern) {
             return rule::pattern_stands_for(pattern, act.key);
           });
  };
  wire::Value::Array out;
  std::size_t found = 0;
  for (const auto& [id, act] : book.standing()) {
    const auto mode = modes.find(act.limit);
    if (mode == modes.end()) continue;
    const bool shadow = act.kind == ActKind::Shadow;
    const bool own_key = !shadow && keys.contains({act.limit, act.key});
    const bool beats = shadow ? act.shadow != (mode->second == rule::Mode::Shadow)
                              : own_key || of_pattern(act);
    if (!beats || ++found > kMostOverFile) continue;
    out.emplace_back(fmt::format("limit {}: {} by act {}, the configuration {}", act.limit,
                                 shadow ? (act.shadow ? "shadow" : "enforced") : name_of(act.kind),
                                 id,
                                 shadow ? (act.shadow ? "enforces it" : "says mode: shadow")
                                        : own_key ? "says something else of this key"
                                                  : "has a pattern for this key"));
  }
  if (found > kMostOverFile) out.emplace_back(fmt::format("{} more", found - kMostOverFile));
  return out;
}

rows::Rows override_rows(const shm::View& view, const ActBook& book,
                         const std::vector<rule::LimitSettings>& effective) {
  // A ban beats an override of the same key.
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> acts;
  for (const auto& [id, act] : book.standing()) {
    if (act.kind == ActKind::Override) acts.try_emplace({act.limit, act.key}, id);
    if (act.kind == ActKind::Ban) acts[{act.limit, act.key}] = id;
  }
  rows::Rows out;
  for (const rule::LimitSettings& limit : effective) {
    for (const rule::OverrideSettings& one : limit.overrides) {
      wire::Value row;
      row.set("limit", limit.name);
      row.set("key", one.pattern ? one.key : shown_key(view, limit, one.key));
      row.set("pattern", one.pattern);
      row.set("kind", word_of(one.kind));
      wire::Value::Array windows;
      for (const rule::WindowSettings& window : one.windows) {
        windows.push_back(wire::Value::array({window.rate_count, window.rate_period_ns,
                                              window.burst}));
      }
      row.set("windows", std::move(windows));
      row.set("until_s", one.until_unix_s);
      row.set("note", one.note);
      const auto by = acts.find({limit.name, one.key});
      const bool by_act = !one.pattern && by != acts.end();
      row.set("origin", by_act ? "act" : "configuration");
      if (by_act) row.set("act", by->second);
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace cutwater::server
