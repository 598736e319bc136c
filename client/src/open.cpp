// SPDX-License-Identifier: Apache-2.0
// Client::open(): what was wanted, then the first attempt; everything later is DaemonLink's.
#include "src/core.hpp"
#include "src/daemon_link.hpp"

namespace cutwater {

Result<Client> Client::open(std::string_view address, const ClientOptions& options) {
  auto settings = client::settings_for(address, options);
  if (!settings) return settings.error();
  std::unique_ptr<Core> own;
  if (!options.in_process.empty()) {
    auto made = in_memory(options.in_process);
    if (!made) return made.error();
    own = std::move(made->core_);
  }
  auto core = client::DaemonLink::open(std::move(*settings), std::move(own));
  if (!core) return core.error();
  return Client{std::move(*core)};
}

}  // namespace cutwater
