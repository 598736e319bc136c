// SPDX-License-Identifier: Apache-2.0
// Actor: a thread that a test moves from one sync point to the next, so that a race happens in the
// order the test writes down, every time.
//
//   Actor a([&] { first = world.take(api, key(7)); });
//   ASSERT_TRUE(a.run_to("insert.before_claim"));       // a stands there
//   second = world.take(api, key(7));                   // somebody else decides
//   a.finish();                                         // a goes on to its end
//
// Only the test's thread and one actor run at any time. Needs cutwater_common_sync.
#pragma once
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/sync_point.hpp"

namespace cutwater::test {

class Actor {
 public:
  /// The work does not begin before run_to() or finish().
  explicit Actor(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          self = this;
          pause();
          work();
          const std::lock_guard lock(mutex_);
          over_ = true;
          running_ = false;
          changed_.notify_all();
        }) {
    sync_point_hook = &Actor::at_stop;
    wait();
  }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor() {
    finish();
    thread_.join();
  }

  /// Goes on to the next time it comes to `stop`. False: it ended before.
  bool run_to(const char* stop) {
    go(stop);
    return !over_;
  }
  /// Goes on to the next stop, whichever. False: it ended before.
  bool step() { return run_to("*"); }
  /// Goes on to its end.
  void finish() {
    if (!over_) go("");
  }
  bool over() const { return over_; }

 private:
  static void at_stop(const char* name) {
    if (self != nullptr && (self->stop_ == "*" || self->stop_ == name)) self->pause();
  }
  void pause() {
    std::unique_lock lock(mutex_);
    running_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return running_; });
  }
  void go(const char* stop) {
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      stop_ = stop;
      running_ = true;
    }
    changed_.notify_all();
    wait();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !running_; });
  }

  static inline thread_local Actor* self = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = true;
  bool over_ = false;
  std::string stop_;
  std::thread thread_;       // last: it starts when all else is there
};

}  // namespace cutwater::test
