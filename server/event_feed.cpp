// SPDX-License-Identifier: Apache-2.0
#include "event_feed.hpp"

#include <algorithm>

#include "rows/words_of_event.hpp"

namespace cutwater::server {

namespace {

constexpr std::uint64_t kNewest = ~std::uint64_t{0};

std::uint32_t kind_of(shm::EventKind kind) noexcept {
  using shm::EventKind;
  switch (kind) {
    case EventKind::BreakerMoved: return wire::kEventTransition;
    case EventKind::BreakerWouldOpen:
    case EventKind::BreakerLocalFault:
    case EventKind::BreakerFlapping: return wire::kEventTrip;
    case EventKind::BreakerProbeExpired:
    case EventKind::BreakerReclaimed:
    case EventKind::PlaceReclaimed:
    case EventKind::PlaceRevoked: return wire::kEventPermit;
    case EventKind::LimitReset:
    case EventKind::ManualAct: return wire::kEventManual;
    case EventKind::ClientAttached:
    case EventKind::ClientGone:
    case EventKind::ClientRefused:
    case EventKind::RightsChanged:
    case EventKind::SlowReader: return wire::kEventClient;
    case EventKind::TableFull: return wire::kEventOverflow;
    case EventKind::Damage: return wire::kEventDegraded;
    default: return wire::kEventConfig;
  }
}

bool is_about_a_limit(shm::EventKind kind) noexcept {
  using shm::EventKind;
  return kind == EventKind::LimitReset || kind == EventKind::ManualAct ||
         kind == EventKind::TableFull;
}

std::string_view word_of(std::uint8_t state) noexcept {
  return state < rule::kBreakerStates ? rule::name_of(static_cast<rule::BreakerState>(state)) : "?";
}

}  // namespace

wire::EventRow event_row(const shm::View& view, const shm::Event& event) {
  wire::EventRow out;
  out.seq = event.number + 1;
  out.clock_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(event.t_ns, 0));
  out.kind = kind_of(event.kind);
  out.epoch = event.epoch;
  if (is_about_a_limit(event.kind) && event.object < view.limit_count) {
    const shm::NameRecord& record = view.limit_name(view.current(), event.object);
    std::string name(record.text, std::min<std::size_t>(record.length, sizeof record.text));
    if (wire::is_name(name)) out.name = std::move(name);
  }
  out.data.set("event", shm::name_of(event.kind));
  out.data.set("object", event.object);
  if (event.text[0] != 0) out.data.set("text", std::string(event.text));
  // The breaker of a pattern's own is named like the pattern.
  if (std::string name = rows::subject_of(view, event);
      wire::is_name(name) || wire::is_pattern_name(name)) {
    out.name = std::move(name);
    if (event.kind == shm::EventKind::BreakerMoved) {
      out.data.set("from", word_of(event.from));
      out.data.set("to", word_of(event.to));
      out.data.set("reason", rule::name_of(static_cast<rule::BreakerReason>(event.reason)));
    }
    out.data.set("words", rows::words_of(view, event));
  }
  return out;
}

EventFeed::EventFeed(const shm::View& view) : next_(shm::read_events(view, kNewest, 1).next) {}

std::uint64_t EventFeed::next_seq(const shm::View& view) const {
  return std::max(next_, shm::read_events(view, kNewest, 1).next) + 1;
}

std::vector<wire::SharedEvent> EventFeed::look(const shm::View& view) {
  std::vector<wire::SharedEvent> out;
  shm::EventPage page = shm::read_events(view, next_, kMaxPerLook);
  next_ = page.next;
  for (const shm::Event& event : page.events) {
    out.push_back(std::make_shared<const wire::EventRow>(event_row(view, event)));
  }
  return out;
}

std::vector<wire::SharedEvent> EventFeed::since(const shm::View& view, std::uint64_t seq) const {
  std::vector<wire::SharedEvent> out;
  std::uint64_t from = seq - 1;
  while (from < next_) {
    const shm::EventPage page = shm::read_events(view, from, kMaxPerLook);
    for (const shm::Event& event : page.events) {
      if (event.number >= next_) break;
      out.push_back(std::make_shared<const wire::EventRow>(event_row(view, event)));
    }
    if (page.next <= from) break;
    from = page.next;
  }
  return out;
}

}  // namespace cutwater::server
