// SPDX-License-Identifier: Apache-2.0
// doctor: what is not as it should be on this host, each with its remedy.
//
// Facts are gathered (the daemon's answers or its memory, /proc, /sys, the file system), then
// judged by a pure function, so that every sentence has a test. A finding is `bad` when something
// works wrongly or soon will, and a `note` when it is merely worth knowing. Nothing is changed by
// looking. Thread safety: diagnose() is pure; gather_facts() reads the system, one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctl/daemon_file.hpp"
#include "ctl/look.hpp"
#include "ctl/settings.hpp"
#include "wire/value.hpp"

namespace cutwater::ctl {

/// So many breakers and bulkheads are asked for one by one.
inline constexpr std::size_t kBreakersLookedAt = 256;

struct Facts {
  std::string daemon;      ///< Look::daemon(); `not asked`: nobody knows
  std::string connection;  ///< why nobody could be asked; empty: the daemon answered
  Errc connection_code = Errc::NoDaemon;  ///< of that
  std::optional<std::uint8_t> rights;  ///< of WELCOME: 1 use, 2 look, 4 steer
  wire::Value status;      ///< row of READ `status`
  Rows limits, counters, clients;
  FileState file;          ///< the daemon's configuration file; without a daemon nobody knows it
  Rows breakers, bulkheads;            ///< whole rows, of READ `breaker` and `bulkhead`
  std::size_t breakers_left_out = 0;   ///< beyond kBreakersLookedAt

  std::string memory;      ///< the memory directory, when it is known
  bool tmpfs = true;       ///< it lies on one
  std::uint64_t tmpfs_bytes = 0, tmpfs_free = 0;  ///< of that tmpfs; 0 unknown

  std::string clock_source;      ///< of the kernel: tsc, kvm-clock, hpet, ...; empty unknown
  std::string shmem_huge_pages;  ///< always, within_size, advise, never; empty unknown
  std::uint64_t own_time_namespace = 0, daemon_time_namespace = 0;  ///< inodes, 0 unknown
  std::optional<std::uint64_t> locked_bytes;  ///< of the daemon's memory; none: not known
};

struct DoctorFinding {
  bool bad = true;
  std::string about;   ///< one word: daemon, socket, memory, clock, rows, limits, ...
  std::string text;    ///< what is so
  std::string remedy;  ///< what to do
};

/// In the order an operator would mend them: daemon, its file, socket, memory, clock, rows, limits,
/// breakers, bulkheads.
std::vector<DoctorFinding> diagnose(const Facts& facts);
/// The last two of these.
void about_breakers(const Facts& facts, std::vector<DoctorFinding>& out);

Facts gather_facts(const Settings& settings);

}  // namespace cutwater::ctl
