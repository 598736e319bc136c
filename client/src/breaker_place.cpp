// SPDX-License-Identifier: Apache-2.0
// Where a breaker is asked: found by name, again after a reload and in another memory.
#include <cxxabi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "base/fork_page.hpp"
#include "config/words.hpp"
#include "src/breaker_record.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "wire/message.hpp"

namespace cutwater::detail {
namespace {

constexpr int kCauses = 16;
constexpr std::string_view kUnaskedWhy =
    "this client asks its daemon over the socket, and breakers are asked in mapped memory only; "
    "let this process map the memory (access.map, an address without ?ask)";

/// A name that may be anything, as part of a message.
std::string shown_name(std::string_view name) {
  std::string shown(name.substr(0, 63));
  std::replace_if(shown.begin(), shown.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return shown;
}

void resolve(BreakerPlace& place, std::string_view name) noexcept {
  const shm::View& view = *place.view;
  const std::uint64_t current = view.current();
  const shm::BreakerRef found = shm::find_breaker(view, name);
  shm::BreakerInfo info;
  const bool there = found.index != shm::kNoLine && shm::read_breaker(view, found.index, info);
  const std::uint64_t word = std::uint64_t{found.incarnation} << 32 | found.index;
  place.plain.store(false, std::memory_order_relaxed);
  place.ref.store(word, std::memory_order_relaxed);
  const bool slow_on = info.numbers.slow_ppm != rule::kOffPpm;
  place.measures.store(there && slow_on, std::memory_order_relaxed);
  const bool off = (info.numbers.flags & rule::kBreakerSwitchedOff) != 0;
  place.plain.store(there && !off, std::memory_order_relaxed);
  // release: whoever finds these rules named finds what was stored above.
  place.seen_current.store(current, std::memory_order_release);
}

}  // namespace

shm::BreakerCaller BreakerPlace::caller() const noexcept {
  shm::BreakerCaller out;
  if (row->life == process_life()) {
    out.row = row->index;
    out.generation = row->generation;
  }
  out.stripe = counter_for(*this).stripe;
  out.local = &local;
  return out;
}

BreakerRecord::~BreakerRecord() {
  BreakerPlace* place = places.load(std::memory_order_acquire);
  while (place != nullptr) {
    BreakerPlace* const following = place->next;
    delete place;
    place = following;
  }
}

BreakerPlace* place_in(BreakerRecord& record, Client::Core& core) noexcept {
  for (BreakerPlace* p = record.places.load(std::memory_order_acquire); p != nullptr; p = p->next) {
    if (p->view == &core.view()) {
      // acquire: pairs with the release in resolve().
      if (p->seen_current.load(std::memory_order_acquire) != p->view->current()) {
        resolve(*p, record.name_view);
      }
      return p->breaker().index == shm::kNoLine ? nullptr : p;
    }
  }
  if (shm::find_breaker(core.view(), record.name_view).index == shm::kNoLine) return nullptr;
  auto* place = new (std::nothrow) BreakerPlace;
  if (place == nullptr) return nullptr;
  place->view = &core.view();
  place->row = &core.client_row();
  place->client = core.number();
  place->life = &fork_page().life;
  resolve(*place, record.name_view);
  place->next = record.places.load(std::memory_order_relaxed);
  // PUBLISHES the place to the loop above.
  while (!record.places.compare_exchange_weak(place->next, place, std::memory_order_release,
                                              std::memory_order_relaxed)) {}
  return place;
}

BreakerFound find_place(BreakerRecord& record) noexcept {
  BreakerPlace* at = record.at.load(std::memory_order_acquire);
  const bool left = at == nullptr || (at->view->current() & shm::kCurrentSupersededBit) != 0;
  if (left && record.link != nullptr) {
    client::DaemonLink& link = *record.link;
    const client::DaemonLink::Place now = link.place();
    at = now.memory == nullptr ? nullptr : place_in(record, *now.memory);
    record.at.store(at, std::memory_order_release);
    if (now.memory != nullptr) return {.place = at};
    if (link.settings().off) return {.why = BreakerNowhere::Off};
    // Never kept in `at`: the way back to the shared memory is looked for at each ask.
    Client::Core* const own = link.in_process();
    at = own == nullptr ? nullptr : place_in(record, *own);
    const bool asks = now.socket != nullptr;
    if (asks) link.say_breakers_unasked();
    return {at, asks ? BreakerNowhere::Socket : BreakerNowhere::Absent, at != nullptr};
  }
  if (at == nullptr) return {};
  // acquire: pairs with the release in resolve().
  if (at->seen_current.load(std::memory_order_acquire) != at->view->current()) {
    resolve(*at, record.name_view);
  }
  return {.place = at->breaker().index == shm::kNoLine ? nullptr : at};
}

// ---- nowhere ------------------------------------------------------------------------------------

bool grants_nowhere(const BreakerRecord& record, BreakerNowhere why) noexcept {
  if (why == BreakerNowhere::Off) return true;
  return record.link != nullptr && record.link->settings().if_absent == IfAbsent::Allow;
}

std::string nowhere_text(const BreakerRecord& record, BreakerNowhere why) {
  if (why == BreakerNowhere::Off) {
    return "every call is granted and nothing is recorded: CUTWATER_ENABLED=false";
  }
  std::string text;
  const bool chosen = record.link != nullptr && why != BreakerNowhere::Gone;
  if (chosen) {
    const IfAbsent choice = record.link->settings().if_absent;
    text = "if_absent: " + std::string(client::name_of(choice)) + ", ";
    if (choice == IfAbsent::InProcess) text += "whose configuration has no such breaker, ";
  }
  text += grants_nowhere(record, why) ? "every call is granted and nothing is recorded: "
                                      : "every call is refused: ";
  switch (why) {
    case BreakerNowhere::Socket: return text + std::string(kUnaskedWhy);
    case BreakerNowhere::Absent:
      return text + "no daemon answers and no memory is mapped; start the daemon";
    default:
      return text + "the rules in force have no breaker of this name (a reload removed it, or it "
                    "never was there); add it under breakers:";
  }
}

// ---- exceptions ---------------------------------------------------------------------------------

namespace {

Outcome outcome_of_one(const std::exception& thrown) noexcept {
  if (const auto* system = dynamic_cast<const std::system_error*>(&thrown)) {
    return outcome_of(system->code());
  }
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return Outcome::failure("local");
  return Outcome::failure("exception");
}

/// The first cause, from the outside in, that has a class of its own.
Outcome outcome_of_causes(const std::exception& thrown, int depth) noexcept {
  const Outcome own = outcome_of_one(thrown);
  if (own.failure_class() != "exception" || depth >= kCauses) return own;
  try {
    std::rethrow_if_nested(thrown);
  } catch (const std::exception& cause) {
    return outcome_of_causes(cause, depth + 1);
  } catch (...) {
    return own;
  }
  return own;
}

}  // namespace

Outcome outcome_of_current_exception() noexcept {
  try {
    throw;
  } catch (const std::exception& thrown) {
    return outcome_of_causes(thrown, 0);
  } catch (...) {
    return Outcome::failure("exception");
  }
}

}  // namespace cutwater::detail

namespace cutwater {

Outcome outcome_of(const std::error_code& code) noexcept {
  if (!code) return Outcome::success();
  const auto is = [&](std::errc condition) { return code == condition; };
  if (is(std::errc::timed_out)) return Outcome::failure("timeout");
  if (is(std::errc::connection_refused) || is(std::errc::host_unreachable) ||
      is(std::errc::network_unreachable) || is(std::errc::network_down)) {
    return Outcome::failure("connect");
  }
  if (is(std::errc::connection_reset) || is(std::errc::broken_pipe) ||
      is(std::errc::connection_aborted)) {
    return Outcome::failure("reset");
  }
  if (is(std::errc::operation_canceled)) return Outcome::failure("cancelled");
  if (is(std::errc::too_many_files_open) || is(std::errc::too_many_files_open_in_system) ||
      is(std::errc::not_enough_memory) || is(std::errc::no_buffer_space) ||
      is(std::errc::address_not_available)) {
    return Outcome::failure("local");
  }
  if (code.category() == std::system_category() || code.category() == std::generic_category()) {
    char name[32] = "errno:";
    const std::string number = std::to_string(code.value());
    std::strncat(name, number.c_str(), sizeof name - 7);
    const char* const word = strerrorname_np(code.value());
    if (word != nullptr) {
      name[6] = 0;
      std::strncat(name, word, sizeof name - 7);
    }
    return Outcome::failure(name);
  }
  return Outcome::failure("exception");
}

Result<Breaker> Client::breaker(std::string_view name) {
  auto found = core_->breaker(name);
  if (!found) return found.error();
  return Breaker{*found};
}

Result<detail::BreakerRecord*> Client::Core::breaker(std::string_view name) {
  Core* core = this;
  bool asks = false, fails = false;
  if (link_ != nullptr) {
    const client::DaemonLink::Place now = link_->place();
    const client::Settings& settings = link_->settings();
    core = now.memory;
    asks = now.memory == nullptr && now.socket != nullptr;
    fails = core == nullptr && !settings.off && settings.if_absent == IfAbsent::Fail;
  }
  if (asks && fails) {
    const std::string why = link_->status().why;
    return Error{Errc::Unsupported, "breaker \"" + detail::shown_name(name) + "\": " +
                                        std::string(detail::kUnaskedWhy) +
                                        (why.empty() ? "" : "; it asks because: " + why)};
  }
  // acquire: pairs with the release below.
  detail::BreakerRecord* known = breakers_.load(std::memory_order_acquire);
  for (; known != nullptr; known = known->next) {
    if (known->name_view == name) return known;
  }
  if (fails) return Error{Errc::NoDaemon, "no daemon answers: " + link_->status().why};
  if (core == nullptr && !wire::is_name(name)) {
    return Error{Errc::UnknownName, "no breaker can have this name: 1 to 63 letters, digits and . "
                                    "_ : -, the first a letter or a digit"};
  }
  auto record = std::unique_ptr<detail::BreakerRecord>(new (std::nothrow) detail::BreakerRecord);
  if (record == nullptr) return Error{Errc::NoMemory, "no memory for the record of a breaker"};
  const std::size_t length = std::min(name.size(), sizeof record->name - 1);
  std::memcpy(record->name, name.data(), length);
  record->name_view = {record->name, length};
  record->link = link_;
  if (asks) link_->say_breakers_unasked();
  if (core != nullptr) {
    record->at.store(detail::place_in(*record, *core), std::memory_order_relaxed);
    if (record->at.load(std::memory_order_relaxed) == nullptr) return core->unknown_breaker(name);
  }
  record->next = breakers_.load(std::memory_order_relaxed);
  // PUBLISHES the record to the loop above. Two threads that ask for a new name at once make two
  // records; both are good.
  detail::BreakerRecord* const made = record.release();
  while (!breakers_.compare_exchange_weak(made->next, made, std::memory_order_release,
                                          std::memory_order_relaxed)) {}
  return made;
}

void Client::Core::delete_breakers() noexcept {
  detail::BreakerRecord* record = breakers_.load(std::memory_order_acquire);
  while (record != nullptr) {
    detail::BreakerRecord* const next = record->next;
    delete record;
    record = next;
  }
}

Error Client::Core::unknown_breaker(std::string_view name) const {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < view_.breaker_count; ++i) {
    shm::BreakerInfo info;
    if (shm::read_breaker(view_, i, info)) names.emplace_back(info.name);
  }
  std::string text = "instance \"" + std::string(instance_) + "\" has no breaker \"" +
                     detail::shown_name(name) + "\"";
  if (names.empty()) {
    return {Errc::UnknownName,
            text + ": it has no breakers; add one under breakers: in its configuration"};
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

}  // namespace cutwater
