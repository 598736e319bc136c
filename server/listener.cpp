// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

#include <algorithm>

#include "rethrow.hpp"

namespace cutwater::server {

namespace {
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr std::chrono::minutes kSayEvery{1};
}  // namespace

Listener::Listener(asio::io_context& loop, SocketFile file, Log& log, Accepted accepted)
    : loop_(loop),
      file_(std::move(file)),
      log_(log),
      accepted_(std::move(accepted)),
      acceptor_(loop, asio::local::stream_protocol(), file_.take_fd().release()),
      timer_(loop),
      back_off_(kFirstPause) {}

void Listener::start() { asio::co_spawn(loop_, run(), kRethrow); }

void Listener::stop() {
  stopped_ = true;
  std::error_code ignored;
  acceptor_.close(ignored);
  timer_.cancel();
  file_.remove();
}

void Listener::keep_in_place(const SocketSettings& settings) {
  if (stopped_ || file_.is_in_place()) {
    lost_ = false;
    return;
  }
  const bool first = !std::exchange(lost_, true);
  if (!file_.is_gone()) {
    if (first) log_.error("{}: something else has taken the socket's place", file_.path());
    return;
  }
  SocketSettings again = settings;
  again.patient = false;   // the loop does not wait
  auto made = SocketFile::listen(again);
  if (!made) {
    if (first) log_.error("the removed socket is not made anew: {}", made.error().text());
    return;
  }
  log_.warn("{}: the socket was removed; made anew", made->path());
  file_ = std::move(*made);
  std::error_code ignored;
  acceptor_.close(ignored);
  acceptor_.assign(asio::local::stream_protocol(), file_.take_fd().release(), ignored);
}

asio::awaitable<void> Listener::run() {
  while (!stopped_) {
    std::error_code error;
    Socket socket = co_await acceptor_.async_accept(
        asio::redirect_error(asio::use_awaitable, error));
    if (stopped_) co_return;
    // operation_aborted: the socket was made anew.
    if (error == asio::error::connection_aborted || error == asio::error::operation_aborted ||
        error == std::errc::interrupted) {
      continue;
    }
    if (error) {
      co_await pause(error);
      continue;
    }
    back_off_ = kFirstPause;
    ++accepted_count_;
    accepted_(std::move(socket));
  }
}

asio::awaitable<void> Listener::pause(std::error_code why) {
  ++pauses_;
  const auto now = std::chrono::steady_clock::now();
  if (said_ == std::chrono::steady_clock::time_point{} || now - said_ >= kSayEvery) {
    said_ = now;
    log_.warn("no new connections for now: {}; raise the limit of open files (LimitNOFILE)",
              why.message());
  }
  timer_.expires_after(back_off_);
  back_off_ = std::min(back_off_ * 2, kLongestPause);
  std::error_code ignored;
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace cutwater::server
