// SPDX-License-Identifier: Apache-2.0
// In-memory clients: the daemon's part (publishing, sweeping) done by the client itself, in a
// private segment. No other code decides than behind a daemon.
#include <ctime>

#include <algorithm>
#include <limits>
#include <new>

#include "base/fork_page.hpp"
#include "config/config.hpp"
#include "shm/breaker/publisher.hpp"
#include "src/core.hpp"
#include "src/no_memory.hpp"

namespace cutwater {
namespace {

/// What a text of limits needs; keys, limits as configured, the rest as small as the layout allows
/// for one process.
shm::SegmentOptions options_for(const config::Config& config, const SteppedClock::State* clock) {
  shm::SegmentOptions options;
  options.capacity.keys = config.capacity.keys;
  options.capacity.limits = config.capacity.limits;
  options.capacity.processes = config.capacity.processes;
  options.capacity.stripes = config.capacity.stripes;
  options.capacity.events = config.capacity.events;
  options.capacity.breakers = config.capacity.breakers;
  options.capacity.breaker_memory = config.capacity.breaker_memory;
  const config::Value* const memory = config.find_value("capacity.breaker-memory");
  if (memory != nullptr && memory->place.source == config::Source::Default) {
    options.capacity.breaker_memory =
        std::max(config.capacity.breaker_memory, shm::breaker_memory_needed(config.breakers));
  }
  options.capacity.trips = config.capacity.trips;
  options.capacity.bulkheads = config.capacity.bulkheads;
  options.capacity.bulkhead_cells = config.capacity.bulkhead_cells;
  options.capacity.waiters = config.capacity.waiters;
  options.capacity.remember_keys = config.instance.remember_keys;
  if (clock != nullptr) {
    options.clock = shm::ClockKind::Stepped;
    // New limits count from the present moment, so a bucket drained now has its tokens back on
    // whole nanoseconds of this clock.
    options.stepped_start_ns = kSteppedOriginNs + clock->now();
  }
  return options;
}

Result<config::Config> read_config(std::string_view yaml) {
  auto outcome = config::load_text(yaml, "in-memory configuration");
  if (!outcome.config) return Error{Errc::InvalidConfig, outcome.report("nothing was changed")};
  return std::move(*outcome.config);
}

void sleep_until(const shm::View& view, std::int64_t t) {
  const std::int64_t at = view.clock.to_boottime(t);
  const timespec until{at / 1'000'000'000, at % 1'000'000'000};
  while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr) != 0) {}
}

Result<shm::PublishReport> publish(shm::Publisher& publisher, const shm::View& view,
                                   const config::Config& config) {
  if (view.clock.now() < publisher.ready_at()) {
    if (view.clock.is_stepped()) shm::step_clock(view, publisher.ready_at());
    else sleep_until(view, publisher.ready_at());       // at most shm::kPublishAheadNs
  }
  // What an earlier change left to convert, all at once: a private segment has no loop of its own.
  while (!publisher.sweep(view.slot_count)) {}
  publisher.set_breakers(config.breakers);
  publisher.set_bulkheads(config.bulkheads);
  return publisher.publish(config.limits, config.hash);
}

}  // namespace

namespace {

Result<std::unique_ptr<Client::Core>> make_private(const config::Config& config,
                                                   std::shared_ptr<SteppedClock::State> clock,
                                                   std::optional<std::int64_t> unix_ns = {}) {
  auto segment = shm::Segment::create_private(options_for(config, clock.get()));
  if (!segment) return segment.error();
  const shm::View view = segment->view();

  Client::Core::Private own;
  own.instance = config.instance.name;
  own.rows = std::make_unique<shm::RowTable>(view, true);
  auto row = own.rows->grant({.kind = shm::RowKind::Daemon, .name = own.instance});
  if (!row) return row.error();
  own.row = *row;
  own.publisher = std::make_unique<shm::Publisher>(view);
  if (unix_ns) own.publisher->set_wall_offset(*unix_ns - view.clock.now());
  own.clock = clock;
  auto published = publish(*own.publisher, view, config);
  if (!published) return published.error();
  return std::make_unique<Client::Core>(std::move(*segment), std::move(own));
}

}  // namespace

Result<Client> Client::in_memory(std::string_view yaml) {
  return detail::or_no_memory([&]() -> Result<Client> {
    auto config = read_config(yaml);
    if (!config) return config.error();
    auto core = make_private(*config, nullptr);
    if (!core) return core.error();
    return Client{std::move(*core)};
  });
}

Result<Client> Client::in_memory(std::string_view yaml, const SteppedClock& clock) {
  return detail::or_no_memory([&]() -> Result<Client> {
    auto config = read_config(yaml);
    if (!config) return config.error();
    return Core::in_memory(*config, clock);
  });
}

Result<Client> Client::Core::in_memory(const config::Config& config, const SteppedClock& clock,
                                       std::optional<std::int64_t> unix_ns) {
  auto core = make_private(config, clock.state_, unix_ns);
  if (!core) return core.error();
  return Client{std::move(*core)};
}

Result<void> Client::Core::reload(std::string_view yaml) {
  if (!own_) {
    return Error{Errc::Unsupported, "this client belongs to a daemon: reload that one, with "
                                    "`cutwaterctl config reload` or SIGHUP"};
  }
  if (row_.life != process_life()) {
    return Error{Errc::Unsupported, "a forked child cannot reload the memory of its parent"};
  }
  auto config = read_config(yaml);
  if (!config) return config.error();
  auto published = own_->renewal->with_publisher(
      [&](shm::Publisher& publisher) { return publish(publisher, view_, *config); });
  if (!published) return published.error();
  // The publisher has moved this segment's word to the moment of the change; the clock follows, and
  // every other client on it.
  if (own_->clock) own_->clock->move_to(view_.clock.now() - kSteppedOriginNs);
  return {};
}

}  // namespace cutwater
