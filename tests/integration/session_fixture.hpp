// SPDX-License-Identifier: Apache-2.0
// A daemon and raw peers of it, for the tests of sessions and of what a peer may not do.
#pragma once
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/process_table.hpp"
#include "shm/segment.hpp"
#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
using wire::ErrorCode;
using wire::MessageType;
using wire::Want;

inline std::uint64_t resident_kb(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::uint64_t sum = 0, kb = 0;
  std::string word;
  while (file >> word) {
    if (word == "RssAnon:" || word == "RssFile:") {
      file >> kb;
      sum += kb;
    }
  }
  return sum;
}

class Session : public testing::Test {
 protected:
  Session() {
    place_.write_config("capacity: { processes: 32, keys: 1024 }\n"
                        "limits: { api: { rate: 10/s, burst: 10 } }\n");
    daemon_.emplace(place_);
    EXPECT_TRUE(daemon_->ready()) << daemon_->log();
  }

  shm::Segment map_memory() const {
    shm::DirectoryQuery query;
    query.setting = place_.memory();
    query.create = false;
    directory_ = shm::open_directory(query).value();
    return shm::Segment::open_files(directory_.fd.get(), shm::Access::ReadOnly).value();
  }
  /// A child that attaches, tells its row, and lives until it is killed.
  struct Attached { pid_t pid = -1; wire::Welcome welcome; };
  Attached attached_child() const {
    int pipe_fds[2];
    EXPECT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      RawPeer peer(place_.socket());
      const auto welcome = peer.greet(Want::Map);
      const std::uint32_t row[2] = {welcome ? welcome->row_index : 0,
                                    welcome ? welcome->row_generation : 0};
      const ssize_t n = ::write(pipe_fds[1], row, sizeof row);
      while (n > 0) ::pause();
      ::_exit(1);
    }
    ::close(pipe_fds[1]);
    Attached out{pid, {}};
    std::uint32_t row[2] = {};
    EXPECT_EQ(::read(pipe_fds[0], row, sizeof row), static_cast<ssize_t>(sizeof row));
    ::close(pipe_fds[0]);
    out.welcome.row_index = row[0];
    out.welcome.row_generation = row[1];
    return out;
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  static std::string state_of(const shm::Segment& segment, std::uint32_t row) {
    shm::RowInfo info;
    if (!shm::read_row(segment.view(), row, info)) return "none";
    constexpr const char* kWords[] = {"free", "live", "orphan", "dead"};
    return kWords[static_cast<std::size_t>(info.word.state)];
  }

  /// Bytes that must be answered by ERROR `code` and the end; others are served as before.
  void refuses(std::string_view bytes, ErrorCode code, bool byte_by_byte = false) {
    RawPeer healthy(place_.socket());
    ASSERT_TRUE(healthy.greet(Want::Ask));
    RawPeer bad(place_.socket());
    ASSERT_TRUE(bad.greet(Want::Ask));
    if (byte_by_byte) {
      for (const char& byte : bytes) {
        if (!bad.send({&byte, 1})) break;
      }
    } else {
      bad.send(bytes);
    }
    const auto frame = bad.receive();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->header.type, MessageType::Error);
    const auto error = wire::decode<wire::ErrorMessage>(frame->payload);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, code) << error->text;
    EXPECT_TRUE(error->closing);
    EXPECT_TRUE(bad.at_end());
    EXPECT_EQ(healthy.ping(7)->value, 7U);
  }
  static std::string frame_of(std::string_view payload) {
    return wire::encode_frame({.type = MessageType::Read, .request = 1}, payload);
  }

  ScratchPlace place_;
  std::optional<DaemonProcess> daemon_;
  mutable shm::MemoryDirectory directory_;
};

}  // namespace cutwater::test
