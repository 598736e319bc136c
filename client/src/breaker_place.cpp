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

namespace cutwater::detail {
namespace {

constexpr int kCauses = 16;

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
      resolve(*p, record.name_view);
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

BreakerPlace* find_place(BreakerRecord& record) noexcept {
  BreakerPlace* at = record.at.load(std::memory_order_acquire);
  const bool left = at == nullptr || (at->view->current() & shm::kCurrentSupersededBit) != 0;
  if (left && record.link != nullptr) {
    Client::Core* const core = record.link->place().memory;
    at = core == nullptr ? nullptr : place_in(record, *core);
    record.at.store(at, std::memory_order_release);
    return at;
  }
  if (at == nullptr) return nullptr;
  // acquire: pairs with the release in resolve().
  if (at->seen_current.load(std::memory_order_acquire) != at->view->current()) {
    resolve(*at, record.name_view);
  }
  return at->breaker().index == shm::kNoLine ? nullptr : at;
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
  // acquire: pairs with the release below.
  detail::BreakerRecord* known = breakers_.load(std::memory_order_acquire);
  for (; known != nullptr; known = known->next) {
    if (known->name_view == name) return known;
  }
  auto record = std::unique_ptr<detail::BreakerRecord>(new (std::nothrow) detail::BreakerRecord);
  if (record == nullptr) return Error{Errc::NoMemory, "no memory for the record of a breaker"};
  const std::size_t length = std::min(name.size(), sizeof record->name - 1);
  std::memcpy(record->name, name.data(), length);
  record->name_view = {record->name, length};
  record->link = link_;
  Core* core = this;
  if (link_ != nullptr) core = link_->place().memory;
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
  std::string shown(name.substr(0, 63));
  std::replace_if(shown.begin(), shown.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  std::string text = "instance \"" + std::string(instance_) + "\" has no breaker \"" + shown + "\"";
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
