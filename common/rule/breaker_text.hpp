// SPDX-License-Identifier: Apache-2.0
// What a breaker says in words: why it refuses (S14), and what it will do next (S20). One place, so
// that the library, the daemon and the tool say the same. Pure; allocates.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "rule/breaker_rule.hpp"

namespace cutwater::rule {

/// What is known of a breaker at `now_ns`; everything read from one moment.
struct BreakerStory {
  std::string_view name;
  BreakerState state = BreakerState::Closed;
  BreakerReason reason = BreakerReason::None;    ///< why it came into this state
  std::int64_t now_ns = 0;
  std::int64_t since_ns = 0;                     ///< 0 = unknown
  std::int64_t deadline_ns = 0;                  ///< 0 = none
  std::uint32_t attempts = 0;                    ///< openings in a row
  std::uint64_t trip_calls = 0;                  ///< calls of the window it opened on; 0 = unknown
  std::uint32_t trip_permille = 1023;            ///< their rate, 0..1000; else unknown
  BreakerWindow window;                          ///< the present one
  ProbeResults probes;                           ///< HALF_OPEN
  std::uint32_t held = 0;                        ///< HALF_OPEN: probes out
  bool ramping = false;
  bool process_only = false;                     ///< refused by this process's own view
  bool flapping = false;                         ///< four or more openings within ten minutes
};

/// "breaker 'fraudCheck' is OPEN since 3.2 s (failure rate 60 % of 10 calls), does not permit
/// calls, retry after 11.8 s". `retry_after_ns` < 0: not by itself, only by hand. `hint`: an
/// estimate.
std::string refusal_text(const BreakerNumbers& numbers, const BreakerStory& story,
                         std::int64_t retry_after_ns, bool hint);

/// What brought it into its state: "failure rate 60 % of 10 calls"; where it lets some calls
/// through, how many: "3 of 5 probes are out, 2 are back", "ramping up after half-open: 25 % of
/// the calls pass". Empty when there is nothing to say.
std::string cause_text(const BreakerNumbers& numbers, const BreakerStory& story);

/// A refusal that was told by somebody else: the same text without the numbers.
struct ToldRefusal {
  std::string_view name;
  BreakerState state = BreakerState::Closed;
  std::int64_t age_ns = -1;                      ///< of the state; < 0: unknown
  std::string_view why;                          ///< cause_text()
  bool process_only = false;
  bool some = false;                             ///< it lets some calls through: probes, a ramp
};
std::string refusal_text(const ToldRefusal& told, std::int64_t retry_after_ns, bool hint);

/// "CLOSED: 2 of 5 calls failed; rate counts from 10 calls; opens at 5 failures in a row, 3 to go".
/// Switched off in the configuration, it says that alone, whatever its state.
std::string explain_text(const BreakerNumbers& numbers, const BreakerStory& story);

/// "3.2 s", "250 ms", "1 ns": at most two digits behind the point, cut, never rounded up.
std::string duration_text(std::int64_t ns);
/// The same of a wait: rounded up, so that who waits as long as it says does not come too early.
/// Less than a microsecond is no reason to: an exclusive edge is 1 ns late.
std::string wait_text(std::int64_t ns);
/// "50 %", "33.3333 %": up to four places, as written.
std::string percent_text(std::uint32_t ppm);

}  // namespace cutwater::rule
