// SPDX-License-Identifier: Apache-2.0
// Address: which daemon is meant. `unix:PATH`, `unix:PATH?ask` (over the socket even where the
// memory may be mapped), or nothing, which means $CUTWATER_ADDRESS and, when
// that is unset or empty too, the usual places in order (the same as the daemon's own, design 4.1):
//
//   $RUNTIME_DIRECTORY   /run/cutwater/main   $XDG_RUNTIME_DIR/cutwater/main
//   /dev/shm/cutwater-UID/main          each + /cutwater.sock, then + @socket/cutwater.sock, where
//                                       it lies when others than the daemon's user may connect
//
// The first of them where a socket lies is used, whether or not anybody listens on it.
// Reads the environment and looks at files; changes nothing. Thread safety: as getenv().
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

namespace cutwater::client {

struct Address {
  std::string path;          ///< of the socket, absolute or relative as given
  std::string origin;        ///< for messages: "address given", "CUTWATER_ADDRESS", "usual place"
  bool ask = false;          ///< `?ask`
};

/// InvalidArgument: not an address of ours, with the forms there are. Unsupported: `tcp:`.
/// NoDaemon: none of the usual places has a socket; the text names each, and what to start
/// or mount (C062).
Result<Address> find_address(std::string_view given);

/// The usual sockets in order, for messages and `cutwaterctl`.
std::vector<std::string> usual_sockets();

/// The first of `places` where a socket lies; NoDaemon as above.
Result<Address> first_socket(const std::vector<std::string>& places);

}  // namespace cutwater::client
