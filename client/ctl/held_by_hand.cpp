// SPDX-License-Identifier: Apache-2.0
#include "ctl/held_by_hand.hpp"

#include <set>

#include "ctl/print.hpp"
#include "ctl/text.hpp"
#include "rule/breaker_pattern.hpp"

namespace cutwater::ctl {
namespace {

std::string undo_words(const std::string& id) {
  return "; `cutwaterctl journal undo " + id + "` ends it";
}

/// `shadow` that stands against the file's mode; empty when they agree.
std::string mode_line(const wire::Value& row, const rule::LimitSettings& limit) {
  const bool on = truth_at(row, "on");
  if (on == (limit.mode == rule::Mode::Shadow)) return {};
  const std::string id = std::to_string(number_at(row, "id"));
  return "limit " + escape(limit.name) + ": act " + id + " by hand (" +
         (on ? "shadow" : "enforced") + ") holds against mode: " + (on ? "enforce" : "shadow") +
         " of the file" + undo_words(id);
}

/// What the file says of one key.
std::string file_words(const rule::OverrideSettings& one) {
  if (one.kind == rule::LimitKind::Blocked) return "banned";
  if (one.kind == rule::LimitKind::Unlimited) return "unlimited";
  std::string out;
  for (const rule::WindowSettings& window : one.windows) {
    out += out.empty() ? "" : ", ";
    out += window.kind == rule::WindowKind::Rate
               ? rate_text(window.rate_count, window.rate_period_ns)
               : std::to_string(window.rate_count) + " by the calendar";
  }
  return out.empty() ? "its own rule" : out;
}

/// The act that holds for this key of the file; empty when none does.
std::string key_line(Look& look, const rule::LimitSettings& limit,
                     const rule::OverrideSettings& one) {
  const auto row = look.read_limit(limit.name, one.key);
  const wire::Value* act = row ? row->find("act") : nullptr;
  if (act == nullptr || text_at(*act, "state") != "stands") return {};
  const std::string id = std::to_string(number_at(*act, "id"));
  return "limit " + escape(limit.name) + ", key " + escape_short(one.key) + ": " +
         escape_short(text_at(*act, "do")) + " by hand (act " + id + ") holds, not what the file " +
         "lists for it (" + file_words(one) + ")" + undo_words(id);
}

/// The act that holds for a key of which the file has only a pattern, the longest that stands for
/// it; empty when none does, or when the daemon does not show the key.
std::string pattern_line(const wire::Value& row, const rule::LimitSettings& limit) {
  const auto key = key_argument(text_at(row, "key"));
  if (!key) return {};
  const rule::OverrideSettings* pattern = nullptr;
  for (const rule::OverrideSettings& one : limit.overrides) {
    if (!one.pattern && one.key == *key) return {};        // key_line() says it
    if (!one.pattern || !rule::pattern_stands_for(one.key, *key)) continue;
    if (pattern == nullptr || one.key.size() > pattern->key.size()) pattern = &one;
  }
  if (pattern == nullptr) return {};
  const std::string id = std::to_string(number_at(row, "id"));
  return "limit " + escape(limit.name) + ", key " + escape_short(text_at(row, "key")) + ": " +
         escape_short(text_at(row, "do")) + " by hand (act " + id + ") holds, not what the file " +
         "lists for " + escape(pattern->key) + " (" + file_words(*pattern) + ")" + undo_words(id);
}

}  // namespace

std::vector<std::string> held_by_hand(Look& look, const config::Config& next) {
  std::vector<std::string> out;
  const auto journal = look.read("journal");
  if (!journal) return out;
  std::set<std::string> with_keys;
  for (const wire::Value& row : *journal) {
    if (text_at(row, "state") != "stands") continue;
    const rule::LimitSettings* limit = next.find_limit(text_at(row, "limit"));
    if (limit == nullptr) continue;
    if (row.find("on") == nullptr) {
      with_keys.insert(limit->name);
      if (std::string line = pattern_line(row, *limit); !line.empty()) {
        out.push_back(std::move(line));
      }
      continue;
    }
    if (std::string line = mode_line(row, *limit); !line.empty()) out.push_back(std::move(line));
  }
  std::size_t asked = 0, left_out = 0;
  for (const std::string& name : with_keys) {
    const rule::LimitSettings& limit = *next.find_limit(name);
    for (const rule::OverrideSettings& one : limit.overrides) {
      if (one.pattern) continue;
      if (++asked > kKeysLookedUp) {
        ++left_out;
        continue;
      }
      if (std::string line = key_line(look, limit, one); !line.empty()) {
        out.push_back(std::move(line));
      }
    }
  }
  if (left_out > 0) {
    out.push_back(std::to_string(left_out) +
                  " further keys of the file were not compared with the acts by hand: "
                  "`cutwaterctl journal list` shows those that stand");
  }
  return out;
}

}  // namespace cutwater::ctl
