// SPDX-License-Identifier: Apache-2.0
#include "conductor.hpp"

#include <algorithm>

namespace cutwater::quickstart {
namespace {

using client::Deadline;

constexpr int kLookMs = 500;  // between looks whether a worker has ended

/// Nothing when all goes well; why not otherwise.
Result<void> check(const SharedLog& log, const Processes& workers) {
  const Control& control = log.control();
  if (control.failed.load(std::memory_order_acquire) == 2) {
    return Error{Errc::System, control.failure};
  }
  const std::string ended = workers.ended(true);
  if (!ended.empty()) return Error{Errc::System, ended + " before its work was done"};
  return {};
}

}  // namespace

Result<Conductor> Conductor::connect(const std::string& address) {
  auto link = open_link(address);
  if (!link) return link.error();
  if ((link->welcome.features & wire::kFeatureSteppedClock) == 0) {
    return Error{Errc::Unsupported,
                 "the daemon's clock is not stepped; start it with cutwaterd --clock=stepped"};
  }
  return Conductor(std::move(*link));
}

Result<void> Conductor::step(std::uint64_t to_ns) {
  wire::Steer message;
  message.verb = wire::kVerbClockStep;
  message.arguments.set("to_ns", to_ns);
  auto answer = link_.connection.steer(message, Deadline::in(kPatience));
  if (!answer) return answer.error();
  if (answer->code != wire::kSteerDone) {
    return Error{Errc::NotPermitted, "the daemon does not move its clock: " + answer->text};
  }
  ++steps_;
  return {};
}

Result<void> Conductor::settle(const Policy& policy) {
  const auto now = link_.connection.ping(1, Deadline::in(kPatience));
  if (!now) return now.error();
  const auto fill = static_cast<unsigned __int128>(policy.burst) * policy.rate_period_ns /
                    std::max<std::uint64_t>(policy.rate_count, 1);
  start_ns_ = now->clock_ns + static_cast<std::uint64_t>(fill) + 1'000'000;
  return step(start_ns_);
}

Result<void> Conductor::run(const SharedLog& log, const Processes& workers) {
  Control& control = log.control();
  for (std::uint32_t begin = 0; begin < log.size();) {
    const std::uint32_t end = log.end_of_group(begin);
    const auto moved = step(start_ns_ + static_cast<std::uint64_t>(log.request(begin).at_ns));
    if (!moved) return moved.error();
    // PUBLISHES the clock's step to the workers: they load open_until with acquire.
    control.open_until.store(end, std::memory_order_release);
    futex_wake(control.open_until);
    for (;;) {
      // acquire: pairs with the workers' fetch_add; their verdicts are written.
      const std::uint32_t done = control.done.load(std::memory_order_acquire);
      if (done == end) break;
      futex_wait(control.done, done, kLookMs);
      if (control.done.load(std::memory_order_acquire) != end) {
        if (const auto fine = check(log, workers); !fine) return fine.error();
      }
    }
    begin = end;
  }
  return {};
}

}  // namespace cutwater::quickstart
