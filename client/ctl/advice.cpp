// SPDX-License-Identifier: Apache-2.0
#include "ctl/advice.hpp"

#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// Above this share of slots in debt new keys begin to find no place (0.6: 0 ppm, 0.8: 376 ppm
/// measured).
constexpr std::uint64_t kFullPermille = 700;

/// What to do after a refused reload. The daemon's words say which it is: a file that is good and
/// needs a restart, one that asks for more room first, or one with errors.
std::string remedy_of_refusal(const std::string& refused, const std::string& file) {
  const auto says = [&](const char* words) { return refused.find(words) != std::string::npos; };
  if (says("needs a restart") || says("restart the daemon")) {
    return "restart the daemon to take it over (nothing is forgotten), or put the old value back";
  }
  if (says("and restart")) {
    return "raise that setting in " + file + " and restart the daemon: a reload makes no room";
  }
  return "mend it (`cutwaterctl config check " + file +
         "` names every error), then `cutwaterctl config reload`";
}

std::string count(const wire::Value& row, const char* key) {
  return std::to_string(number_at(row, key));
}

}  // namespace

std::uint64_t share_permille(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0
             ? 0
             : static_cast<std::uint64_t>(static_cast<unsigned __int128>(part) * 1000 / whole);
}

std::vector<std::string> advice_for(const wire::Value& status,
                                    std::string_view daemon) {
  std::vector<std::string> advice;
  const std::uint64_t no_place = number_at(status, "no_place");
  const std::uint64_t slots = number_at(status, "slots");
  const std::uint64_t fill =
      share_permille(number_at(status, "in_debt") + number_at(status, "claims"), slots);
  const std::string raise =
      "raise capacity.keys (now " + std::to_string(slots / 2) + ") and restart the daemon";
  if (daemon == "not running") {
    advice.push_back(
        "the daemon is not running: attached processes go on deciding, new ones cannot attach; "
        "start cutwaterd");
  } else if (daemon == "does not answer") {
    advice.push_back(
        "the daemon does not answer: attached processes go on deciding; look at its log and "
        "process " +
        count(status, "pid"));
  }
  if (const std::string refused = text_at(status, "config_refused"); !refused.empty()) {
    const std::string file = escape_short(text_at(status, "config_file"), 256);
    advice.push_back(
        "the configuration on disk is not the one in force, its last reload was refused: " +
        escape_short(refused, 512) + "; " + remedy_of_refusal(refused, file));
  }
  if (truth_at(status, "superseded")) advice.push_back(
        "this memory was replaced by a newer one; look at that by the daemon's --address");
  if (no_place > 0) {
    advice.push_back(std::to_string(no_place) +
                     " decisions found no place for their key, and on-full decided; " + raise);
  } else if (fill >= kFullPermille) {
    advice.push_back("the table is nearly full; " + raise);
  }
  if (number_at(status, "damage") > 0) {
    advice.push_back(count(status, "damage") +
                     " damaged entries were found and repaired; run `cutwaterctl verify` and look "
                     "who may write the memory");
  }
  if (number_at(status, "rules_repaired") > 0) {
    advice.push_back(
        "the rules in the memory were overwritten and published again; look who may "
        "write to the daemon's memory directory");
  }
  const std::uint64_t used = number_at(status, "stripes_used"),
                      stripes = number_at(status, "stripes");
  if (stripes > 0 && used + 1 >= stripes) {
    advice.push_back(
        "all stripes of counters are taken and further threads share one; raise capacity.stripes "
        "(now " +
        std::to_string(stripes - 1) + ")");
  }
  return advice;
}

}  // namespace cutwater::ctl
