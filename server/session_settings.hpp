// SPDX-License-Identifier: Apache-2.0
// From the configuration to what a session is given. Pure. Thread safety: values.
#pragma once
#include "config/config.hpp"
#include "source_book.hpp"
#include "wire/message.hpp"
#include "wire/session.hpp"

namespace cutwater::server {

/// How long a cut session and its row are kept for whoever takes it over (`session-grace`).
inline constexpr std::uint64_t kSessionGraceNs = 5'000'000'000;

inline wire::ServerSettings session_settings(const config::Config& config) {
  wire::ServerSettings out;
  out.hello_ns = config.listen.hello_timeout_ns;
  out.idle_ns = config.listen.idle_timeout_ns;
  out.drain_ns = config.instance.drain_ns;
  out.unsent_max = config.listen.max_unsent;
  return out;
}

inline void set_bounds(const config::Config& config, wire::Welcome& welcome) {
  welcome.credit_items = config.listen.credit_items;
  welcome.credit_bytes = config.listen.credit_bytes;
  welcome.max_frame = config.listen.max_frame;
}

inline SourceBook::Bounds source_bounds(const config::Config& config) {
  return {config.listen.max_connections, config.listen.max_connections_per_peer};
}

}  // namespace cutwater::server
