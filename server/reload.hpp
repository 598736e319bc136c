// SPDX-License-Identifier: Apache-2.0
// Takes over another configuration while everything runs: whole, or not at all, with a verdict to
// whoever asked (C130). SIGHUP and STEER config.reload come through here.
//
// Reading the file and looking up users may take long (a disk, a directory service): a thread of
// its own does that, the loop only publishes. A publication that is not possible yet (the last
// change is not in force) is tried again at each tick for kPatienceNs, then refused: nothing
// changed then. At most kMaxWaiting changes wait; one after the other is carried out. Manual acts
// that are published (acts.hpp) come through here too, so that they and reloads never cross.
// A reload that finds the configuration as it runs publishes nothing when nobody asked for it
// (the file watch: somebody had reloaded already), unless the last reload was refused. After a
// refusal, of whatever part, the publisher wants again the breakers that are in force; its first
// error stays in Running::refusal until a reload is taken over, dry ones aside.
// Thread safety: the loop's thread, but for the thread in here.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <asio.hpp>

#include "log.hpp"
#include "memory.hpp"
#include "running.hpp"

namespace cutwater::server {

struct Verdict {
  bool ok = false;
  std::string text;                    ///< what changed, or every error with its place and remedy
};

class Reloader {
 public:
  static constexpr std::size_t kMaxWaiting = 16;
  static constexpr std::uint64_t kPatienceNs = 700'000'000;

  using Done = std::function<void(const Verdict&)>;
  using Limits = std::vector<rule::LimitSettings>;
  using Republished = std::function<void(const Result<void>&)>;

  Reloader(asio::io_context& loop, Memory& memory, Running& running, Log& log);
  ~Reloader();

  /// Called once after each successful reload, before the verdict is given.
  void on_published(std::function<void()> hook) { published_ = std::move(hook); }

  /// What is published for the limits of a configuration: these with the manual acts on top.
  void set_effective(std::function<Limits(const Limits&)> effective) {
    effective_ = std::move(effective);
  }

  enum class Origin { Asked, Dry, Watched };
  /// `done` is called exactly once, from the loop. Dry: only the verdict.
  void request(Origin origin, Done done);
  /// Publishes these limits under the running configuration. `limits` is called each time it is
  /// tried, `done` once, from the loop.
  void republish(std::function<Limits()> limits, Republished done);
  void tick(std::uint64_t now_ns);

 private:
  struct Job {
    Origin origin = Origin::Asked;
    Done done;
    std::function<Limits()> limits;       ///< republish: no file is read
    Republished republished;
    std::optional<config::Config> next;   ///< set when it was read and may be published
    std::uint64_t since_ns = 0;
  };

  void begin();
  void loaded(config::LoadOutcome outcome, std::string log_fault);
  std::string what_would_change(const config::Config& next) const;
  void try_publish(std::uint64_t now_ns);
  void republished(const Result<void>& result);
  void finish(Verdict verdict);
  std::string accept(const shm::PublishReport& report);

  asio::io_context& loop_;
  Memory& memory_;
  Running& running_;
  Log& log_;
  std::function<void()> published_;
  std::function<Limits(const Limits&)> effective_;
  std::deque<Job> jobs_;
  bool loading_ = false;
  std::thread thread_;
};

/// All errors as lines, with the last line that says that nothing changed.
std::string refusal_text(const std::vector<config::Finding>& errors);

}  // namespace cutwater::server
