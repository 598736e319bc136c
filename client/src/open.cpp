// SPDX-License-Identifier: Apache-2.0
// Client::open(): what was wanted, then the first attempt; everything later is DaemonLink's.
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "src/no_memory.hpp"

namespace cutwater {

Result<Client> Client::open(std::string_view address, const ClientOptions& options) {
  return detail::or_no_memory([&] { return Core::open(address, options); });
}

Result<Client> Client::Core::open(std::string_view address, const ClientOptions& options) {
  auto settings = client::settings_for(address, options);
  if (!settings) return settings.error();
  std::unique_ptr<Core> own;
  if (!options.in_process.empty()) {
    auto made = Client::in_memory(options.in_process);
    if (!made) return made.error();
    own = std::move(made->core_);
  }
  auto core = client::DaemonLink::open(std::move(*settings), std::move(own));
  if (!core) return core.error();
  return Client{std::move(*core)};
}

}  // namespace cutwater
