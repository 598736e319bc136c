// SPDX-License-Identifier: Apache-2.0
#include "notify.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cutwater::server {
namespace {

/// A manager that listens on an abstract name.
class Manager {
 public:
  explicit Manager(const std::string& name) {
    fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  std::string heard() {
    char text[512];
    const ssize_t n = ::recv(fd_.get(), text, sizeof text, 0);
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
  }

 private:
  shm::UniqueFd fd_;
};

TEST(Notifier, SaysReadyReloadingAndStopping) {
  const std::string name = "@cutwater-notify-" + std::to_string(::getpid());
  Manager manager(name);
  const Notifier notifier(name.c_str(), nullptr, nullptr);

  notifier.ready("3 limits");
  EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=3 limits");
  notifier.reloading();
  EXPECT_EQ(manager.heard().rfind("RELOADING=1\nMONOTONIC_USEC=", 0), 0U);
  notifier.status("fine");
  EXPECT_EQ(manager.heard(), "STATUS=fine");
  notifier.stopping();
  EXPECT_EQ(manager.heard(), "STOPPING=1");
  notifier.watchdog();
  EXPECT_EQ(manager.heard(), "WATCHDOG=1");
}

TEST(Notifier, BeatsTwiceInTheTimeTheManagerAllows) {
  const std::string pid = std::to_string(::getpid());

  const Notifier ours("@x", "3000000", pid.c_str());
  const Notifier of_another("@x", "3000000", "1");

  ASSERT_TRUE(ours.watchdog_period());
  EXPECT_EQ(ours.watchdog_period()->count(), 1'500'000);
  EXPECT_FALSE(of_another.watchdog_period());
}

TEST(Notifier, NeitherFailsNorWaitsWhenNobodyListens) {
  const Notifier none(nullptr, nullptr, nullptr);
  const Notifier deaf("/nonexistent/socket", nullptr, nullptr);
  const Notifier odd("relative", nullptr, nullptr);
  const std::string long_name = "/" + std::string(200, 'x');
  const Notifier too_long(long_name.c_str(), nullptr, nullptr);

  for (const Notifier* each : {&none, &deaf, &odd, &too_long}) each->ready("x");
}

}  // namespace
}  // namespace cutwater::server
