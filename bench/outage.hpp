// SPDX-License-Identifier: Apache-2.0
// cutwater-bench outage: what one opinion for the host saves while a dependency hangs.
//
// Workers, each a process, call a small server over a Unix socket, again and again. It answers,
// then hangs (takes requests, says nothing), then answers again. The same run is made twice at the
// same time: with a breaker in each worker (a client of its own, in memory), and with the one of a
// cutwaterd, which all share. Settings are equal: 10 failures of the last 20 calls open for a
// second, two probes.
//
// Phases go on when all that is to be seen was seen (each worker had good calls, was refused, had
// good calls again), at the earliest after their shortest time; so the order of what happens does
// not depend on the machine, only how long it takes. A time of hanging that was asked for is kept
// as it is, also when it is too short for every breaker to open. It gives up after kGiveUpMs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cutwater::bench {

inline constexpr int kMostWorkers = 32;
inline constexpr int kGiveUpMs = 60'000;
inline constexpr std::uint32_t kMostEvents = 8192;  ///< of one worker; later ones are not kept

struct OutagePlan {
  int workers = 8;       ///< 2 .. kMostWorkers, with each kind of breaker
  int timeout_ms = 100;  ///< a call's own time-out, 10 .. 1000
  int hang_ms = 2500;    ///< the dependency hangs for so long, 100 .. 20000
  bool until_all_refused = true;  ///< and longer, until each worker was refused
};

enum class What : std::uint8_t { Good, TimeOut, Refused, Probing };

/// One thing a worker did: a call, or a refusal at once (open, or all probes are out).
struct OutageEvent {
  std::uint32_t at_us = 0;  ///< begin, since the start of the run
  std::uint32_t took_us = 0;
  What what = What::Good;
};
using Lane = std::vector<OutageEvent>;

struct OutageMode {
  std::string name;
  bool shared = false;
  std::vector<Lane> lanes;  ///< by worker
};

struct Outage {
  OutagePlan plan;
  std::uint32_t hangs_us = 0, recovers_us = 0, ends_us = 0;
  OutageMode own, one;  ///< a breaker in each worker; one for all
};

/// What a mode cost.
struct OutageCost {
  std::uint64_t calls = 0;  ///< that went to the dependency
  std::uint64_t time_outs = 0;
  double time_out_seconds = 0;          ///< workers waited for nothing
  std::uint64_t refused = 0;            ///< answered at once
  std::uint64_t openings = 0;           ///< all breakers together
  std::uint64_t time_outs_to_open = 0;  ///< begun before a breaker first opened
  /// Begin of hanging to the last worker's first refusal; none: one was not refused while it hung.
  std::optional<double> protected_ms;
  double back_ms = 0;                   ///< recovery to the last worker's first good call
};
OutageCost cost_of(const Outage& outage, const OutageMode& mode);

/// Runs it. False: something could not be started, or it gave up; said on stderr.
bool run_outage(const OutagePlan& plan, Outage& out);

/// Both costs beside each other, for people.
std::string outage_table(const Outage& outage);
/// One object:
///   plan       {workers, timeout_ms, hang_ms, until_all_refused}
///   hangs_ms recovers_ms ends_ms     moments since the run began
///   saved      {calls, seconds}: time-outs of `own` minus those of `shared`, and their time
///   own shared {calls, time_outs, time_out_seconds, refused, openings, time_outs_to_open,
///              protected_ms (null: one worker was not refused while it hung), back_ms,
///              workers: a list each of [at_ms, took_ms, "good", "timeout", "refused" or
///              "probing"]}
std::string outage_json(const Outage& outage);
/// Both timelines above each other on one axis.
std::string outage_svg(const Outage& outage);

/// The command line behind `outage`. Exit code.
int outage_main(int argc, char** argv);

}  // namespace cutwater::bench
