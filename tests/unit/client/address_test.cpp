// SPDX-License-Identifier: Apache-2.0
#include "src/address.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace cutwater::client {
namespace {

class AddressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    forget_environment();
    char name[] = "/tmp/cutwater-address-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override {
    forget_environment();
    std::filesystem::remove_all(folder);
  }
  static void forget_environment() {
    for (const char* name : {"CUTWATER_ADDRESS", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"}) {
      unsetenv(name);
    }
  }
  void make_socket(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    std::strcpy(place.sun_path, path.c_str());
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
    close(fd);
  }

  std::string folder;
};

TEST_F(AddressTest, UnixPathIsTakenAsGiven) {
  const auto found = find_address("unix:/run/x.sock");

  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/run/x.sock");
}

TEST_F(AddressTest, AskIsAWordBehindThePath) {
  const auto found = find_address("unix:/run/x.sock?ask");

  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->path, "/run/x.sock");
  EXPECT_TRUE(found->ask);
  EXPECT_FALSE(find_address("unix:/run/x.sock")->ask);
  const auto other = find_address("unix:/run/x.sock?map");
  EXPECT_EQ(other.error().code(), Errc::InvalidArgument);
  EXPECT_NE(other.error().text().find("there is ?ask"), std::string::npos);
}

TEST_F(AddressTest, WhatIsNoAddressIsRefusedWithTheForms) {
  EXPECT_EQ(find_address("tcp:host:7420").error().code(), Errc::Unsupported);
  EXPECT_EQ(find_address("/run/x.sock").error().code(), Errc::InvalidArgument);
  EXPECT_EQ(find_address("unix:").error().code(), Errc::InvalidArgument);
  EXPECT_EQ(find_address("unix:/x?mode=1").error().code(), Errc::InvalidArgument);
  EXPECT_NE(find_address("/run/x").error().text().find("unix:PATH"), std::string::npos);
}

TEST_F(AddressTest, EnvironmentIsAskedWhenNothingIsGiven) {
  setenv("CUTWATER_ADDRESS", "unix:/from/environment", 1);

  EXPECT_EQ(find_address("")->path, "/from/environment");
  EXPECT_EQ(find_address("unix:/given")->path, "/given");
  setenv("CUTWATER_ADDRESS", "nonsense", 1);
  EXPECT_NE(find_address("").error().text().find("CUTWATER_ADDRESS"), std::string::npos);
}

TEST_F(AddressTest, UsualPlacesComeInTheDaemonsOrder) {
  setenv("RUNTIME_DIRECTORY", (folder + ":/other").c_str(), 1);
  setenv("XDG_RUNTIME_DIR", "/run/user/4711", 1);

  const auto places = usual_sockets();

  // Each memory directory, and beside it the place of a socket that others may use.
  ASSERT_EQ(places.size(), 8U);
  EXPECT_EQ(places[0], folder + "/cutwater.sock");
  EXPECT_EQ(places[2], "/run/cutwater/main/cutwater.sock");
  EXPECT_EQ(places[4], "/run/user/4711/cutwater/main/cutwater.sock");
  EXPECT_EQ(places[6], "/dev/shm/cutwater-" + std::to_string(geteuid()) + "/main/cutwater.sock");
}

TEST_F(AddressTest, FirstUsualPlaceWithASocketIsUsed) {
  setenv("RUNTIME_DIRECTORY", folder.c_str(), 1);
  make_socket(folder + "/cutwater.sock");

  EXPECT_EQ(find_address("")->path, folder + "/cutwater.sock");
}

TEST_F(AddressTest, NothingFoundNamesEveryPlaceAndTheRemedy) {   // C062
  const std::vector<std::string> places{folder + "/none.sock", folder};

  const auto found = first_socket(places);

  EXPECT_EQ(found.error().code(), Errc::NoDaemon);
  for (const std::string& place : places) {
    EXPECT_NE(found.error().text().find(place), std::string::npos) << found.error().text();
  }
  EXPECT_NE(found.error().text().find("mount"), std::string::npos);
}

}  // namespace
}  // namespace cutwater::client
