// SPDX-License-Identifier: Apache-2.0
#include "src/give_back.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/fork_page.hpp"
#include "src/breaker_record.hpp"
#include "src/bulkhead_record.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"

namespace cutwater::detail {
namespace {

/// In the memory mapped now. False: none is, or it was superseded as well.
template <class Spot, class GiveBack>
bool in_memory_now(const Spot& taken, GiveBack give_back) noexcept {
  auto& record = *taken.record;
  const client::DaemonLink::Place now = record.link->place();
  if (now.memory == nullptr) return false;
  const shm::View& view = now.memory->view();
  if (std::memcmp(view.secret, taken.view->secret, sizeof(shm::FileHeader::secret)) != 0) {
    return true;
  }
  const auto found = find_spot(record);
  if (found.spot == nullptr) return (view.current() & shm::kCurrentSupersededBit) == 0;
  // In process, or another memory than was looked at: later.
  if (found.degraded || found.spot->view != &view) return false;
  return give_back(*found.spot);
}

bool gave_back(const Owed& owed) noexcept {
  if (owed.bulkhead != nullptr) {
    return in_memory_now(*owed.bulkhead, [&](BulkheadSpot& spot) {
      return shm::leave_bulkhead(*spot.view, BulkheadSpot::unpacked(owed.ref),
                                 spot.leaver(owed.ref), owed.place) != shm::Left::Moved;
    });
  }
  return in_memory_now(*owed.breaker, [&](BreakerPlace& place) {
    return !shm::goes_on(shm::finish_in_successor(*place.view, BreakerPlace::unpacked(owed.ref),
                                                  place.reporter(owed.ref), owed.call, owed.report,
                                                  owed.how));
  });
}

}  // namespace

struct OwedList::Node {
  Owed owed;
  Node* next;
};

OwedList::~OwedList() {
  Node* node = kept_.load(std::memory_order_acquire);
  while (node != nullptr) {
    Node* const next = node->next;
    delete node;
    node = next;
  }
}

void OwedList::give_back(const Owed& owed) noexcept {
  if (gave_back(owed)) return;
  keep(owed);
  // Another thread may have attached, and settled, between our look and this.
  client::DaemonLink& link = owed.bulkhead != nullptr ? *owed.bulkhead->record->link
                                                      : *owed.breaker->record->link;
  if (link.place().memory != nullptr) settle();
}

void OwedList::keep(const Owed& owed) noexcept {
  const bool holds = owed.bulkhead != nullptr || !(owed.call.ticket == Word16{});
  const bool room = count_.load(std::memory_order_relaxed) < kMost;
  auto* const node = holds && room ? new (std::nothrow) Node{owed, nullptr} : nullptr;
  if (node == nullptr) {
    // relaxed: for people.
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  node->next = kept_.load(std::memory_order_relaxed);
  // PUBLISHES the node to settle(), which takes all at once.
  while (!kept_.compare_exchange_weak(node->next, node, std::memory_order_release,
                                      std::memory_order_relaxed)) {}
}

void OwedList::settle() noexcept {
  // acquire: pairs with keep().
  Node* node = kept_.exchange(nullptr, std::memory_order_acquire);
  while (node != nullptr) {
    Node* const next = node->next;
    count_.fetch_sub(1, std::memory_order_relaxed);
    const Owed owed = node->owed;
    delete node;
    if (owed.life == process_life() && !gave_back(owed)) keep(owed);
    node = next;
  }
}

void leave_in_successor(const BulkheadSpot& spot, std::uint64_t ref,
                        const shm::PlaceTicket& place) noexcept {
  if (spot.record->link == nullptr) return;
  Owed owed;
  owed.bulkhead = &spot;
  owed.ref = ref;
  owed.place = place;
  owed.life = process_life();
  spot.record->link->owed().give_back(owed);
}

void end_in_successor(const BreakerPlace& place, std::uint64_t ref, const shm::BreakerCall& call,
                      shm::BreakerReport report, shm::Recorded how) noexcept {
  if (place.record->link == nullptr) return;
  // Its duration ends now, whenever it can be told.
  if (report.duration_ns < 0 && call.start_ns != 0) {
    report.duration_ns = std::max<std::int64_t>(0, place.view->clock.now() - call.start_ns);
  }
  Owed owed;
  owed.breaker = &place;
  owed.ref = ref;
  owed.call = call;
  owed.report = report;
  owed.how = how;
  owed.life = process_life();
  place.record->link->owed().give_back(owed);
}

void give_back_owed(const BulkheadSpot* spot, const BreakerPlace* place, const shm::EnterAsk& asked,
                    const shm::EnterOwed& owed) noexcept {
  const auto packed = [](auto ref) { return shm::pack_ref(ref.index, ref.incarnation); };
  if (spot != nullptr && owed.place.cell_value != 0) {
    leave_in_successor(*spot, packed(asked.bulkhead), owed.place);
  }
  if (place != nullptr && shm::goes_on(owed.how)) {
    end_in_successor(*place, packed(asked.breaker), owed.call,
                     {.kind = shm::Ended::Cancelled}, owed.how);
  }
}

}  // namespace cutwater::detail
