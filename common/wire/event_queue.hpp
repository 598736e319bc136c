// SPDX-License-Identifier: Apache-2.0
// EventQueue: the events of one watch that are not sent yet. A watcher that reads slowly gets the
// newest state of each name instead of a growing backlog.
//
//   add() keeps an event that the watch is for, in the order of their coming. Beyond max_pending
//   one of a name that has several waiting goes, the oldest of them; with one event per name the
//   oldest of all goes. `missed` of the next EVENT says how many went.
//   A transition is shown once per (name, epoch), although several processes may report it: the
//   last kRememberedEpochs epochs of the last kRememberedNames names are compared.
// Events are shared between the watches of all sessions, so a slow one holds pointers, not copies.
// Thread safety: as its session. Memory may run out (std::bad_alloc).
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "wire/watch_message.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kRememberedEpochs = 16;
inline constexpr std::size_t kRememberedNames = 4096;

using SharedEvent = std::shared_ptr<const EventRow>;

class EventQueue {
 public:
  /// `watch.max_pending` was checked by decoding it.
  EventQueue(std::uint32_t id, Watch watch) : id_(id), watch_(std::move(watch)) {}

  std::uint32_t id() const noexcept { return id_; }
  void add(const SharedEvent& event);

  bool empty() const noexcept { return pending_.empty() && missed_ == 0; }
  std::size_t pending() const noexcept { return pending_.size(); }
  /// The next EVENT: at most kMaxEvents of the oldest, within `max_bytes` of payload. One that fits
  /// no frame counts as missed.
  Event take(std::size_t max_bytes);

 private:
  using Place = std::list<SharedEvent>::iterator;
  struct Seen { std::vector<std::uint64_t> epochs; std::size_t next = 0; };

  bool was_shown(const EventRow& event);
  void make_room();
  void drop(Place place);

  std::uint32_t id_;
  Watch watch_;
  std::list<SharedEvent> pending_;
  std::unordered_map<std::string, std::list<Place>> by_name_;  // of pending_, oldest first
  std::unordered_set<std::string> crowded_;                    // names with several pending
  std::unordered_map<std::string, Seen> seen_;
  std::list<std::string> seen_order_;                          // oldest name first
  std::uint64_t missed_ = 0;
};

}  // namespace cutwater::wire
