// SPDX-License-Identifier: Apache-2.0
// A daemon's end of one connection, in a thread: the real session machine, and a script that may
// answer rightly or wrongly. For tests of what a client makes of it.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "wire/session.hpp"

namespace cutwater::test {

/// Sends bytes, with descriptors on the first of them.
inline bool send_with(int socket, std::string_view bytes, const std::vector<int>& files) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
    std::memcpy(CMSG_DATA(rights), files.data(), sizeof(int) * files.size());
  }
  return sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// What the script wants of a HELLO: a welcome with these descriptors, or a refusal.
struct HelloPlan {
  wire::Welcome welcome;
  std::vector<int> files;
  std::string refuse;                  ///< not empty: refused with this text
  bool silent = false;                 ///< not answered at all
};

inline wire::Welcome usual_welcome() {
  wire::Welcome welcome;
  welcome.instance = "main";
  welcome.daemon = std::string(16, 'd');
  welcome.session = std::string(16, 's');
  welcome.rights = wire::kRightUse | wire::kRightLook | wire::kRightSteer;
  welcome.credit_items = 16;
  return welcome;
}

class FakeDaemon {
 public:
  explicit FakeDaemon(HelloPlan plan) : plan_(std::move(plan)) {
    char name[] = "/tmp/cutwater-fake-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    std::strcpy(place.sun_path, path().c_str());
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeDaemon() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/d.sock"; }
  std::string address() const { return "unix:" + path(); }

  bool saw_bye = false;                ///< look after the client is gone and the daemon was joined
  wire::Hello hello;
  std::function<void(wire::ServerSession&, const wire::ServerAction&, wire::ServerActions&)> on_ask;

 private:
  void serve() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    wire::ServerSession session({}, 0);
    char buffer[4096];
    bool open = true;
    while (open) {
      pollfd watched[2] = {{fd, POLLIN, 0}, {listener_, POLLIN, 0}};
      poll(watched, 2, -1);
      if ((watched[1].revents & (POLLHUP | POLLERR)) != 0) break;
      const ssize_t length = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (length == 0) break;
      if (length < 0) continue;
      auto actions = session.feed({buffer, static_cast<std::size_t>(length)}, {1, 77});
      for (std::size_t i = 0; i < actions.size(); ++i) open = act(fd, session, actions, i) && open;
    }
    close(fd);
  }

  bool act(int fd, wire::ServerSession& session, wire::ServerActions& actions, std::size_t i) {
    const wire::ServerAction action = actions[i];
    wire::ServerActions more;
    if (const auto* bytes = std::get_if<wire::SendBytes>(&action)) {
      const bool first = bytes->with_descriptors || !plan_.files.empty();
      send_with(fd, bytes->bytes, first ? std::exchange(plan_.files, {}) : std::vector<int>{});
    } else if (const auto* asked = std::get_if<wire::HelloReceived>(&action)) {
      hello = asked->hello;
      if (!plan_.refuse.empty()) {
        more = session.refuse(wire::ErrorCode::NotPermitted, plan_.refuse);
      } else if (!plan_.silent) {
        more = session.welcome(plan_.welcome, 1);
      }
    } else if (const auto* closing = std::get_if<wire::CloseConnection>(&action)) {
      saw_bye = closing->why.find("bye") != std::string::npos || saw_bye;
      return false;
    } else if (on_ask) {
      on_ask(session, action, more);
    }
    actions.insert(actions.end(), more.begin(), more.end());
    return true;
  }

  HelloPlan plan_;
  std::string folder_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace cutwater::test
