// SPDX-License-Identifier: Apache-2.0
#include "ctl/explain.hpp"

#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

std::string tokens(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

/// The window a decision is about, by its number among those that judge the key: an override's own
/// stand in the answer. Empty when there is only one.
std::string which_window(const wire::Value& row, const wire::Value& answer) {
  const wire::Value* windows = answer.find("windows");
  const bool overridden = text_at(answer, "by") == "override";
  if (windows == nullptr && !overridden) windows = row.find("windows");
  const wire::Value::Array* list = windows == nullptr ? nullptr : windows->as_array();
  if (list == nullptr || list->size() < 2) return {};
  const std::uint64_t index = number_at(answer, "window");
  if (index >= list->size()) return {};
  return "window " + std::to_string(index + 1) + " of " + std::to_string(list->size()) + " (" +
         window_text((*list)[index]) + ")";
}

std::string come_back(std::uint64_t retry_ns, bool hint) {
  if (retry_ns == ~std::uint64_t{0}) return "no wait helps";
  return std::string("come back in ") + (hint ? "about " : "") + duration_text(retry_ns);
}

/// `, owes about 400`: of a key in debt beyond its burst, where one rate alone decides.
std::string owed_text(const wire::Value& row, const wire::Value& answer) {
  const wire::Value* windows = row.find("windows");
  const bool one = windows != nullptr && windows->as_array() != nullptr &&
                   windows->as_array()->size() == 1 &&
                   windows->as_array()->front().find("calendar") == nullptr;
  const std::uint64_t period = number_at(row, "rate_period_ns");
  const std::uint64_t reset = number_at(answer, "reset_after_ns");
  if (!one || period == 0 || reset == ~std::uint64_t{0} || text_at(answer, "by") == "override") {
    return {};
  }
  const auto spent = static_cast<unsigned __int128>(reset) * number_at(row, "rate_count") / period;
  const std::uint64_t burst = number_at(row, "burst");
  if (spent <= burst) return {};
  return ", owes about " + std::to_string(static_cast<std::uint64_t>(spent) - burst);
}

std::string refusal(const wire::Value& row, const wire::Value& answer, std::uint64_t cost) {
  const std::string reason = text_at(answer, "reason");
  const std::uint64_t retry = number_at(answer, "retry_after_ns");
  const std::string back = come_back(retry, truth_at(answer, "hint"));
  if (reason == "banned") {
    return retry == ~std::uint64_t{0} ? "refused: the key is banned until somebody ends it"
                                      : "refused: the key is banned for " + duration_text(retry);
  }
  if (reason == "never") {
    return "refused: a cost of " + std::to_string(cost) + " is over the burst; " + back;
  }
  if (reason == "limit") {
    const std::string window = which_window(row, answer);
    return "refused" + (window.empty() ? "" : " by " + window) + ": " +
           tokens(number_at(answer, "remaining")) + " left" + owed_text(row, answer) + ", " +
           std::to_string(cost) +
           " asked for; " + back;
  }
  if (reason == "degraded") {
    return "refused without the rule: no place in the table and on-full is deny, or the limit is "
           "gone";
  }
  return "refused: " + escape(reason) + "; " + back;
}

}  // namespace

std::string window_text(const wire::Value& window) {
  const std::string count = std::to_string(number_at(window, "count"));
  const std::string unit = text_at(window, "calendar");
  if (!unit.empty()) {
    const std::string zone = text_at(window, "zone");
    return count + " per " + unit + (zone.empty() ? "" : " (" + escape_short(zone) + ")");
  }
  const std::uint64_t burst = number_at(window, "burst");
  const std::string rate = rate_text(number_at(window, "count"), number_at(window, "period_ns"));
  return rate + " burst " + std::to_string(burst);
}

std::vector<std::string> explain(const wire::Value& row, std::uint64_t cost) {
  std::vector<std::string> out;
  const wire::Value* found = row.find("answer");
  if (found == nullptr || found->as_map() == nullptr) return out;
  const wire::Value& answer = *found;
  const bool allowed = truth_at(answer, "allowed");
  const std::string kind = text_at(row, "kind");

  if (!allowed) {
    out.push_back(refusal(row, answer, cost));
  } else if (kind == "unlimited" || truth_at(answer, "unlimited")) {
    out.push_back("allowed: nothing limits this key; it is only counted");
  } else {
    const std::string window = which_window(row, answer);
    out.push_back("allowed: " + tokens(number_at(answer, "remaining")) +
                  " left after this ask of " + std::to_string(cost) +
                  (window.empty() ? "" : "; the tightest is " + window));
  }
  if (truth_at(answer, "shadow")) {
    out.push_back("the limit is in shadow mode: enforced, it would refuse (" +
                  escape(text_at(answer, "would")) + ")");
  } else if (text_at(row, "mode") == "shadow") {
    out.push_back("the limit is in shadow mode: it counts and refuses nobody");
  }
  if (text_at(answer, "by") == "override") {
    std::string text =
        "judged by an override (its own or a pattern's), not by the limit's own numbers";
    if (const wire::Value* windows = answer.find("windows"); windows != nullptr) {
      const wire::Value::Array* list = windows->as_array();
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        text += (i == 0 ? ": " : " + ") + window_text((*list)[i]);
      }
    }
    out.push_back(std::move(text));
  }
  const std::uint64_t reset = number_at(answer, "reset_after_ns");
  if (reset > 0 && text_at(answer, "reason") != "banned") {
    out.push_back("full again in " + duration_text(reset) + " if nobody asks");
  } else if (allowed && kind == "bucket" && !truth_at(answer, "unlimited")) {
    out.push_back("the bucket is full");
  }
  if (truth_at(answer, "overflow")) {
    out.push_back("the key has no place of its own: it shares one bucket with all such keys; raise "
                  "capacity.keys");
  }
  if (truth_at(answer, "extrapolated")) {
    out.push_back("the calendar's edge is extrapolated: the daemon has not renewed it");
  }
  if (allowed && truth_at(answer, "degraded")) {
    out.push_back("allowed without the rule: no place in the table, and on-full is allow");
  }
  return out;
}

}  // namespace cutwater::ctl
