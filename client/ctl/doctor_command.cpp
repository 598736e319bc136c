// SPDX-License-Identifier: Apache-2.0
// Gathering what doctor judges, and printing it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ctl/commands.hpp"
#include "ctl/doctor.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// The beginning of a small file of /proc or /sys; empty when it cannot be read.
std::string small_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 4096> bytes{};
  const ssize_t length = ::read(fd, bytes.data(), bytes.size());
  ::close(fd);
  return length > 0 ? std::string(bytes.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string first_word(std::string text) {
  text.resize(std::min(text.find_first_of(" \n\t"), text.size()));
  return text;
}

/// The word in brackets: `always within_size advise [never]`.
std::string chosen_word(const std::string& text) {
  const auto begin = text.find('['), end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return text.substr(begin + 1, end - begin - 1);
}

std::uint64_t inode_of(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

std::optional<std::uint64_t> locked_bytes_of(std::uint64_t pid) {
  const std::string status = small_file("/proc/" + std::to_string(pid) + "/status");
  const auto at = status.find("VmLck:");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(status.c_str() + at + 6, nullptr, 10) * 1024;
}

void read_places(Facts& facts) {
  struct statfs place {};
  if (!facts.memory.empty() && ::statfs(facts.memory.c_str(), &place) == 0) {
    facts.tmpfs = place.f_type == TMPFS_MAGIC;
    const auto block = static_cast<std::uint64_t>(place.f_bsize);
    facts.tmpfs_bytes = place.f_blocks * block;
    facts.tmpfs_free = place.f_bavail * block;
  }
  facts.clock_source = first_word(
      small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
  facts.shmem_huge_pages =
      chosen_word(small_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  facts.own_time_namespace = inode_of("/proc/self/ns/time");
  const std::uint64_t pid = number_at(facts.status, "pid");
  if (pid != 0 && facts.daemon == "running") {
    facts.daemon_time_namespace = inode_of("/proc/" + std::to_string(pid) + "/ns/time");
    facts.locked_bytes = locked_bytes_of(pid);
  }
}

wire::Value row_of(const DoctorFinding& finding) {
  return wire::Value::map({{"bad", finding.bad},
                           {"about", finding.about},
                           {"text", finding.text},
                           {"remedy", finding.remedy}});
}

/// Whole rows of what READ `kind`s lists, at most kBreakersLookedAt.
Rows whole_rows(Look& look, const std::string& kind, std::size_t& left_out) {
  Rows out;
  const auto all = look.read(kind + "s");
  if (!all) return out;
  for (const wire::Value& row : *all) {
    if (out.size() == kBreakersLookedAt) {
      left_out += all->size() - out.size();
      break;
    }
    auto whole = look.read_named(kind, text_at(row, kind));
    if (whole) out.push_back(std::move(*whole));
  }
  return out;
}

}  // namespace

Facts gather_facts(const Settings& settings) {
  Facts facts;
  auto look = Look::open(settings, Look::Voice::Quiet);
  if (!look) {
    const Errc code = look.error().code();
    // What is closed to us, or of another version, may well run.
    facts.daemon = code == Errc::NoDaemon  ? "not running"
                   : code == Errc::Timeout ? "does not answer"
                                           : "not asked";
    facts.connection = look.error().text();
    facts.connection_code = code;
    facts.status = wire::Value(wire::Value::Map{});
  } else {
    facts.daemon = look->daemon();
    if (const auto rights = look->rights()) facts.rights = *rights;
    const auto take = [&](const char* what) {
      auto rows = look->read(what);
      return rows ? std::move(*rows) : Rows{};
    };
    Rows status = take("status");
    facts.status = status.empty() ? wire::Value(wire::Value::Map{}) : std::move(status.front());
    facts.limits = take("limits");
    facts.counters = take("counters");
    facts.clients = take("clients");
    facts.file = look_at_file(*look, facts.status);
    facts.breakers = whole_rows(*look, "breaker", facts.breakers_left_out);
    std::size_t bulkheads_left_out = 0;
    facts.bulkheads = whole_rows(*look, "bulkhead", bulkheads_left_out);
    facts.breakers_left_out += bulkheads_left_out;
    facts.memory = text_at(facts.status, "memory_directory");
    if (facts.memory.empty() && std::string_view(look->source()) == "memory") {
      facts.memory = look->place();
    }
  }
  read_places(facts);
  return facts;
}

Exit run_doctor(const Settings& settings) {
  const Facts facts = gather_facts(settings);
  const std::vector<DoctorFinding> findings = diagnose(facts);
  const bool ill = !findings.empty() && findings.front().bad;

  wire::Value document;
  document.set("daemon", facts.daemon);
  document.set("ok", !ill);
  wire::Value::Array rows;
  std::string text;
  for (const DoctorFinding& finding : findings) {
    rows.push_back(row_of(finding));
    text += toned(finding.bad ? "bad   " : "note  ", finding.bad ? Tone::Bad : Tone::Plain,
                  settings.colour) +
            finding.about + ": " + finding.text + '\n';
    if (!finding.remedy.empty()) text += "      -> " + finding.remedy + '\n';
  }
  document.set("findings", std::move(rows));
  const auto bad = std::count_if(findings.begin(), findings.end(),
                                 [](const DoctorFinding& finding) { return finding.bad; });
  text += findings.empty() ? "all is well\n"
          : ill ? std::to_string(bad) + (bad == 1 ? " thing is" : " things are") +
                      " wrong (exit 4)\n"
                : "nothing is wrong\n";
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && ill ? Exit::Invalid : printed;
}

}  // namespace cutwater::ctl
