// SPDX-License-Identifier: Apache-2.0
#include "ctl/doctor.hpp"

#include <algorithm>

#include "ctl/advice.hpp"
#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

using Findings = std::vector<DoctorFinding>;

/// Below this share of free room a tmpfs has no place for a second memory beside the first, which a
/// changed capacity needs for a moment.
constexpr std::uint64_t kTightPermille = 50;
/// From so many slots on huge pages pay: 1.4 to 1.7 times at 10 million keys.
constexpr std::uint64_t kManySlots = std::uint64_t{8} << 20;
/// Clocks that are read without a system call.
constexpr const char* kFastClocks[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"};

constexpr std::uint8_t kUse = 1, kLook = 2, kSteer = 4;

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    out += (i == 0 ? "" : ", ") + escape_short(names[i]);
  }
  if (names.size() > kShown) out += " and " + std::to_string(names.size() - kShown) + " more";
  return out;
}

/// What to do where neither the daemon nor its memory answered.
std::string connection_remedy(Errc code) {
  switch (code) {
    case Errc::NotPermitted:
      return "run it as root or as the daemon's user, or name this user in access.look";
    case Errc::LayoutMismatch:
      return "use the cutwaterctl of the daemon's version, or start the daemon of this one";
    case Errc::Damaged:
      return "start cutwaterd: it sets the damaged files aside as *.bad and makes new ones";
    default:
      return "start cutwaterd, or name its socket by --address or CUTWATER_ADDRESS";
  }
}

void about_daemon(const Facts& facts, Findings& out) {
  for (std::string& sentence : advice_for(facts.status, facts.daemon)) {
    const auto cut = sentence.rfind("; ");
    const std::string remedy = cut == std::string::npos ? "" : sentence.substr(cut + 2);
    if (!remedy.empty()) sentence.resize(cut);
    out.push_back({true, "daemon", std::move(sentence), remedy});
  }
  if (!facts.connection.empty()) {
    out.push_back({true, "socket", "the daemon could not be asked: " + facts.connection,
                   connection_remedy(facts.connection_code)});
  }
  if (number_at(facts.status, "log_dropped") > 0) {
    out.push_back({true, "log",
                   std::to_string(number_at(facts.status, "log_dropped")) +
                       " lines of the daemon's log were dropped: its reader is slow, stopped, or "
                       "the disk is full",
                   "mend the reader of the log, or raise log.queue"});
  }
  const std::string fault = text_at(facts.status, "journal_fault");
  if (!fault.empty()) {
    out.push_back({true, "journal",
                   std::to_string(number_at(facts.status, "acts_unsaved")) +
                       " manual acts are in force and not on the disk: " +
                       escape_short(text_at(facts.status, "journal"), 256) + ": " +
                       escape_short(fault, 256),
                   "mend or empty that disk; the daemon tries again every 2 s, and `cutwaterctl "
                   "journal list` shows what is not saved"});
  }
  const std::string unsaved = text_at(facts.status, "journal_why_not");
  if (!unsaved.empty()) {
    // What somebody chose is worth knowing, what did not work is bad.
    const bool chosen = unsaved == "instance.state-directory is off";
    out.push_back({!chosen, "journal", "manual acts are not saved: " + escape_short(unsaved, 256),
                   "set instance.state-directory to a directory on a disk that the daemon may "
                   "write"});
  }
}

/// What the next reload or start will find. What the last reload found is in the status.
void about_file(const Facts& facts, Findings& out) {
  const FileState& state = facts.file;
  if (state.file.empty() || !text_at(facts.status, "config_refused").empty()) return;
  const std::string file = escape_short(state.file, 256);
  const std::string check = "`cutwaterctl config check " + file + "` names every error";
  if (!state.errors.empty()) {
    const std::size_t count = state.errors.size();
    out.push_back({true, "config",
                   "the next reload or restart will be refused: " + std::to_string(count) +
                       (count == 1 ? " error: " : " errors, the first: ") +
                       escape_short(state.errors.front(), 512),
                   "mend it before somebody restarts the daemon; " + check});
  } else if (!state.refused.empty()) {
    out.push_back({true, "config",
                   file + " was changed, and a reload of it will be refused: " +
                       escape_short(state.refused.front(), 512),
                   "restart the daemon to take it over, or put the old value back"});
  } else if (state.changed) {
    out.push_back({false, "config",
                   file + " was changed and is not in force: nobody has reloaded it",
                   "`cutwaterctl config diff " + file +
                       "` says what it changes, `config reload` takes it over"});
  }
}

void about_rights(const Facts& facts, Findings& out) {
  if (!facts.rights) return;
  if ((*facts.rights & kLook) == 0) {
    out.push_back({true, "socket", "this user may not look", "add it to access.look"});
  }
  if ((*facts.rights & kSteer) == 0) {
    out.push_back({false, "socket", "this user may look and not steer",
                   "acts such as `limit ban` need access.steer"});
  }
  if ((*facts.rights & kUse) == 0) {
    out.push_back({false, "socket", "this user's programs may not decide",
                   "add it to access.map (trusted, decides in memory) or access.ask"});
  }
}

void about_memory(const Facts& facts, Findings& out) {
  if (!facts.tmpfs) {
    out.push_back({true, "memory", escape(facts.memory) + " is not on a tmpfs: every decision may "
                                                          "wait for a disk",
                   "mount a tmpfs there, or set instance.memory-directory"});
  }
  if (facts.tmpfs_bytes > 0 &&
      share_permille(facts.tmpfs_free, facts.tmpfs_bytes) < kTightPermille) {
    out.push_back({true, "memory",
                   "the tmpfs of " + escape(facts.memory) + " has " + size_text(facts.tmpfs_free) +
                       " of " + size_text(facts.tmpfs_bytes) + " left",
                   "make it larger (mount -o remount,size=...): a changed capacity needs room for "
                   "a second memory"});
  }
  const bool huge = facts.shmem_huge_pages == "always" || facts.shmem_huge_pages == "advise" ||
                    facts.shmem_huge_pages == "within_size";
  if (number_at(facts.status, "slots") >= kManySlots && !huge &&
      !facts.shmem_huge_pages.empty()) {
    out.push_back({false, "memory",
                   "a table this large is 1.4 to 1.7 times faster with huge pages, and shared "
                   "memory does not get them here",
                   "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled, or mount the "
                   "memory directory with huge=always"});
  }
  if (facts.locked_bytes && *facts.locked_bytes == 0) {
    out.push_back({false, "memory", "the daemon's memory is not locked: it may be swapped out",
                   "LimitMEMLOCK=infinity in its unit, and instance.lock-memory: true"});
  }
}

void about_clock(const Facts& facts, Findings& out) {
  const auto fast = std::any_of(std::begin(kFastClocks), std::end(kFastClocks),
                                [&](const char* name) { return facts.clock_source == name; });
  if (!facts.clock_source.empty() && !fast) {
    out.push_back({true, "clock",
                   "the kernel's clock source is " + escape(facts.clock_source) +
                       ": each reading is a system call, about ten times a decision",
                   "boot with clocksource=tsc where the processor's counter is invariant"});
  }
  if (facts.own_time_namespace != 0 && facts.daemon_time_namespace != 0 &&
      facts.own_time_namespace != facts.daemon_time_namespace) {
    out.push_back({true, "clock",
                   "this shell and the daemon live in different time name spaces: programs "
                   "started from here ask over the socket instead of deciding in memory",
                   "start them in the daemon's time name space"});
  }
  if (text_at(facts.status, "clock") == "stepped") {
    out.push_back({false, "clock", "time moves only by hand here (--clock=stepped)",
                   "meant for tests and demonstrations; start cutwaterd without it"});
  }
}

void about_rows(const Facts& facts, Findings& out) {
  std::uint64_t stale = 0;
  for (const wire::Value& row : facts.clients) {
    const std::string state = text_at(row, "state");
    stale += state == "orphan" || state == "dead" ? 1 : 0;
  }
  const std::uint64_t used = number_at(facts.status, "clients"),
                      rows = number_at(facts.status, "rows");
  if (stale > 0 && facts.daemon == "running") {
    out.push_back({true, "rows",
                   counted(stale, "row belongs", "rows belong") +
                       " to processes that are gone or lost their connection",
                   "wait 5 s. One that stays holds something for a process that lives and has not "
                   "been heard of: it comes back when that process asks or opens a client, ends, "
                   "or by max-hold; `cutwaterctl clients` shows its pid"});
  } else if (stale > 0) {
    // Without a daemon nobody knows which of them live: each lost its connection with it.
    out.push_back({false, "rows",
                   counted(stale, "row", "rows") +
                       " without a connection: their processes go on deciding in memory, those "
                       "that are gone nobody has noticed yet",
                   "start the daemon: the living attach again, it gives the others back"});
  }
  if (rows > 0 && used >= rows) {
    out.push_back({true, "rows", "all " + std::to_string(rows) + " rows are taken",
                   "raise capacity.processes and restart the daemon"});
  }
}

/// `instance.enabled: false` of somebody who forgot it.
void about_switch(const Facts& facts, Findings& out) {
  const wire::Value* open = facts.status.find("not_protecting");
  if (open == nullptr || open->as_array() == nullptr) return;
  for (const wire::Value& one : *open->as_array()) {
    if (one.as_string() == nullptr || !one.as_string()->starts_with("all ")) continue;
    out.push_back({true, "breakers", "breakers and bulkheads let everything through",
                   "instance.enabled: true, and `cutwaterctl config reload`"});
  }
}

/// Acts by hand that hold against what the file says.
void about_acts(const Facts& facts, Findings& out) {
  const wire::Value* over = facts.status.find("acts_over_file");
  if (over == nullptr || over->as_array() == nullptr) return;
  for (const wire::Value& one : *over->as_array()) {
    if (one.as_string() == nullptr) continue;
    out.push_back({false, "acts", escape_short(*one.as_string(), 256),
                   "`cutwaterctl journal list` shows them, `journal undo ID` ends one"});
  }
}

void about_limits(const Facts& facts, Findings& out) {
  std::vector<std::string> shadow, unasked, degraded;
  for (const wire::Value& row : facts.limits) {
    if (text_at(row, "mode") == "shadow") shadow.push_back(text_at(row, "limit"));
  }
  for (const wire::Value& row : facts.counters) {
    const std::uint64_t asked = number_at(row, "allowed") + number_at(row, "refused");
    if (asked == 0) unasked.push_back(text_at(row, "limit"));
    if (number_at(row, "degraded") > 0) degraded.push_back(text_at(row, "limit"));
  }
  if (!degraded.empty()) {
    out.push_back({true, "limits", "answered without their rule: " + list_of(degraded),
                   "`cutwaterctl limit get NAME` shows how often; look at `cutwaterctl events`"});
  }
  if (!shadow.empty()) {
    out.push_back({false, "limits", "only count and refuse nobody: " + list_of(shadow),
                   "mode: enforce when the counts look right"});
  }
  if (!unasked.empty()) {
    out.push_back({false, "limits", "were never asked: " + list_of(unasked),
                   "look whether the program uses these names, or take them out"});
  }
}

}  // namespace

std::vector<DoctorFinding> diagnose(const Facts& facts) {
  Findings out;
  about_daemon(facts, out);
  about_file(facts, out);
  about_rights(facts, out);
  about_memory(facts, out);
  about_clock(facts, out);
  about_rows(facts, out);
  about_switch(facts, out);
  about_limits(facts, out);
  about_acts(facts, out);
  about_breakers(facts, out);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.bad && !b.bad;
  });
  return out;
}

}  // namespace cutwater::ctl
