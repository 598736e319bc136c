// SPDX-License-Identifier: Apache-2.0
// The clients that are alive in this process, by number. Needed by two moments that know no Client:
// a thread that ends gives back its stripe and leases only while that memory is still mapped, and a
// forked child drops the connections it inherited. The list is the one piece of process-wide state
// of the library: pthread_atfork and the end of a thread take no argument. Thread safety:
// everything from any thread; fork() is held off while the list changes.
#pragma once
#include <cstdint>

#include <cutwater/client.hpp>

#include "shm/view.hpp"

namespace cutwater::detail {

/// A number for a new client: 1, 2, ...
std::uint64_t next_client_number() noexcept;

/// A number for a new record of a limit: 1, 2, ...
std::uint64_t next_limit_number() noexcept;

void register_core(Client::Core& core) noexcept;
/// After it returns no other thread touches the client's memory on behalf of an ended thread.
void unregister_core(Client::Core& core) noexcept;

/// Runs `use` with the memory of client `number`, which stays mapped meanwhile; not at all when
/// that client is gone. `use` must not open or close a client.
void with_client(std::uint64_t number, void (*use)(const shm::View& view, void* argument),
                 void* argument) noexcept;

}  // namespace cutwater::detail
