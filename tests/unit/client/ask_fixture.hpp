// SPDX-License-Identifier: Apache-2.0
// A scripted daemon and a client that asks it.
#pragma once
#include <cutwater/client.hpp>

#include "unit/client/ask_daemon.hpp"

namespace cutwater::test {

using namespace std::chrono_literals;

class AskTest : public ::testing::Test {
 protected:
  AskDaemon daemon;
  std::mutex lines_mutex;
  std::vector<std::string> lines;

  ClientOptions options(IfAbsent if_absent = IfAbsent::Fail, Nanos ask_timeout = 60s) {
    ClientOptions out;
    out.name = "asker";
    out.timeout = 60s;
    out.ask_timeout = ask_timeout;
    out.if_absent = if_absent;
    out.log = [this](std::string_view line) {
      const std::lock_guard lock(lines_mutex);
      lines.emplace_back(line);
    };
    return out;
  }

  /// An address where nobody listens.
  static constexpr const char* kNowhere = "unix:/nowhere/at/all.sock";
  /// A client without memory and daemon; `own` is what it asks where it chose InProcess.
  Client absent(IfAbsent choice, const char* own) {
    ClientOptions wanted = options(choice);
    if (choice == IfAbsent::InProcess) wanted.in_process = own;
    return Client::open(kNowhere, wanted).value();
  }

  Client open(const ClientOptions& wanted) {
    auto client = Client::open(daemon.address_to_ask(), wanted);
    if (!client) {
      ADD_FAILURE() << client.error().text();
      std::abort();
    }
    return std::move(*client);
  }
};

}  // namespace cutwater::test
