// SPDX-License-Identifier: Apache-2.0
// Way: one way of asking a limit, on a clock that the test moves. The same question must get the
// same answer whichever way it is asked, so tests of numbers run over every way there is; a new
// door adds a class here.
//
//   auto way = maker.make();                        // for each maker of every_way()
//   ASSERT_TRUE(way->open("limits: { api: { rate: 1/s, burst: 5 } }"));
//   way->at(1500ms);                                // time of the test: 0 when open() returned
//   way->limit("api").try_acquire("alice");
//
// Time moves only by at() and by reload(). When the way itself fails (a daemon that does not
// answer) the test program ends; open() and reload() hand back what the product says of a
// configuration.
// Thread safety: one thread; what limit() and client() give has the product's own.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/client.hpp>

#include "shm/view.hpp"

namespace cutwater::test {

class Way {
 public:
  virtual ~Way() = default;

  /// Starts with this configuration, once. A small capacity is set unless the text sets one.
  virtual Result<void> open(const std::string& yaml) = 0;

  /// Moves the clock to `t`; an earlier moment than the present changes nothing.
  virtual void at(Nanos t) = 0;

  /// Another configuration. It takes effect 1 ns after the present moment, and the clock stands
  /// there afterwards: at(m - 1ns) and reload() make a change of moment m.
  virtual Result<void> reload(const std::string& yaml) = 0;

  /// A client to ask.
  virtual Client& client() = 0;
  /// In a forked child: the client to ask there. Its own where a process can have one, else the
  /// inherited one.
  virtual Client& client_of_child() = 0;
  /// The memory where its questions are decided.
  virtual const shm::View& view() = 0;
  /// Where `cutwaterctl` finds it; empty where it cannot.
  virtual std::string address() const { return {}; }
  /// What a daemon wrote to its log; empty where there is none.
  virtual std::string log() const { return {}; }

  Limit limit(std::string_view name) { return client().limit(name).value(); }
};

struct WayMaker {
  const char* name;                          ///< good as a part of a test's name
  std::unique_ptr<Way> (*make)();
};

/// InMemory: Client::in_memory() with a SteppedClock.
/// Mapped: Client::open() at a real cutwaterd of its own that was started with --clock=stepped. The
/// clock is moved and the configuration reloaded by STEER, as an operator does.
/// Asked: the same, but its client asks the daemon over the socket (`unix:PATH?ask`).
const std::vector<WayMaker>& every_way();

}  // namespace cutwater::test
