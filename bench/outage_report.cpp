// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "outage.hpp"

namespace cutwater::bench {
namespace {

bool is_call(const OutageEvent& event) {
  return event.what == What::Good || event.what == What::TimeOut;
}

/// What went by one breaker, in the order of time.
Lane merged(const std::vector<Lane>& lanes) {
  Lane out;
  for (const Lane& lane : lanes) out.insert(out.end(), lane.begin(), lane.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const OutageEvent& a, const OutageEvent& b) { return a.at_us < b.at_us; });
  return out;
}

/// Adds what one breaker's callers saw: it opened between a call that was let through and a
/// refusal.
void add_breaker(const Lane& lane, OutageCost& cost) {
  bool let_through = false, opened = false;
  for (const OutageEvent& event : lane) {
    if (is_call(event)) {
      let_through = true;
      if (event.what == What::TimeOut && !opened) ++cost.time_outs_to_open;
    } else if (event.what == What::Refused && let_through) {
      ++cost.openings;
      let_through = false;
      opened = true;
    }
  }
}

/// Begin of the first event of this kind that began at `from_us` or later; the end of the run else.
double first_after(const Outage& outage, const Lane& lane, std::uint32_t from_us, What what) {
  for (const OutageEvent& event : lane) {
    if (event.at_us >= from_us && event.what == what) return event.at_us;
  }
  return outage.ends_us;
}

std::string format(const char* form, ...) {
  char line[512];
  va_list words;
  va_start(words, form);
  std::vsnprintf(line, sizeof line, form, words);
  va_end(words);
  return line;
}

std::string cost_json(const OutageCost& c) {
  return format(
      "{\"calls\":%llu,\"time_outs\":%llu,\"time_out_seconds\":%.3f,\"refused\":%llu,"
      "\"openings\":%llu,\"time_outs_to_open\":%llu,\"protected_ms\":%s,"
      "\"back_ms\":%.1f",
      static_cast<unsigned long long>(c.calls), static_cast<unsigned long long>(c.time_outs),
      c.time_out_seconds, static_cast<unsigned long long>(c.refused),
      static_cast<unsigned long long>(c.openings),
      static_cast<unsigned long long>(c.time_outs_to_open),
      c.protected_ms ? format("%.1f", *c.protected_ms).c_str() : "null", c.back_ms);
}

std::string mode_json(const Outage& outage, const OutageMode& mode) {
  static constexpr const char* kWords[] = {"good", "timeout", "refused", "probing"};
  std::string out = cost_json(cost_of(outage, mode)) + ",\"workers\":[";
  for (const Lane& lane : mode.lanes) {
    if (&lane != &mode.lanes[0]) out += ',';
    out += '[';
    for (const OutageEvent& event : lane) {
      if (&event != &lane[0]) out += ',';
      out += format("[%.3f,%.3f,\"%s\"]", event.at_us / 1000.0, event.took_us / 1000.0,
                    kWords[static_cast<std::size_t>(event.what)]);
    }
    out += ']';
  }
  return out + "]}";
}

}  // namespace

OutageCost cost_of(const Outage& outage, const OutageMode& mode) {
  OutageCost out;
  double last_refused_us = 0;
  bool all_protected = true;
  if (mode.shared) add_breaker(merged(mode.lanes), out);
  for (const Lane& lane : mode.lanes) {
    if (!mode.shared) add_breaker(lane, out);
    for (const OutageEvent& event : lane) {
      out.calls += is_call(event) ? 1 : 0;
      out.refused += is_call(event) ? 0 : 1;
      if (event.what != What::TimeOut) continue;
      ++out.time_outs;
      out.time_out_seconds += event.took_us / 1e6;
    }
    const double refused = first_after(outage, lane, outage.hangs_us, What::Refused);
    const double good = first_after(outage, lane, outage.recovers_us, What::Good);
    all_protected = all_protected && refused < outage.recovers_us;
    last_refused_us = std::max(last_refused_us, refused - outage.hangs_us);
    out.back_ms = std::max(out.back_ms, (good - outage.recovers_us) / 1000);
  }
  if (all_protected) out.protected_ms = last_refused_us / 1000;
  return out;
}

std::string outage_table(const Outage& outage) {
  const OutageCost own = cost_of(outage, outage.own), one = cost_of(outage, outage.one);
  std::string out = format(
      "%d workers, time-out of a call %d ms; the dependency hangs for %.2f s\n\n",
      outage.plan.workers, outage.plan.timeout_ms, (outage.recovers_us - outage.hangs_us) / 1e6);
  out += format("%-46s %14s %14s\n", "", "each its own", "one shared");
  const auto count = [&](const char* what, std::uint64_t a, std::uint64_t b) {
    out += format("%-46s %14llu %14llu\n", what, static_cast<unsigned long long>(a),
                  static_cast<unsigned long long>(b));
  };
  const auto time = [&](const char* what, double a, double b, const char* unit) {
    out += format("%-46s %11.2f %-2s %11.2f %-2s\n", what, a, unit, b, unit);
  };
  count("calls to the dependency", own.calls, one.calls);
  count("  of these time-outs", own.time_outs, one.time_outs);
  count("  of these before the breaker opened", own.time_outs_to_open, one.time_outs_to_open);
  time("time of workers lost in time-outs", own.time_out_seconds, one.time_out_seconds, "s");
  count("refused at once", own.refused, one.refused);
  count("times a breaker opened", own.openings, one.openings);
  const auto seconds = [](std::optional<double> ms) {
    return ms ? format("%.2f s ", *ms / 1000) : std::string("never   ");
  };
  out += format("%-46s %14s %14s\n", "until the last worker was protected",
                seconds(own.protected_ms).c_str(), seconds(one.protected_ms).c_str());
  time("until the last worker was back", own.back_ms / 1000, one.back_ms / 1000, "s");
  out +=
      format("\nsaved by sharing: %lld calls that would have timed out, %.2f s of workers' time\n",
             static_cast<long long>(own.time_outs) - static_cast<long long>(one.time_outs),
             own.time_out_seconds - one.time_out_seconds);
  return out;
}

std::string outage_json(const Outage& outage) {
  const OutageCost own = cost_of(outage, outage.own), one = cost_of(outage, outage.one);
  return format(
             "{\"plan\":{\"workers\":%d,\"timeout_ms\":%d,\"hang_ms\":%d,"
             "\"until_all_refused\":%s},\"hangs_ms\":%.3f,"
             "\"recovers_ms\":%.3f,\"ends_ms\":%.3f,",
             outage.plan.workers, outage.plan.timeout_ms, outage.plan.hang_ms,
             outage.plan.until_all_refused ? "true" : "false", outage.hangs_us / 1000.0,
             outage.recovers_us / 1000.0, outage.ends_us / 1000.0) +
         format("\"saved\":{\"calls\":%lld,\"seconds\":%.3f},",
                static_cast<long long>(own.time_outs) - static_cast<long long>(one.time_outs),
                own.time_out_seconds - one.time_out_seconds) +
         "\"own\":" + mode_json(outage, outage.own) +
         ",\"shared\":" + mode_json(outage, outage.one) + "}\n";
}

}  // namespace cutwater::bench
