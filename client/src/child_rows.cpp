// SPDX-License-Identifier: Apache-2.0
#include "src/child_rows.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <memory>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "src/address.hpp"
#include "src/connection.hpp"
#include "src/daemon_link.hpp"

namespace cutwater::detail {

struct ChildRows::Node {
  ClientRow row;
  client::Connection connection;
  Node* next = nullptr;
};

ChildRows::~ChildRows() {
  for (Node* node = newest_.load(std::memory_order_acquire); node != nullptr;) {
    Node* const next = node->next;
    if (node->row.life == process_life()) node->connection.bye();
    delete node;
    node = next;
  }
}

const ClientRow* ChildRows::own() const noexcept {
  // acquire: pairs with the release in ask(), so the row found is whole.
  const Node* const node = newest_.load(std::memory_order_acquire);
  return node != nullptr && node->row.life == process_life() ? &node->row : nullptr;
}

bool ChildRows::need(const shm::View& view) noexcept {
  if (own() != nullptr) return true;
  if (link_ == nullptr || link_->settings().off) return false;
  const std::int64_t until = boottime_ns() + link_->settings().ask_timeout.count();
  while (!asking_.try_lock()) {          // another thread of this child is at it
    if (boottime_ns() >= until) return false;
    const timespec time{0, 100'000};
    nanosleep(&time, nullptr);
  }
  bool got = own() != nullptr;
  const std::int64_t now = boottime_ns();
  if (!got && now >= next_try_ns_) {
    try {
      got = ask(view);
    } catch (const std::exception&) {
      got = false;                       // no memory for it
    }
    if (!got) next_try_ns_ = now + kPauseNs;
  }
  asking_.unlock();
  return got;
}

bool ChildRows::ask(const shm::View& view) {
  const client::Settings& settings = link_->settings();
  const auto deadline = client::Deadline::in(std::min(settings.ask_timeout, settings.timeout));
  const auto found = client::find_address(settings.address);
  if (!found) return false;
  auto link = client::Connection::connect(found->path, deadline);
  if (!link) return false;
  wire::Hello hello = client::hello_for(settings.name, wire::Want::Row);
  hello.segment.assign(reinterpret_cast<const char*>(view.uuid), wire::kIdSize);
  const auto greeting = link->hello(std::move(hello), deadline);
  if (!greeting) return false;
  const wire::Welcome& welcome = greeting->welcome;
  if (welcome.mode != wire::Want::Row || welcome.row_index == 0) {
    link->bye();                         // another memory, no right, or no row left
    return false;
  }
  auto node = std::make_unique<Node>(
      Node{{welcome.row_index, welcome.row_generation, process_life()}, std::move(*link)});
  node->next = newest_.load(std::memory_order_relaxed);
  newest_.store(node.release(), std::memory_order_release);
  return true;
}

void ChildRows::on_fork() noexcept {
  for (Node* node = newest_.load(std::memory_order_acquire); node != nullptr; node = node->next) {
    node->connection.abandon();
  }
}

}  // namespace cutwater::detail
