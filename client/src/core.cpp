// SPDX-License-Identifier: Apache-2.0
#include "src/core.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "base/fork_page.hpp"
#include "config/words.hpp"
#include "src/breaker_record.hpp"
#include "src/bulkhead_record.hpp"
#include "src/core_registry.hpp"
#include "src/daemon_link.hpp"
#include "src/known_key.hpp"
#include "src/no_memory.hpp"
#include "src/thread_counter.hpp"
#include "src/thread_lease.hpp"

namespace cutwater {
namespace {

/// What `current` of a core without a memory is read from: no rules, and never any.
shm::RulesControl no_rules{};

constexpr std::size_t kNamesShown = 3;
constexpr std::size_t kNameBytesShown = 63;

/// Names of all limits in force.
std::vector<std::string> limit_names(const shm::View& view) {
  std::vector<std::string> names;
  const std::uint64_t current = view.current();
  for (std::uint32_t index = 0; index < view.limit_count; ++index) {
    if (view.limit_config(current, index).windows == 0) continue;
    const shm::NameRecord& name = view.limit_name(current, index);
    names.emplace_back(name.text, std::min<std::size_t>(name.length, sizeof name.text));
  }
  return names;
}

/// A name that may be anything, as part of a message.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, kNameBytesShown));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return name.size() > kNameBytesShown ? text + "..." : text;
}

/// "no limit "x"; the nearest are ...": the nearest by spelling first, at most three.
Error unknown_limit(const shm::View& view, std::string_view instance, std::string_view name) {
  std::vector<std::string> names = limit_names(view);
  std::string text = "instance \"" + std::string(instance) + "\" has no limit \"" + shown(name) +
                     "\"";
  if (names.empty()) {
    return {Errc::UnknownName,
            text + ": it has no limits; add one under limits: in its configuration"};
  }
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return config::edit_distance(name, a) < config::edit_distance(name, b);
  });
  text += names.size() == 1 ? "; there is " : "; the nearest are ";
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return {Errc::UnknownName, text};
}

}  // namespace

Client::Core::Core(shm::Segment segment, Private own)
    : segment_(std::move(segment)), instance_(std::move(own.instance)) {
  row_ = {own.row.index, own.row.generation, process_life()};
  own_.emplace(std::move(own));
  start();
}

Client::Core::Core(shm::Segment segment, Attached attached, client::DaemonLink* link)
    : segment_(std::move(segment)), instance_(std::move(attached.instance)), link_(link) {
  row_ = {attached.row.index, attached.row.generation, process_life()};
  attached_.emplace(std::move(attached));
  start();
}

Client::Core::Core(shm::Segment segment, Attached attached,
                   std::unique_ptr<client::DaemonLink> link)
    : Core(std::move(segment), std::move(attached), link.get()) {
  owned_link_ = std::move(link);
  owned_link_->set_head(*this);
}

Client::Core::Core(std::unique_ptr<client::DaemonLink> link) : link_(link.get()) {
  owned_link_ = std::move(link);
  owned_link_->set_head(*this);
  start();
}

void Client::Core::start() {
  if (segment_) view_ = segment_->view();
  else view_.rules_control = &no_rules;
  number_ = detail::next_client_number();
  if (own_) {
    own_->renewal = std::make_unique<detail::CalendarRenewal>(view_, *own_->publisher);
    if (own_->clock) own_->clock->add(own_->renewal.get());
  }
  detail::prepare_thread_exit();
  detail::prepare_leases();
  detail::register_core(*this);
}

Client::Core::~Core() {
  if (segment_) detail::give_back_leases(number_);
  detail::unregister_core(*this);
  owned_link_.reset();
  if (own_ && own_->clock) own_->clock->remove(own_->renewal.get());
  if (client::Connection* link = connection()) link->bye();
  detail::LimitState* state = limits_.load(std::memory_order_acquire);
  while (state != nullptr) {
    detail::LimitState* const next = state->next;
    delete state;
    state = next;
  }
  detail::delete_records(breakers_);
  detail::delete_records(bulkheads_);
}

detail::LimitState* Client::Core::known(std::string_view name) const noexcept {
  // acquire: pairs with the release in add(), so the record found is whole.
  detail::LimitState* known = limits_.load(std::memory_order_acquire);
  while (known != nullptr && known->owner.name != name) known = known->next;
  return known;
}

bool Client::Core::has_record(std::string_view name, const void* owner) const noexcept {
  const detail::LimitState* known = limits_.load(std::memory_order_acquire);
  while (known != nullptr && known != owner) known = known->next;
  return known != nullptr && known->owner.name == name;
}

Result<detail::LimitState*> Client::Core::limit(std::string_view name) {
  const bool left = !segment_ || (view_.current() & shm::kCurrentSupersededBit) != 0;
  if (link_ != nullptr && left) return link_->limit(*this, name);
  if (detail::LimitState* const found = find(name)) return found;
  if (shm::find_limit(view_, name).index == shm::kNoLimit) {
    return unknown_limit(view_, instance_, name);
  }
  return Error{Errc::NoMemory, "no memory for the record of a limit"};
}

detail::LimitState* Client::Core::find(std::string_view name) noexcept {
  if (detail::LimitState* const found = known(name)) return found;
  const shm::LimitRef ref = shm::find_limit(view_, name);
  if (ref.index == shm::kNoLimit) return nullptr;
  detail::LimitState* const state = make_record(name);
  if (state == nullptr) return nullptr;
  if (watcher_ != nullptr) return add(state);
  state->ref.store(detail::pack_ref(ref), std::memory_order_relaxed);
  state->secret = shm::make_limit_secret(view_.secret, name);
  detail::prepare_plain_rule(*state);
  detail::refresh(*state, view_.current());
  return add(state);
}

Result<detail::LimitState*> Client::Core::add_away(std::string_view name,
                                                   const detail::ToldLimit& told) {
  detail::LimitState* const state = make_record(name);
  if (state == nullptr) return Error{Errc::NoMemory, "no memory for the record of a limit"};
  state->away.store(true, std::memory_order_relaxed);
  state->max_waiting.store(told.max_waiting, std::memory_order_relaxed);
  state->told = told;
  return add(state);
}

detail::LimitState* Client::Core::make_record(std::string_view name) const noexcept {
  auto* const state = new (std::nothrow) detail::LimitState;
  if (state == nullptr) return nullptr;
  std::memcpy(state->name, name.data(), std::min(name.size(), sizeof state->name - 1));
  state->owner.name = {state->name, name.size()};
  state->view = &view_;
  state->row = &row_;
  state->life = &fork_page().life;
  state->client = number_;
  state->number = detail::next_limit_number();
  state->link = link_;
  state->watcher = watcher_;
  if (own_ && !own_->clock) state->renewal = own_->renewal.get();
  if (watcher_ != nullptr) state->away.store(true, std::memory_order_relaxed);
  state->decided_by = is_private() ? DecidedBy::Private : DecidedBy::Memory;
  return state;
}

detail::LimitState* Client::Core::add(detail::LimitState* state) noexcept {
  // A list and not a locked table: a forked child may find a lock held by a thread it has not got.
  // Two threads that ask for a new name at once make two records; both are good.
  state->next = limits_.load(std::memory_order_relaxed);
  // PUBLISHES the record to the loops above.
  while (!limits_.compare_exchange_weak(state->next, state, std::memory_order_release,
                                        std::memory_order_relaxed)) {}
  return state;
}

std::int64_t Client::Core::now_ns() noexcept {
  const bool left = !segment_ || (view_.current() & shm::kCurrentSupersededBit) != 0;
  return link_ != nullptr && left ? link_->now_ns() : view_.clock.now();
}

ClientStatus Client::Core::status() const {
  if (link_ != nullptr) return link_->status();
  return {};
}

client::Connection* Client::Core::connection() noexcept {
  const bool ours = row_.life == process_life();
  // acquire: pairs with the release in row_offered(), so what it points to is whole.
  client::Connection* const renewed = connection_.load(std::memory_order_acquire);
  if (renewed != nullptr) return ours ? renewed : nullptr;
  return attached_ && ours ? &attached_->connection : nullptr;
}

std::string Client::Core::row_token() const {
  return attached_ && row_.life == process_life() ? attached_->session : std::string{};
}

void Client::Core::row_offered(std::unique_ptr<client::Connection> connection,
                               std::string session) noexcept {
  // Before the former one is closed: a fork in between finds a connection either way.
  connection_.store(connection.get(), std::memory_order_release);
  std::swap(renewed_, connection);
  attached_->session = std::move(session);
  attached_->connection.abandon();
}

shm::RowGrant Client::Core::row() const noexcept {
  if (row_.life != process_life()) return {};
  return {row_.index, row_.generation};
}

void Client::Core::on_fork() noexcept {
  if (owned_link_) owned_link_->on_fork();
  if (attached_) attached_->connection.abandon();
  client::Connection* const renewed = connection_.load(std::memory_order_acquire);
  if (renewed != nullptr) renewed->abandon();
  child_rows_.on_fork();
}

// ---- Client -------------------------------------------------------------------------------------

Client::Client(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Limit> Client::limit(std::string_view name) {
  return detail::or_no_memory([&]() -> Result<Limit> {
    auto found = core_->limit(name);
    if (!found) return found.error();
    return Limit{*found};
  });
}

Result<void> Client::reload(std::string_view yaml) {
  return detail::or_no_memory([&] { return core_->reload(yaml); });
}
ClientStatus Client::status() const { return core_->status(); }
Nanos Client::now() const noexcept { return Nanos{core_->now_ns()}; }
std::string_view Client::instance() const noexcept { return core_->instance(); }

}  // namespace cutwater
