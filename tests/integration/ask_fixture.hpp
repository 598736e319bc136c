// SPDX-License-Identifier: Apache-2.0
// A daemon and raw peers that ask it, for the tests of asking over the socket.
#pragma once
#include "integration/session_fixture.hpp"
#include "shm/counters.hpp"
#include "shm/limit/admit.hpp"

namespace cutwater::test {

class Asked : public testing::Test {
 protected:
  static constexpr const char* kLimits =
      "capacity: { processes: 64, keys: 4096 }\n"
      "limits:\n"
      "  api: { rate: 10/s, burst: 10 }\n"
      "  slow: { rate: 1/h, burst: 5 }\n"
      "  tenant: { windows: [ { rate: 1/h, burst: 4 }, { rate: 1/d, burst: 100 } ] }\n";

  void start(DaemonOptions options = {}, const std::string& config = kLimits) {
    place_.write_config(config);
    daemon_.reset();
    daemon_.emplace(place_, std::move(options));
    ASSERT_TRUE(daemon_->ready()) << daemon_->log();
  }
  static wire::Hello hello(std::uint64_t features = wire::kFeatureRemember) {
    wire::Hello out = RawPeer::hello(Want::Ask, "asker");
    out.features = features;
    return out;
  }
  static wire::Acquire acquire(std::string limit, std::string key, std::uint64_t cost = 1) {
    wire::Acquire out;
    out.items.push_back({std::move(limit), std::move(key), cost, 0});
    return out;
  }
  static std::uint64_t remaining(RawPeer& peer, std::string limit, std::string key) {
    wire::Peek look;
    look.items.push_back({std::move(limit), std::move(key), 0, 0});
    const auto answer = peer.ask<wire::PeekAnswer>(look);
    return answer ? answer->decisions.at(0).remaining : 999'999;
  }
  shm::Segment map_memory() {
    shm::DirectoryQuery query;
    query.setting = place_.memory();
    query.create = false;
    directory_ = shm::open_directory(query).value();
    return shm::Segment::open_files(directory_.fd.get(), shm::Access::ReadOnly).value();
  }
  static std::uint64_t counter(const shm::Segment& segment, std::string_view limit,
                               shm::LimitCounter counter) {
    const auto ref = shm::find_limit(segment.view(), limit);
    return shm::sum_counters(segment.view(), ref.index)[static_cast<std::size_t>(counter)];
  }

  ScratchPlace place_;
  std::optional<DaemonProcess> daemon_;
  shm::MemoryDirectory directory_;
};

}  // namespace cutwater::test
