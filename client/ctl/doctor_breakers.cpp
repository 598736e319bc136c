// SPDX-License-Identifier: Apache-2.0
// What doctor says of breakers and bulkheads.
#include <algorithm>

#include "config/duration.hpp"
#include "ctl/doctor.hpp"
#include "ctl/print.hpp"
#include "ctl/text.hpp"
#include "rule/breaker_class.hpp"

namespace cutwater::ctl {
namespace {

/// A window that is over sooner says what happened to one burst, not to a dependency.
constexpr std::uint64_t kShortWindowNs = 1'000'000'000;
/// A place held for so long is a call that never ends, rather than a slow one.
constexpr std::uint64_t kLongHoldNs = 600'000'000'000;

using Findings = std::vector<DoctorFinding>;

const wire::Value& part(const wire::Value& row, const char* key) {
  static const wire::Value kNothing;
  const wire::Value* found = row.find(key);
  return found == nullptr ? kNothing : *found;
}

/// A duration among the settings; 0 when there is none.
std::uint64_t setting_ns(const wire::Value& row, const char* key) {
  const auto parsed = config::parse_duration(text_at(part(row, "settings"), key));
  return parsed ? *parsed : 0;
}

/// I1: a count window is shared by all processes, so it fills that much faster.
void about_span(const wire::Value& row, const std::string& name, Findings& out) {
  const wire::Value& settings = part(row, "settings");
  const std::uint64_t calls = number_at(row, "calls"),
                      size = number_at(settings, "sliding-window-size", ~std::uint64_t{0}),
                      span = number_at(row, "window_span_ns");
  const bool short_one = text_at(settings, "sliding-window-type") == "COUNT_BASED" &&
                         text_at(settings, "sliding-window-min-span") == "off" && calls >= size &&
                         span > 0 && span < kShortWindowNs;
  if (!short_one) return;
  out.push_back({true, "breakers",
                 name + ": its window of " + std::to_string(size) + " calls spans about " +
                     duration_text(span) + ": one short burst of failures opens it for the host",
                 "sliding-window-type: TIME_BASED with a span such as 10s, or "
                 "sliding-window-min-span: 1s"});
}

void about_probes(const wire::Value& row, const std::string& name, Findings& out) {
  const wire::Value& minute = part(row, "durations_minute");
  const std::uint64_t p99 = number_at(minute.is_nil() ? part(row, "durations") : minute, "p99_ns");
  // A handful that callers gave says nothing of the many that nobody measured.
  if (row.find("measured") != nullptr && !truth_at(row, "measured")) return;
  const std::uint64_t timeout = setting_ns(row, "probe-timeout");
  if (timeout == 0 || p99 <= timeout / 2) return;
  out.push_back(
      {true, "breakers",
       name + ": one call in a hundred takes " + duration_text(p99) +
           ", and a probe counts as failed after " + duration_text(timeout),
       "raise probe-timeout to several times that, or give calls a deadline of their own"});
}

void about_states(const wire::Value& row, const std::string& name, Findings& out) {
  const std::string state = text_at(row, "state");
  const bool by_hand = state == "FORCED_OPEN" || state == "DISABLED" || state == "METRICS_ONLY";
  if (by_hand && text_at(row, "reason") != "none" && row.find("expires_ns") == nullptr) {
    const std::string note = text_at(part(row, "act"), "note");
    out.push_back({false, "breakers",
                   name + " is " + escape(state) + " by hand and nothing ends it" +
                       (note.empty() ? "" : " (" + escape_short(note, 256) + ")"),
                   "`cutwaterctl breaker auto " + name + "`, or the same state with --for"});
  }
  if (by_hand && text_at(row, "reason") == "none") {
    out.push_back({false, "breakers", name + " is " + escape(state) + " by its configuration",
                   "initial-state: CLOSED when it shall decide"});
  }
  const std::uint64_t open = number_at(row, "users_open"),
                      faults = number_at(part(row, "counters"), "local_faults");
  if (open > 0) {
    out.push_back({true, "breakers",
                   name + ": " + std::to_string(open) + " of " +
                       std::to_string(number_at(row, "users")) +
                       " processes refuse for themselves: their calls fail, those of others do not",
                   "`cutwaterctl events` names them (breaker_local_fault); look at their "
                   "credentials, connections and descriptors"});
  } else if (faults > 0) {
    out.push_back({false, "breakers",
                   name + ": " + std::to_string(faults) +
                       " times one process alone had failing calls (none has now)",
                   "`cutwaterctl events` names them (breaker_local_fault)"});
  }
  if (truth_at(row, "flapping")) {
    out.push_back({true, "breakers", name + " opens again and again: four times within ten minutes",
                   "`cutwaterctl breaker why " + name +
                       "`; a longer wait-duration-in-open-state, "
                       "more probes, or ramp-after-close"});
  }
}

/// Nobody ever reported an outcome, was refused, or asked while it was half-open.
bool never_asked(const wire::Value& row) {
  const wire::Value::Map* counters = part(row, "counters").as_map();
  if (counters == nullptr) return false;
  return std::all_of(counters->begin(), counters->end(), [](const wire::Value::Entry& entry) {
    return entry.value.as_unsigned().value_or(0) == 0;
  });
}

/// O1: a listed class that is not built in means something only where a program adds it.
void about_classes(const wire::Value& row, const std::string& name, Findings& out) {
  // Whatever is not built in shares one counter.
  const std::uint8_t others = rule::class_counter("-");
  std::string unknown;
  for (const char* list : {"record", "ignore"}) {
    const wire::Value::Array* classes = part(row, list).as_array();
    if (classes == nullptr) continue;
    for (const wire::Value& one : *classes) {
      const std::string* word = one.as_string();
      if (word == nullptr || rule::class_counter(*word) != others) continue;
      unknown += (unknown.empty() ? "" : ", ") + escape_short(*word) + " (" + list + ")";
    }
  }
  if (unknown.empty()) return;
  const std::string_view counter = rule::counter_name(others);
  const std::uint64_t seen = number_at(part(row, "classes"), counter);
  out.push_back({false, "breakers",
                 name + ": no built-in class: " + unknown + "; " +
                     (seen == 0 ? std::string("no failure of a program's own class was reported")
                                : std::to_string(seen) +
                                      " failures of programs' own classes were reported"),
                 "look at their spelling, and whether the program adds them "
                 "(cutwater::outcomes().add)"});
}

/// A pattern's name as a text in front of its star and one behind it.
bool stands_for(const std::string& pattern, const std::string& name) {
  const auto star = pattern.find('*');
  if (star == std::string::npos) return false;
  const std::string_view whole = pattern, head = whole.substr(0, star),
                         tail = whole.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

/// Names that nobody used. A pattern is used when one of the names it stands for was: these have
/// counters of their own. Names of a pattern are its own affair: nobody can take them out.
std::string unused_names(const Rows& rows, const char* kind) {
  std::string out;
  for (const wire::Value& row : rows) {
    const std::string name = text_at(row, kind);
    if (!never_asked(row)) continue;
    const bool spoken_for =
        std::any_of(rows.begin(), rows.end(), [&](const wire::Value& other) {
          const std::string second = text_at(other, kind);
          return second != name && (stands_for(second, name) ||
                                    (stands_for(name, second) && !never_asked(other)));
        });
    if (!spoken_for) out += (out.empty() ? "" : ", ") + escape(name);
  }
  return out;
}

/// A pattern whose places are all taken, while further names ask.
void about_pattern(const wire::Value& row, const char* of, const std::string& name,
                   Findings& out) {
  const std::uint64_t beyond = number_at(part(row, "counters"), "beyond_instances");
  if (beyond == 0) return;
  out.push_back({false, of,
                 name + ": " + std::to_string(beyond) +
                     " times a name found all its max-instances taken and shared its own",
                 "raise max-instances, or lower idle so that unused names make room sooner"});
}

void about_bulkhead(const wire::Value& row, Findings& out) {
  const std::string name = escape(text_at(row, "bulkhead"));
  const std::uint64_t limit = number_at(row, "limit"), oldest = number_at(row, "oldest_ns");
  const bool enabled = truth_at(row, "enabled");
  about_pattern(row, "bulkheads", name, out);
  if (enabled && limit == 0) {
    out.push_back({false, "bulkheads", name + " has no place: it refuses everybody",
                   "max-concurrent-calls above 0"});
  } else if (enabled && !truth_at(row, "allowed")) {
    out.push_back({true, "bulkheads",
                   name + " is full: " + std::to_string(number_at(row, "in_use")) + " of " +
                       std::to_string(limit) + " places are held, " +
                       std::to_string(number_at(row, "waiting")) + " callers wait",
                   "look who holds them and for how long (`cutwaterctl bulkhead explain " +
                       name + "`), or raise max-concurrent-calls"});
  }
  if (oldest >= kLongHoldNs) {
    const std::uint64_t pid = number_at(row, "oldest_pid");
    out.push_back({true, "bulkheads",
                   name + ": a place has been held for " + duration_text(oldest) +
                       (pid == 0 ? "" : " by pid " + std::to_string(pid)),
                   "a call without a deadline keeps its place: give it one, or set max-hold"});
  }
}

}  // namespace

void about_breakers(const Facts& facts, Findings& out) {
  for (const wire::Value& row : facts.breakers) {
    const std::string name = escape(text_at(row, "breaker"));
    about_span(row, name, out);
    about_probes(row, name, out);
    about_states(row, name, out);
    about_classes(row, name, out);
    about_pattern(row, "breakers", name, out);
  }
  if (const std::string unasked = unused_names(facts.breakers, "breaker"); !unasked.empty()) {
    out.push_back({false, "breakers", "no call was ever reported to: " + unasked,
                   "look whether the program uses these names, or take them out"});
  }
  for (const wire::Value& row : facts.bulkheads) about_bulkhead(row, out);
  if (const std::string unentered = unused_names(facts.bulkheads, "bulkhead"); !unentered.empty()) {
    out.push_back({false, "bulkheads", "were never entered: " + unentered,
                   "look whether the program uses these names, or take them out"});
  }
  if (facts.breakers_left_out > 0) {
    out.push_back({false, "breakers",
                   std::to_string(facts.breakers_left_out) +
                       " further breakers and bulkheads were not looked at",
                   "`cutwaterctl breaker list` and `bulkhead list` show all"});
  }
}

}  // namespace cutwater::ctl
