// SPDX-License-Identifier: Apache-2.0
#include "config/diff.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "config/problem.hpp"
#include "config/schema.hpp"
#include "config/words_of_change.hpp"

namespace cutwater::config {
namespace {

char reload_letter(std::string_view path) {
  for (const Key& key : schema()) {
    if (!section_of(key.block).empty()) continue;
    const bool here = path.size() == key.block.size() + 1 + key.name.size() &&
                      path.starts_with(key.block) && path.ends_with(key.name);
    if (!here) continue;
    switch (key.reload) {
      case Reload::Live: return 'L';
      case Reload::Start: return 'S';
      case Reload::Capacity: return 'C';
    }
  }
  return 'L';
}

std::vector<Change> changes_of(const Config& running, const Config& next) {
  std::map<std::string_view, const Value*> before;
  for (const Value& value : running.values) before.emplace(value.path, &value);
  std::vector<Change> changes;
  for (const Value& value : next.values) {
    const auto found = before.find(value.path);
    Change change{.path = value.path, .before = {}, .after = value.text, .before_origin = {},
                  .after_origin = origin_text(value.place, next.file_name),
                  .reload = reload_letter(value.path)};
    if (found != before.end()) {
      const Value& old = *found->second;
      before.erase(found);
      if (old.text == value.text) continue;
      change.before = old.text;
      change.before_origin = origin_text(old.place, running.file_name);
    }
    changes.push_back(std::move(change));
  }
  for (const Value& value : running.values) {
    if (!before.contains(value.path)) continue;
    changes.push_back({.path = value.path, .before = value.text, .after = {},
                       .before_origin = origin_text(value.place, running.file_name),
                       .after_origin = {}, .reload = reload_letter(value.path)});
  }
  return changes;
}

std::vector<LimitChange> limits_of(const Config& running, const Config& next,
                                   const KeysInDebt& keys_in_debt) {
  std::vector<LimitChange> found;
  for (const rule::LimitSettings& limit : next.limits) {
    const rule::LimitSettings* before = running.find_limit(limit.name);
    LimitChange change{.name = limit.name, .words = words_of_change(before, &limit),
                       .touched = {}};
    if (change.words.empty()) continue;
    if (before != nullptr && keys_in_debt) change.touched = keys_in_debt(limit.name);
    found.push_back(std::move(change));
  }
  for (const rule::LimitSettings& limit : running.limits) {
    if (next.find_limit(limit.name) != nullptr) continue;
    LimitChange change{.name = limit.name, .words = words_of_change(&limit, nullptr),
                       .touched = {}};
    if (keys_in_debt) change.touched = keys_in_debt(limit.name);
    found.push_back(std::move(change));
  }
  return found;
}

}  // namespace

Diff diff(const Config& running, const Config& next, const Capacity& reserved,
          const KeysInDebt& keys_in_debt) {
  return {.changes = changes_of(running, next),
          .limits = limits_of(running, next, keys_in_debt),
          .refused = reload_errors(running, next, reserved),
          .hash_before = running.hash,
          .hash_after = next.hash};
}

namespace {

/// What the letters in front mean, of those that occur.
std::string legend(const std::vector<Change>& changes) {
  std::string out;
  for (const std::string_view words :
       {"L: live, taken over by a reload",
        "C: capacity, taken over by a reload up to what was reserved at start",
        "S: read at start, needs a restart"}) {
    const bool occurs = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
      return change.reload == words.front();
    });
    if (occurs) out += (out.empty() ? "(" : "; ") + std::string(words);
  }
  return out + ")\n";
}

/// Written by nobody: what a block has of a preset or by default when it comes or goes.
bool is_of_itself(const Change& change) {
  if (!change.before.empty() && !change.after.empty()) return false;
  const std::string& origin = change.before.empty() ? change.after_origin : change.before_origin;
  return origin == "default" || origin.starts_with("preset ");
}

/// `breakers.bank: and 30 settings from default, 5 from preset hystrix`, a line for each block.
std::string unwritten(const std::vector<Change>& changes) {
  std::map<std::string, std::map<std::string, std::size_t>> blocks;
  for (const Change& change : changes) {
    if (!is_of_itself(change)) continue;
    const bool added = change.before.empty();
    ++blocks[change.path.substr(0, change.path.rfind('.'))]
            [added ? "from " + change.after_origin : "that were from " + change.before_origin];
  }
  std::string out;
  for (const auto& [block, origins] : blocks) {
    out += "   " + block + ": and ";
    std::string list;
    for (const auto& [origin, count] : origins) {
      list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + origin;
    }
    out += list + " (with -o json each)\n";
  }
  return out;
}

}  // namespace

std::string Diff::text() const {
  if (changes.empty()) return "no change\n";
  std::string out;
  for (const Change& change : changes) {
    if (is_of_itself(change)) continue;
    const std::string before = change.before.empty() ? "(not there)" : change.before;
    const std::string after = change.after.empty() ? "(gone)" : change.after;
    out += std::string(1, change.reload) + "  " + change.path + ": " + before + " -> " + after +
           "  # ";
    out += change.after_origin.empty() ? "was " + change.before_origin : change.after_origin;
    out += "\n";
  }
  out += unwritten(changes) + legend(changes);
  for (const LimitChange& limit : limits) {
    out += "limit " + limit.name;
    if (limit.touched) {
      out += ", " + std::to_string(*limit.touched) +
             (*limit.touched == 1 ? " key in debt" : " keys in debt");
    }
    out += ":\n";
    for (const std::string& sentence : limit.words) out += "  " + sentence + "\n";
  }
  for (const Finding& finding : refused) out += finding.line() + "\n";
  if (refused.empty()) return out + "a reload takes this over\n";
  return out + "a reload is refused as a whole; restart to take this over\n";
}

}  // namespace cutwater::config
