// SPDX-License-Identifier: Apache-2.0
// Breakers and bulkheads by name: found, and found again after a reload and in another memory.
#include "src/named_record.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/fork_page.hpp"
#include "config/words.hpp"
#include "src/breaker_record.hpp"
#include "src/bulkhead_record.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "wire/message.hpp"

namespace cutwater::detail {
namespace {

constexpr std::int64_t kAbsentRetryNs = 100'000'000;   // when to look for the daemon again

/// A name that may be anything, as part of a message.
std::string shown_name(std::string_view name) {
  std::string shown(name.substr(0, 63));
  std::replace_if(shown.begin(), shown.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return shown;
}

/// A spot of this record in the memory of `core`, made when needed; nullptr: no such name there.
template <class Record>
typename Record::SpotType* spot_in(Record& record, Client::Core& core) noexcept {
  using Spot = typename Record::SpotType;
  for (Spot* p = record.spots.load(std::memory_order_acquire); p != nullptr; p = p->next) {
    if (p->view == &core.view()) {
      // acquire: pairs with the release in resolve().
      if (p->seen_current.load(std::memory_order_acquire) != p->view->current()) {
        p->resolve(record.name_view);
      }
      return p->index() == shm::kNoLine ? nullptr : p;
    }
  }
  if (!Spot::is_there(core.view(), record.name_view)) return nullptr;
  auto* spot = new (std::nothrow) Spot;
  if (spot == nullptr) return nullptr;
  spot->record = &record;
  spot->view = &core.view();
  spot->row = &core.client_row();
  spot->child_rows = &core.child_rows();
  spot->keeper = core.hold_keeper();
  spot->client = core.number();
  spot->life = &fork_page().life;
  spot->resolve(record.name_view);
  spot->next = record.spots.load(std::memory_order_relaxed);
  // PUBLISHES the spot to the loop above.
  while (!record.spots.compare_exchange_weak(spot->next, spot, std::memory_order_release,
                                             std::memory_order_relaxed)) {}
  return spot;
}

template <class Record>
Error unknown_name(const Client::Core& core, std::string_view name) {
  std::vector<std::string> names = Record::names(core.view());
  const std::string what(Record::kWhat), many(Record::kMany);
  std::string text = "instance \"" + std::string(core.instance()) + "\" has no " + what + " \"" +
                     shown_name(name) + "\"";
  if (names.empty()) {
    return {Errc::UnknownName, text + ": it has no " + many + "; add one under " + many +
                                   ": in its configuration"};
  }
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return config::edit_distance(name, a) < config::edit_distance(name, b);
  });
  text += names.size() == 1 ? "; there is " : "; the nearest are ";
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return {Errc::UnknownName, text};
}

}  // namespace

/// A forked child: by the row it got, else as a user of its own.
void NamedSpot::fill_child(std::uint64_t now, shm::BreakerCaller& out) const noexcept {
  if (const ClientRow* const mine = child_rows->own()) {
    out.row = mine->index;
    out.generation = mine->generation;
  } else if (row->index != 0) {
    out.user = {row->index, row->generation, now & shm::kForkMask};
  }
}

bool NamedSpot::need_row() const noexcept { return child_rows->need(*view); }

template <class Record>
Found<typename Record::SpotType> find_spot(Record& record) noexcept {
  auto* at = record.at.load(std::memory_order_acquire);
  const bool left = at == nullptr || (at->view->current() & shm::kCurrentSupersededBit) != 0;
  if (left && record.link != nullptr) {
    client::DaemonLink& link = *record.link;
    const client::DaemonLink::Place now = link.place();
    at = now.memory == nullptr ? nullptr : spot_in(record, *now.memory);
    record.at.store(at, std::memory_order_release);
    if (now.memory != nullptr) return {.spot = at};
    if (link.settings().off) return {.why = Nowhere::Off};
    if (now.socket != nullptr) return {.socket = now.socket};
    return absent_spot(record);
  }
  if (at == nullptr) return {};
  // acquire: pairs with the release in resolve().
  if (at->seen_current.load(std::memory_order_acquire) != at->view->current()) {
    at->resolve(record.name_view);
    // As after a limit's refresh(): a program may use breakers or bulkheads alone.
    if (record.link != nullptr) record.link->rules_changed(*at->view);
  }
  return {.spot = at->index() == shm::kNoLine ? nullptr : at};
}

template <class Record>
Found<typename Record::SpotType> absent_spot(Record& record) noexcept {
  client::DaemonLink& link = *record.link;
  if (link.settings().off) return {.why = Nowhere::Off};
  // Never kept in `at`: the way back to the shared memory is looked for at each ask.
  Client::Core* const own = link.in_process();
  auto* const at = own == nullptr ? nullptr : spot_in(record, *own);
  return {.spot = at, .why = Nowhere::Absent, .degraded = at != nullptr};
}

// ---- nowhere ------------------------------------------------------------------------------------

bool grants_nowhere(const client::DaemonLink* link, Nowhere why) noexcept {
  if (why == Nowhere::Off) return true;
  return link != nullptr && link->settings().if_absent == IfAbsent::Allow;
}

std::int64_t retry_nowhere_ns(const client::DaemonLink* link) noexcept {
  return link == nullptr ? kAbsentRetryNs : link->absent_retry_ns();
}

template <class Record>
std::string nowhere_text(const Record& record, Nowhere why) {
  const std::string nothing(Record::kNothing);
  if (why == Nowhere::Off) {
    return "every call is granted and " + nothing + ": CUTWATER_ENABLED=false";
  }
  std::string text;
  const bool chosen = record.link != nullptr && why != Nowhere::Gone && why != Nowhere::NoRow;
  if (chosen) {
    const IfAbsent choice = record.link->settings().if_absent;
    text = "if_absent: " + std::string(client::name_of(choice)) + ", ";
    if (choice == IfAbsent::InProcess) {
      text += "whose configuration has no such " + std::string(Record::kWhat) + ", ";
    }
  }
  text += grants_nowhere(record.link, why) ? "every call is granted and " + nothing + ": "
                                           : "every call is refused: ";
  switch (why) {
    case Nowhere::Absent:
      return text + "no daemon answers and no memory is mapped; start the daemon";
    case Nowhere::NoRow:
      return text + "this process was forked from the one that opened the client, and has no row "
                    "by which a daemon would notice its death, and none gives it one; start the "
                    "daemon, or open a client in the child";
    default:
      return text + "the rules in force have no " + std::string(Record::kWhat) +
             " of this name (a reload removed it, or it never was there); add it under " +
             std::string(Record::kMany) + ":";
  }
}

// ---- the first ask ------------------------------------------------------------------------------

template <class Record>
Result<Record*> named_record(std::atomic<Record*>& list, std::string_view name, Client::Core& head,
                             client::DaemonLink* link, AskWatcher* watcher) {
  Client::Core* core = &head;
  bool asks = false, fails = false;
  if (link != nullptr) {
    const client::DaemonLink::Place now = link->place();
    const client::Settings& settings = link->settings();
    core = now.memory;
    asks = now.memory == nullptr && now.socket != nullptr;
    fails = core == nullptr && !settings.off && settings.if_absent == IfAbsent::Fail;
  }
  if (asks) {
    const auto known = link->resolve(Record::kKind, name);
    if (!known) return known.error();
    fails = false;
  }
  // acquire: pairs with the release below.
  for (Record* known = list.load(std::memory_order_acquire); known != nullptr;
       known = known->next) {
    if (known->name_view == name) return known;
  }
  if (fails) return Error{Errc::NoDaemon, "no daemon answers: " + link->status().why};
  if (core == nullptr && !wire::is_name(name) && !wire::is_pattern_name(name)) {
    return Error{Errc::UnknownName, "no " + std::string(Record::kWhat) +
                                        " can have this name: 1 to 63 letters, digits and . _ : "
                                        "-, the first a letter or a digit"};
  }
  auto record = std::unique_ptr<Record>(new (std::nothrow) Record);
  if (record == nullptr) {
    return Error{Errc::NoMemory, "no memory for the record of a " + std::string(Record::kWhat)};
  }
  const std::size_t length = std::min(name.size(), sizeof record->name - 1);
  std::memcpy(record->name, name.data(), length);
  record->name_view = {record->name, length};
  record->link = link;
  record->watcher = watcher;
  if (core != nullptr) {
    auto* const spot = spot_in(*record, *core);
    if (spot == nullptr) return unknown_name<Record>(*core, name);
    record->at.store(spot, std::memory_order_relaxed);
  }
  record->next = list.load(std::memory_order_relaxed);
  // PUBLISHES the record to the loop above. Two threads that ask for a new name at once make two
  // records; both are good.
  Record* const made = record.release();
  while (!list.compare_exchange_weak(made->next, made, std::memory_order_release,
                                     std::memory_order_relaxed)) {}
  return made;
}

// Both kinds there are.
template Found<BreakerPlace> find_spot(BreakerRecord&) noexcept;
template Found<BreakerPlace> absent_spot(BreakerRecord&) noexcept;
template Found<BulkheadSpot> absent_spot(BulkheadRecord&) noexcept;
template std::string nowhere_text(const BreakerRecord&, Nowhere);
template Result<BreakerRecord*> named_record(std::atomic<BreakerRecord*>&, std::string_view,
                                             Client::Core&, client::DaemonLink*, AskWatcher*);
template Found<BulkheadSpot> find_spot(BulkheadRecord&) noexcept;
template std::string nowhere_text(const BulkheadRecord&, Nowhere);
template Result<BulkheadRecord*> named_record(std::atomic<BulkheadRecord*>&, std::string_view,
                                              Client::Core&, client::DaemonLink*, AskWatcher*);

}  // namespace cutwater::detail
