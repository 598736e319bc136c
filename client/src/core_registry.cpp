// SPDX-License-Identifier: Apache-2.0
#include "src/core_registry.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "src/core.hpp"

namespace cutwater::detail {
namespace {

std::atomic<std::uint64_t> clients_numbered{0};
std::atomic<std::uint64_t> limits_numbered{0};

/// Constant-initialised and never destroyed in a way that matters: threads may end after main().
constinit std::mutex registry_mutex;
constinit Client::Core* first_core = nullptr;

std::once_flag handlers_installed;

void before_fork() noexcept { registry_mutex.lock(); }
void after_fork_in_parent() noexcept { registry_mutex.unlock(); }
void after_fork_in_child() noexcept {
  for (Client::Core* core = first_core; core != nullptr; core = core->next_registered) {
    core->on_fork();
  }
  registry_mutex.unlock();
}

}  // namespace

std::uint64_t next_client_number() noexcept {
  return clients_numbered.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t next_limit_number() noexcept {
  return limits_numbered.fetch_add(1, std::memory_order_relaxed) + 1;
}

void register_core(Client::Core& core) noexcept {
  std::call_once(handlers_installed, [] {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  });
  const std::lock_guard lock(registry_mutex);
  core.next_registered = first_core;
  first_core = &core;
}

void unregister_core(Client::Core& core) noexcept {
  const std::lock_guard lock(registry_mutex);
  for (Client::Core** place = &first_core; *place != nullptr; place = &(*place)->next_registered) {
    if (*place != &core) continue;
    *place = core.next_registered;
    return;
  }
}

void with_client(std::uint64_t number, void (*use)(const shm::View& view, void* argument),
                 void* argument) noexcept {
  const std::lock_guard lock(registry_mutex);
  for (Client::Core* core = first_core; core != nullptr; core = core->next_registered) {
    if (core->number() == number) return use(core->view(), argument);
  }
}

}  // namespace cutwater::detail
