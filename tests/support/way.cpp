// SPDX-License-Identifier: Apache-2.0
#include "support/way.hpp"

#include <cstdio>
#include <cstdlib>

#include "src/connection.hpp"
#include "src/core.hpp"
#include "src/settings.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::test {
namespace {

constexpr const char* kSmall =
    "capacity: {keys: 1024, limits: 64, processes: 64, stripes: 8, events: 1024}\n";
constexpr int kExitInvalidConfig = 4;

std::string with_capacity(const std::string& yaml) {
  return yaml.find("capacity:") == std::string::npos ? kSmall + yaml : yaml;
}

class InMemoryWay final : public Way {
 public:
  Result<void> open(const std::string& yaml) override {
    auto made = Client::in_memory(with_capacity(yaml), clock_);
    if (!made) return made.error();
    client_ = std::make_unique<Client>(std::move(*made));
    return {};
  }

  void at(Nanos t) override { clock_.set(t); }

  Result<void> reload(const std::string& yaml) override {
    return client_->reload(with_capacity(yaml));
  }

  Client& client() override { return *client_; }
  Client& client_of_child() override { return *client_; }
  const shm::View& view() override { return client_->core().view(); }

 private:
  SteppedClock clock_;
  std::unique_ptr<Client> client_;
};

/// Waits here end with the watchdog of the daemon tests; a machine may be busy.
client::Deadline patience() { return client::Deadline::in(kWatchdog); }

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().text().c_str());
    std::abort();
  }
  return std::move(*result);
}

class DaemonWay final : public Way {
 public:
  explicit DaemonWay(bool asks) : asks_(asks) {}

  Result<void> open(const std::string& yaml) override {
    place_.write_config(with_capacity(yaml));
    DaemonOptions options;
    options.arguments = {"--clock=stepped"};
    daemon_ = std::make_unique<DaemonProcess>(place_, options);
    if (!daemon_->ready()) {
      const int code = daemon_->wait_end();
      return Error{code == kExitInvalidConfig ? Errc::InvalidConfig : Errc::NoDaemon,
                   daemon_->log()};
    }
    client_ = std::make_unique<Client>(attach(asks_));
    if (asks_) mapped_ = std::make_unique<Client>(attach(false));
    link_ = std::make_unique<client::Connection>(
        need(client::Connection::connect(place_.socket(), patience()), "connect"));
    need(link_->hello(client::hello_for("steer", wire::Want::Ask), patience()), "hello");
    zero_ = mapped().now();
    return {};
  }

  void at(Nanos t) override {
    if (zero_ + t <= mapped().now()) return;
    wire::Steer step;
    step.verb = wire::kVerbClockStep;
    step.arguments.set("to_ns", static_cast<std::uint64_t>((zero_ + t).count()));
    const wire::SteerAnswer answer = need(link_->steer(step, patience()), "clock.step");
    if (answer.code == wire::kSteerDone && mapped().now() == zero_ + t) return;
    std::fprintf(stderr, "clock.step: %s\n", answer.text.c_str());
    std::abort();
  }

  Result<void> reload(const std::string& yaml) override {
    place_.write_config(with_capacity(yaml));
    wire::Steer again;
    again.verb = wire::kVerbConfigReload;
    const wire::SteerAnswer answer = need(link_->steer(again, patience()), "config.reload");
    if (answer.code == wire::kSteerDone) return {};
    return Error{Errc::InvalidConfig, answer.text};
  }

  Client& client() override { return *client_; }

  Client& client_of_child() override {
    child_ = std::make_unique<Client>(attach(asks_));
    return *child_;
  }

  const shm::View& view() override { return mapped().core().view(); }
  std::string address() const override { return place_.address(); }
  std::string log() const override { return daemon_->log(); }

 private:
  Client attach(bool asks) const {
    ClientOptions options;
    options.name = "way";
    options.timeout = kWatchdog;
    options.ask_timeout = client::kAskTimeoutMax;
    options.log = [](std::string_view) {};
    return need(Client::open(place_.address() + (asks ? "?ask" : ""), options), "open");
  }
  Client& mapped() { return mapped_ ? *mapped_ : *client_; }

  const bool asks_;
  ScratchPlace place_;
  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<Client> client_, child_;
  std::unique_ptr<Client> mapped_;       // where the asking one has no memory to look at
  std::unique_ptr<client::Connection> link_;
  Nanos zero_{0};
};

}  // namespace

const std::vector<WayMaker>& every_way() {
  static const std::vector<WayMaker> ways = {
      {"InMemory", [] { return std::unique_ptr<Way>(new InMemoryWay); }},
      {"Mapped", [] { return std::unique_ptr<Way>(new DaemonWay(false)); }},
      {"Asked", [] { return std::unique_ptr<Way>(new DaemonWay(true)); }},
  };
  return ways;
}

}  // namespace cutwater::test
