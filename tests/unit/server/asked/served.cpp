// SPDX-License-Identifier: Apache-2.0
#include "unit/server/asked/served.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

namespace cutwater::test {

namespace {

constexpr int kTurns = 10'000;

std::uint64_t steady_now() {
  return static_cast<std::uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

config::Config small_config(std::uint32_t processes) {
  config::Config out;
  out.capacity = {.keys = 64, .limits = 2, .processes = processes, .stripes = 2, .events = 64,
                  .breakers = 2, .breaker_memory = 64 * 1024};
  return out;
}

rule::LimitSettings five_an_hour() {
  rule::LimitSettings api;
  api.name = "api";
  api.windows = {rule::rate_window(1, 3'600'000'000'000, 5)};
  return api;
}

Served::Served(const config::Config& config, bool stepped) : stepped_(stepped) {
  running_.config = config;
  running_.config.instance.memory_directory = place_.memory();
  running_.config.log.file = place_.path() + "/log";
  running_.reserved = running_.config.capacity;
  log_ = server::Log::open(running_.config.log, false).value();
  start();
}

void Served::start() {
  std::vector<std::string> remarks;
  memory_ = server::Memory::open(running_.config, {.stepped = stepped_, .runtime_directory = {},
                                                   .xdg_runtime_dir = {}}, remarks)
                .value();
  reloader_ = std::make_unique<server::Reloader>(loop_, *memory_, running_, *log_);
  acts_ = std::make_unique<server::Acts>(
      server::Journal::open(loop_, {.setting = place_.path() + "/state"}), *log_);
  steering_ = std::make_unique<server::Steering>(*memory_, running_, *reloader_, *acts_, *log_);
  janitor_ = std::make_unique<server::Janitor>(loop_, *memory_, *log_);
  now_ns_ = steady_now();
  janitor_->adopt_rows(now_ns_);
  desk_ = std::make_unique<server::Desk>(*memory_, *janitor_, running_, *steering_, *log_);
}

void Served::stop() {
  // The connections lie in the loop; they go with it, and nobody hears of their ends.
  if (!desk_) return;
  auto desk = std::move(desk_);
  desk->shut_down();
  turn();
  desk.reset();
  janitor_.reset();
  steering_.reset();
  acts_.reset();
  reloader_.reset();
  memory_.reset();
}

void Served::turn() {
  loop_.restart();
  while (loop_.poll() > 0) {}
}

void Served::tick(std::uint64_t after_ns) {
  turn();
  now_ns_ += after_ns;
  janitor_->tick(now_ns_);
  desk_->tick();
  turn();
}

shm::UniqueFd Served::connect() {
  int pair[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  desk_->accepted(server::Connection::Socket(loop_, asio::local::stream_protocol(), pair[1]));
  return shm::UniqueFd(pair[0]);
}

wire::Welcome ServedPeer::greet(std::string session, std::uint64_t features) {
  wire::Hello hello;
  hello.client_name = "asker";
  hello.want = wire::Want::Ask;
  hello.features = features;
  hello.auth = "peercred";
  hello.session = std::move(session);
  send(wire::MessageType::Hello, 1, *wire::encode(hello));
  const auto frame = receive();
  if (!frame || frame->header.type != wire::MessageType::Welcome) {
    ADD_FAILURE() << "no WELCOME";
    return {};
  }
  return *wire::decode<wire::Welcome>(frame->payload);
}

wire::Admission ServedPeer::enter(const wire::Enter& asked) {
  const auto answer = ask<wire::EnterAnswer>(asked);
  EXPECT_TRUE(answer) << "ENTER was not answered";
  return answer ? answer->admission : wire::Admission{};
}

std::uint16_t ServedPeer::outcome(const wire::OutcomeReport& report) {
  const auto answer = ask<wire::OutcomeAnswer>(wire::Outcome{{report}});
  return answer && answer->codes.size() == 1 ? answer->codes[0] : std::uint16_t{999};
}

void ServedPeer::send(wire::MessageType type, std::uint32_t request, std::string_view payload,
                      std::uint16_t flags) {
  const std::string bytes =
      wire::encode_frame({.type = type, .flags = flags, .request = request}, payload);
  EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  served_.turn();
}

std::optional<wire::Frame> ServedPeer::take_now() { return receive_within(1); }

std::optional<wire::Frame> ServedPeer::receive() { return receive_within(kTurns); }

std::optional<wire::Frame> ServedPeer::receive_within(int turns) {
  for (int i = 0; i <= turns; ++i) {
    std::string_view rest = bytes_;
    auto frame = reader_.next(rest);
    bytes_.assign(rest);
    if (!frame) return std::nullopt;
    if (*frame) return **frame;
    char piece[65536];
    const ssize_t n = ::recv(fd_.get(), piece, sizeof piece, 0);
    if (n == 0) return std::nullopt;
    if (n > 0) bytes_.append(piece, static_cast<std::size_t>(n));
    else served_.turn();
  }
  return std::nullopt;
}

void ServedPeer::bye() {
  send(wire::MessageType::Bye, 1, *wire::encode(wire::Bye{}), wire::kFlagQuiet);
  cut();
}

void ServedPeer::cut() {
  fd_.reset();
  served_.turn();
}

}  // namespace cutwater::test
