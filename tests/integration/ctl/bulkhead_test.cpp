// SPDX-License-Identifier: Apache-2.0
// `cutwaterctl bulkhead ...`, and what a configuration of breakers and bulkheads needs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "shm/bulkhead/bulkhead.hpp"
#include "shm/directory.hpp"
#include "shm/segment.hpp"
#include "scenes.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

/// A program that holds places of a bulkhead.
class Holder {
 public:
  Holder(const Instance& instance, const std::string& bulkhead) : client_(instance.client()) {
    shm::DirectoryQuery query;
    query.setting = instance.place().memory();
    query.create = false;
    const auto directory = shm::open_directory(query);
    segment_ = std::make_unique<shm::Segment>(
        shm::Segment::open_files(directory->fd.get(), shm::Access::Client).value());
    ref_ = shm::find_bulkhead(view(), bulkhead);
    const auto all = instance.json({"clients"});
    for (const auto& row : all["clients"]) {
      if (row["pid"] != ::getpid()) continue;
      caller_.row = row["row"];
      caller_.generation = row["generation"];
    }
    caller_.stripe = shm::shared_stripe(view());
  }
  void take(int places) {
    for (int i = 0; i < places; ++i) {
      const auto entry = shm::enter_bulkhead(view(), ref_, caller_);
      EXPECT_TRUE(entry.granted);
      held_.push_back(entry.place);
    }
  }
  /// A call of its own in line.
  shm::WaitTicket wait() {
    const shm::JoinedLine joined = shm::join_line(view(), ref_, caller_, {});
    EXPECT_TRUE(joined.joined);
    return joined.wait;
  }
  void leave(const shm::WaitTicket& wait) { shm::leave_line(view(), ref_, caller_, wait); }
  void give_back() {
    for (const auto& place : held_) {
      EXPECT_EQ(shm::leave_bulkhead(view(), ref_, caller_, place), shm::Left::Returned);
    }
    held_.clear();
  }

 private:
  const shm::View& view() const { return segment_->view(); }
  Client client_;                              // its row holds them
  std::unique_ptr<shm::Segment> segment_;
  shm::BulkheadRef ref_;
  shm::BulkheadCaller caller_;
  std::vector<shm::PlaceTicket> held_;
};

TEST(BulkheadCommand, ListAndGetShowPlacesAndTheOldest) {
  Instance instance("capacity: { keys: 1024 }\n"
                    "bulkheads:\n"
                    "  fraud: { max-concurrent-calls: 2, note: card checks }\n"
                    "  stock: { max-concurrent-calls: 5, max-wait-duration: 1s }\n");

  const ProgramRun list = instance.tool({"bulkhead", "list"});
  const ProgramRun get = instance.tool({"bulkhead", "get", "fraud"});

  EXPECT_EQ(list.out,
            "BULKHEAD  IN USE  LIMIT  WAITING  OVER  OLDEST  HELD P50<=  HELD P99<=  WAITED P50<=  "
            "WAITED P99<=\n"
            "fraud          0      2        0     0       -           -           -             -  "
            "           -\n"
            "stock          0      5        0     0       -           -           -             -  "
            "           -\n");
  EXPECT_EQ(get.code, 0);
  EXPECT_TRUE(has(get.out, "in use    0 of 2 places")) << get.out;
  EXPECT_TRUE(has(get.out, "note      card checks")) << get.out;

  Holder holder(instance, "fraud");
  holder.take(2);
  instance.step_by(90 * kSecond);
  const ProgramRun full = instance.tool({"bulkhead", "get", "fraud"});
  EXPECT_EQ(full.code, 1);
  EXPECT_TRUE(has(full.out, "2 of 2 places")) << full.out;
  EXPECT_TRUE(has(full.out, "refused: full, come back in about 1s")) << full.out;
  EXPECT_TRUE(has(full.out, "oldest    1m30s")) << full.out;
  EXPECT_TRUE(has(instance.tool({"status"}).out,
                  "bulkhead    fraud 2 of 2 places in use, 0 waiting, the oldest for 1m30s"));
  const auto json = instance.json({"bulkhead", "list"})["bulkheads"];
  EXPECT_EQ(json[0]["in_use"], 2);
  EXPECT_EQ(json[0]["allowed"], false);

  holder.give_back();
  const auto after = parse(instance.tool({"bulkhead", "get", "fraud", "-o", "json"}).out);
  EXPECT_EQ(after["in_use"], 0);
  EXPECT_EQ(after["held"]["calls"], 2);
  EXPECT_GE(after["held"]["p50_ns"], 90 * kSecond);
  EXPECT_EQ(after["counters"]["granted"], 2);
  EXPECT_EQ(instance.tool({"bulkhead", "get", "frud"}).code, 6);

  instance.daemon().kill(SIGKILL);
  const ProgramRun dead = instance.tool({"bulkhead", "get", "fraud", "-o", "json"});
  auto read = parse(dead.out);
  EXPECT_EQ(read["source"], "memory");
  EXPECT_EQ(read["held"], after["held"]);
  EXPECT_EQ(instance.tool({"bulkhead", "get", "frud"}).code, 6);
}

TEST(BulkheadCommand, ExplainSaysWhatTheNextCallerGetsAndWhoIsInside) {
  Instance instance("capacity: { keys: 1024 }\n"
                    "bulkheads:\n"
                    "  fraud: { max-concurrent-calls: 2, max-hold: 10m }\n"
                    "  stock: { max-concurrent-calls: 1, max-wait-duration: 1h }\n");
  const std::string me = "pid " + std::to_string(::getpid());
  const ProgramRun free = instance.tool({"bulkhead", "explain", "fraud"});
  EXPECT_EQ(free.code, 0);
  EXPECT_EQ(free.out,
            "fraud\n"
            "  the next caller gets a place: 0 of 2 places are held\n"
            "  nobody waits in line here: max-wait-duration is 0\n"
            "  a place that is held longer than 600 s is taken back (max-hold)\n");

  Holder holder(instance, "fraud");
  holder.take(2);
  instance.step_by(90 * kSecond);
  const ProgramRun full = instance.tool({"bulkhead", "explain", "fraud"});
  EXPECT_EQ(full.code, 1);
  EXPECT_TRUE(has(full.out, "  the next caller is refused: 2 of 2 places are held, the oldest for "
                            "90 s; come back in about 1 s\n"))
      << full.out;
  EXPECT_TRUE(has(full.out, "  " + me + " holds 2 places, the oldest for 90 s\n")) << full.out;

  Holder one(instance, "stock");
  one.take(1);
  const shm::WaitTicket wait = one.wait();
  const ProgramRun line = instance.tool({"bulkhead", "explain", "stock", "-o", "json"});
  EXPECT_EQ(line.code, 1);
  const auto json = parse(line.out);
  EXPECT_EQ(json["holders"].size(), 1U);
  EXPECT_EQ(json["holders"][0]["pid"], ::getpid());
  EXPECT_EQ(json["holders"][0]["places"], 1);
  EXPECT_EQ(json["holders"][0]["waiting"], 1);
  EXPECT_EQ(json["next_row"], json["holders"][0]["row"]);
  EXPECT_EQ(json["explain"][1],
            "one that waits is number 2 in line, of at most 64, and waits at most 3600 s");
  EXPECT_EQ(json["explain"][2], "the next place that is given back goes to " + me +
                                    ", first in line, which waits for 3600 s more at most");
  EXPECT_EQ(instance.tool({"bulkhead", "explain", "frud"}).code, 6);

  instance.daemon().kill(SIGKILL);
  const auto dead = parse(instance.tool({"bulkhead", "explain", "stock", "-o", "json"}).out);
  EXPECT_EQ(dead["source"], "memory");
  EXPECT_EQ(dead["explain"], json["explain"]);
  one.leave(wait);
}

TEST(ConfigCheck, SaysWhatBreakersAndBulkheadsNeedAndWhatDoesNotFit) {
  ScratchPlace place;
  const std::string fits = "breakers: { fraud: {} }\nbulkheads: { fraud: {} }\n";
  place.write_config(fits);
  const ProgramRun good = run_tool({"config", "check", place.config()});
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_TRUE(has(good.out, "of 524288 of capacity.breaker-memory")) << good.out;
  EXPECT_TRUE(has(good.out, "needed: 25 of 4096 of capacity.bulkhead-cells")) << good.out;

  place.write_config("capacity: { bulkheads: 4 }\nbulkheads:\n"
                     "  'bank-*': { max-instances: 3, max-concurrent-calls: 5, "
                     "max-wait-duration: 1s, max-waiting: 7 }\n");
  const ProgramRun pattern = run_tool({"config", "check", place.config()});
  EXPECT_EQ(pattern.code, 0) << pattern.out << pattern.err;
  EXPECT_TRUE(has(pattern.out, "needed: 4 of 4 of capacity.bulkheads")) << pattern.out;
  EXPECT_TRUE(has(pattern.out, "needed: 20 of 4096 of capacity.bulkhead-cells")) << pattern.out;
  EXPECT_TRUE(has(pattern.out, "needed: 28 of ")) << pattern.out;

  place.write_config("capacity: { breaker-memory: 64KiB }\nbreakers:\n"
                     "  big: { sliding-window-type: COUNT_BASED, sliding-window-size: 65535 }\n");
  const ProgramRun bad = run_tool({"config", "check", place.config()});
  EXPECT_EQ(bad.code, 4);
  EXPECT_TRUE(has(bad.out, "set capacity.breaker-memory to at least")) << bad.out;
  const ProgramRun daemon = test::run_program(
      {DaemonProcess::program(), "--check-config", "--config", place.config()});
  EXPECT_EQ(daemon.code, 4);
  EXPECT_TRUE(has(daemon.out, "set capacity.breaker-memory to at least")) << daemon.out;
  place.write_config("capacity: { bulkhead-cells: 4096 }\n"
                     "bulkheads: { a: { max-concurrent-calls: 4096 }, b: {} }\n");
  const ProgramRun places = run_tool({"config", "check", place.config()});
  EXPECT_EQ(places.code, 4);
  EXPECT_TRUE(has(places.out, "set capacity.bulkhead-cells to at least 4121")) << places.out;
}

}  // namespace
}  // namespace cutwater::ctl
