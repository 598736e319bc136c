// SPDX-License-Identifier: Apache-2.0
// attach(): one attempt to be let in by a daemon: find it, greet it, map what it gives and check
// that, close the descriptors; or, where the memory may not be mapped, a session to ask in.
// Everything that stands in the way of mapping but not of asking becomes `why`: the daemon's own
// reason (access, layout, clock), a memory that this library cannot use, descriptors that are not
// what was announced. Thread safety: pure but for the kernel.
#pragma once
#include <optional>
#include <string>

#include <cutwater/result.hpp>

#include "src/connection.hpp"
#include "src/core.hpp"
#include "src/settings.hpp"

namespace cutwater::client {

/// Either a memory or a session to ask in.
struct Attachment {
  struct Memory {
    shm::Segment segment;
    Client::Core::Attached attached;
  };
  struct Asking {
    Connection connection;
    Greeting greeting;
  };
  std::optional<Memory> memory;
  std::optional<Asking> asking;
  std::string why;               ///< asking: why not the memory; "" when it was not wanted
};

/// `row_token`: Core::row_token() of the memory this process had before; its row goes on there.
/// NoDaemon, NotPermitted (not even asking), Timeout, Protocol, Busy, InvalidArgument (the
/// address), Unsupported, System.
/// `session`: one that was asked in before, AskSocket::token().
Result<Attachment> attach(const Settings& settings, Deadline deadline, std::string row_token = {},
                          const std::string& session = {});

/// To the daemon that answers now: this process's row in `core`'s memory is its own still, and this
/// is its new connection. False: nobody answers yet. Another row than its own is given back.
bool offer_row(const Settings& settings, Client::Core& core, Deadline deadline);

/// True for an error no later attempt mends: the address itself.
bool is_lasting(const Error& error) noexcept;

}  // namespace cutwater::client
