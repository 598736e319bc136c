// SPDX-License-Identifier: Apache-2.0
#include "wire/event_queue.hpp"

#include <algorithm>

namespace cutwater::wire {
namespace {

// Heads and numbers of one event in their widest form, and those around all of them.
constexpr std::size_t kRowHead = 64;
constexpr std::size_t kEventHead = 32;

std::size_t size_of(const EventRow& event) {
  return kRowHead + event.name.size() + encoded_size(event.data);
}

}  // namespace

void EventQueue::add(const SharedEvent& event) {
  if ((event->kind & watch_.kinds) == 0) return;
  if (watch_.from_seq != 0 && event->seq < watch_.from_seq) return;
  if (!matches_pattern(watch_.pattern, event->name)) return;
  if (event->kind == kEventTransition && was_shown(*event)) return;
  pending_.push_back(event);
  auto& places = by_name_[event->name];
  places.push_back(std::prev(pending_.end()));
  if (places.size() > 1) crowded_.insert(event->name);
  if (pending_.size() > watch_.max_pending) make_room();
}

bool EventQueue::was_shown(const EventRow& event) {
  auto found = seen_.find(event.name);
  if (found == seen_.end()) {
    if (seen_.size() == kRememberedNames) {
      seen_.erase(seen_order_.front());
      seen_order_.pop_front();
    }
    found = seen_.emplace(event.name, Seen{}).first;
    seen_order_.push_back(event.name);
  }
  Seen& seen = found->second;
  if (std::find(seen.epochs.begin(), seen.epochs.end(), event.epoch) != seen.epochs.end()) {
    return true;
  }
  if (seen.epochs.size() < kRememberedEpochs) {
    seen.epochs.push_back(event.epoch);
  } else {
    seen.epochs[seen.next] = event.epoch;
    seen.next = (seen.next + 1) % kRememberedEpochs;
  }
  return false;
}

void EventQueue::make_room() {
  Place victim = pending_.begin();
  if (!crowded_.empty()) {
    // The name of the newest event if it has several, else any that has.
    const std::string& newest = pending_.back()->name;
    const auto named = by_name_.find(crowded_.contains(newest) ? newest : *crowded_.begin());
    victim = named->second.front();
  }
  drop(victim);
  ++missed_;
}

void EventQueue::drop(Place place) {
  const auto named = by_name_.find((*place)->name);
  named->second.pop_front();  // `place` is the oldest of its name
  if (named->second.size() == 1) crowded_.erase(named->first);
  if (named->second.empty()) by_name_.erase(named);
  pending_.erase(place);
}

Event EventQueue::take(std::size_t max_bytes) {
  Event out;
  out.watch = id_;
  std::size_t bytes = kEventHead;
  while (!pending_.empty() && out.events.size() < kMaxEvents) {
    const std::size_t size = size_of(*pending_.front());
    if (bytes + size > max_bytes) {
      if (!out.events.empty()) break;
      ++missed_;  // fits no frame at all
    } else {
      out.events.push_back(*pending_.front());
      bytes += size;
    }
    drop(pending_.begin());
  }
  out.missed = missed_;
  missed_ = 0;
  return out;
}

}  // namespace cutwater::wire
