// SPDX-License-Identifier: Apache-2.0
#include "src/address.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "shm/directory.hpp"
#include "shm/socket_place.hpp"

namespace cutwater::client {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

bool is_socket(const std::string& path) noexcept {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

Result<Address> parse(std::string_view text, std::string origin) {
  const std::string shown = origin + " \"" + std::string(text) + "\": ";
  if (text.starts_with("tcp:")) {
    return Error{Errc::Unsupported, shown + "this version reaches daemons of the same host only; "
                                            "use unix:PATH"};
  }
  if (!text.starts_with("unix:")) {
    return Error{Errc::InvalidArgument, shown + "an address is unix:PATH, for example "
                                                "unix:/run/cutwater/main/cutwater.sock"};
  }
  std::string_view path = text.substr(5);
  bool ask = false;
  if (const std::size_t mark = path.find('?'); mark != std::string_view::npos) {
    if (path.substr(mark) != "?ask") {
      return Error{Errc::InvalidArgument, shown + "unknown option \"" +
                                              std::string(path.substr(mark)) +
                                              "\" behind the path; there is ?ask"};
    }
    ask = true;
    path = path.substr(0, mark);
  }
  if (path.empty()) return Error{Errc::InvalidArgument, shown + "the path is missing"};
  return Address{std::string(path), std::move(origin), ask};
}

/// No socket anywhere: each place, and what to do about it (C062).
Error nothing_found(const std::vector<std::string>& tried) {
  std::string text = "no daemon found: there is no socket at ";
  for (std::size_t i = 0; i < tried.size(); ++i) text += (i == 0 ? "" : ", ") + tried[i];
  text += "; start cutwaterd, or name its socket with CUTWATER_ADDRESS=unix:PATH; in a container, "
          "mount the directory of the host's socket";
  return {Errc::NoDaemon, std::move(text)};
}

}  // namespace

std::vector<std::string> usual_sockets() {
  shm::DirectoryQuery query;
  query.runtime_directory = variable("RUNTIME_DIRECTORY");
  query.runtime_directory.resize(std::min(query.runtime_directory.find(':'),
                                          query.runtime_directory.size()));
  query.xdg_runtime_dir = variable("XDG_RUNTIME_DIR");
  query.create = false;
  std::vector<std::string> sockets;
  for (const std::string& place : shm::directory_candidates(query)) {
    sockets.push_back(shm::private_socket_path(place));
    sockets.push_back(shm::shared_socket_path(place));
  }
  return sockets;
}

Result<Address> find_address(std::string_view given) {
  if (!given.empty()) return parse(given, "address");
  if (const std::string wanted = variable("CUTWATER_ADDRESS"); !wanted.empty()) {
    return parse(wanted, "CUTWATER_ADDRESS");
  }
  return first_socket(usual_sockets());
}

Result<Address> first_socket(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    if (is_socket(place)) return Address{place, "usual place", false};
  }
  return nothing_found(places);
}

}  // namespace cutwater::client
