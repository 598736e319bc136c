// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

#include <gtest/gtest.h>

#include <new>

#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::server {
namespace {

class Listening : public testing::Test {
 protected:
  Listening() : log(Log::open(log_settings(), false).value()) {}
  config::Log log_settings() const {
    config::Log out;
    out.file = place.path() + "/log";
    return out;
  }
  std::string path() const { return place.path() + "/socket"; }
  SocketFile socket() const {
    return SocketFile::listen({.path = path(), .mode = 0600, .group = {}, .own_directory = false})
        .value();
  }

  test::ScratchPlace place;
  std::unique_ptr<Log> log;
  asio::io_context loop;
};

TEST_F(Listening, HandsEachConnectionOver) {
  int handed = 0;
  Listener listener(loop, socket(), *log, [&](Listener::Socket) { ++handed; });
  listener.start();
  const test::RawPeer one(path()), other(path());

  while (handed < 2) ASSERT_GT(loop.run_one_for(test::kWatchdog), 0U);

  EXPECT_EQ(listener.accepted(), 2U);
}

// Else the daemon would go on, and accept nobody any more.
TEST_F(Listening, WhatIsThrownAtAConnectionLeavesTheLoop) {
  Listener listener(loop, socket(), *log, [](Listener::Socket) { throw std::bad_alloc(); });
  listener.start();
  const test::RawPeer peer(path());

  EXPECT_THROW(loop.run_for(test::kWatchdog), std::bad_alloc);
}

}  // namespace
}  // namespace cutwater::server
