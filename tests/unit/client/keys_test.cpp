// SPDX-License-Identifier: Apache-2.0
#include <cutwater/keys.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <set>

#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using std::string_literals::operator""s;

class Keys : public InMemory {};

TEST(KeyOf, IsEachPartBehindItsLength) {
  EXPECT_EQ(key_of("acme", "alice").value(), "\0\4acme\0\5alice"s);
  EXPECT_EQ(key_of("alice").value(), "\0\5alice"s);
  EXPECT_EQ(key_of("", "").value(), "\0\0\0\0"s);
  EXPECT_EQ(key_of("a\0b"s, "\xff"s).value(), "\0\3a\0b\0\1\xff"s);
  EXPECT_EQ(key_of({"acme", "alice"}).value(), key_of("acme"s, std::string_view{"alice"}).value());
}

TEST(KeyOf, C034ASeparatorInsideAPartIsNoSeparator) {
  const std::vector<std::vector<std::string>> lists = {
      {"a:b", "c"}, {"a", "b:c"}, {"u", "2001:db8::1"}, {"u:2001", "db8::1"}, {"x/", "y"},
      {"x", "/y"}, {"x", "", "y"}, {"x", "y", ""}, {"xy"}, {"", "xy"}, {"x", "y"}};
  std::set<std::string> keys;
  for (const auto& parts : lists) {
    if (parts.size() == 1) keys.insert(key_of(parts[0]).value());
    if (parts.size() == 2) keys.insert(key_of(parts[0], parts[1]).value());
    if (parts.size() == 3) keys.insert(key_of(parts[0], parts[1], parts[2]).value());
  }
  EXPECT_EQ(keys.size(), lists.size());
}

TEST_F(Keys, C034PairsThatJoinAlikeHaveTheirOwnBuckets) {
  start("limits:\n  api: {rate: 1/h, burst: 1}\n");
  Limit api = limit();

  EXPECT_TRUE(api.try_acquire(key_of("a:b", "c").value()).allowed());
  EXPECT_TRUE(api.try_acquire(key_of("a", "b:c").value()).allowed());
  EXPECT_FALSE(api.try_acquire(key_of("a", "b:c").value()).allowed());
}

TEST(KeyOf, HasBounds) {
  const std::string longest(kMaxKeyBytes - 2, 'x');
  EXPECT_EQ(key_of(longest).value().size(), kMaxKeyBytes);
  const auto too_long = key_of(longest + "x");
  EXPECT_EQ(too_long.error().code(), Errc::KeyTooLong);
  EXPECT_EQ(too_long.error().text(), "the parts make a key of 4097 bytes; at most 4096 are taken, "
                                     "two of them for each part");
  EXPECT_EQ(key_of({}).error().code(), Errc::InvalidArgument);
  const auto many = key_of({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13",
                            "14", "15", "16", "17"});
  EXPECT_EQ(many.error().text(), "a key has 1 to 16 parts; this one has 17");
}

TEST(IpKey, IsTheNetworkOfTheAddress) {
  EXPECT_EQ(ip_key("192.0.2.7").value(), "192.0.2.7/32");
  EXPECT_EQ(ip_key("192.0.2.7", {.v4 = 24}).value(), "192.0.2.0/24");
  EXPECT_EQ(ip_key("192.0.2.7", {.v4 = 25}).value(), "192.0.2.0/25");
  EXPECT_EQ(ip_key("192.0.2.199", {.v4 = 25}).value(), "192.0.2.128/25");
  EXPECT_EQ(ip_key("192.0.2.7", {.v4 = 0}).value(), "0.0.0.0/0");
  EXPECT_EQ(ip_key("2001:db8:1:2:3:4:5:6").value(), "2001:db8:1:2::/64");
  EXPECT_EQ(ip_key("2001:DB8:0001:2::", {.v6 = 48}).value(), "2001:db8:1::/48");
  EXPECT_EQ(ip_key("2001:db8:1:2:3:4:5:6", {.v6 = 128}).value(), "2001:db8:1:2:3:4:5:6/128");
  EXPECT_EQ(ip_key("2001:db8:1:2:3:4:5:6", {.v6 = 60}).value(), "2001:db8:1::/60");
  EXPECT_EQ(ip_key("::", {.v6 = 0}).value(), "::/0");
  EXPECT_EQ(ip_key("::1").value(), "::/64");
}

TEST(IpKey, HoweverOneCallerIsWrittenItIsOneKey) {
  for (const char* text : {"192.0.2.7", "192.0.2.7:8080", "::ffff:192.0.2.7", "::ffff:c000:207",
                           "0:0:0:0:0:FFFF:192.0.2.7", "[::ffff:192.0.2.7]:443",
                           "64:ff9b::192.0.2.7", "::ffff:192.0.2.7%eth0"}) {
    EXPECT_EQ(ip_key(text).value(), "192.0.2.7/32") << text;
  }
  for (const char* text : {"2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::1%eth0",
                           "[2001:db8::1%25eth0]:1", "2001:0db8:0:0::ffff"}) {
    EXPECT_EQ(ip_key(text).value(), "2001:db8::/64") << text;
  }
}

TEST(IpKey, WhatIsNoAddressIsRefusedWithTheReason) {
  const std::pair<std::string, const char*> bad[] = {
      {"", "it is empty"},
      {std::string(200, '1'), "it is too long"},
      {"localhost", "four numbers"},
      {"192.0.2", "four numbers"},
      {"192.0.2.256", "four numbers"},
      {"192.0.02.7", "four numbers"},
      {" 192.0.2.7", "four numbers"},
      {"192.0.2.7 ", "four numbers"},
      {"192.0.2.7/24", "four numbers"},
      {"192.0.2.7\n", "four numbers"},
      {"192.0.2.7%eth0", "only IPv6 has zones"},
      {"192.0.2.7:port", "no port"},
      {"192.0.2.7:65536", "no port"},
      {"192.0.2.7:", "no port"},
      {"[192.0.2.7]", "brackets are for IPv6"},
      {"[2001:db8::1", "not closed"},
      {"[2001:db8::1]443", "only a port"},
      {"[2001:db8::1]:", "only a port"},
      {"2001:db8:::1", "not an IPv6 address"},
      {"2001:db8::1::2", "not an IPv6 address"},
      {"2001:db8::12345", "not an IPv6 address"},
      {"fe80::1%", "the zone is empty"},
      {"192.0.2.7\0x"s, "zero byte"},
      {"unknown, 192.0.2.7", "four numbers"},
  };
  for (const auto& [text, why] : bad) {
    const auto key = ip_key(text);
    ASSERT_FALSE(key.ok()) << text;
    EXPECT_EQ(key.error().code(), Errc::InvalidArgument) << text;
    EXPECT_NE(key.error().text().find(why), std::string::npos) << key.error().text();
  }
  EXPECT_EQ(ip_key("a\"b\n\xff").error().text(),
            "\"a\\x22b\\x0a\\xff\" is no address: it is not four numbers from 0 to 255 without "
            "leading zeros; wanted is an IPv4 or IPv6 address, with or without a port");
}

TEST(IpKey, APrefixOutOfRangeIsRefused) {
  EXPECT_EQ(ip_key("192.0.2.7", {.v4 = 33}).error().text(),
            "prefix lengths are 0..32 for IPv4 and 0..128 for IPv6, not 33 and 64");
  EXPECT_FALSE(ip_key("192.0.2.7", {.v6 = 129}).ok());
}

TEST(IpKey, TakesWhatASocketGives) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(4711);
  inet_pton(AF_INET, "192.0.2.7", &v4.sin_addr);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_scope_id = 2;
  inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
  sockaddr_in6 mapped = v6;
  inet_pton(AF_INET6, "::ffff:192.0.2.7", &mapped.sin6_addr);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const auto any = [](auto& address) { return reinterpret_cast<const sockaddr*>(&address); };

  EXPECT_EQ(ip_key(any(v4), sizeof v4).value(), ip_key("192.0.2.7").value());
  EXPECT_EQ(ip_key(any(v6), sizeof v6).value(), ip_key("2001:db8::1").value());
  EXPECT_EQ(ip_key(any(mapped), sizeof mapped, {.v4 = 24}).value(), "192.0.2.0/24");
  EXPECT_EQ(ip_key(any(local), sizeof local).error().text(),
            "a socket address of family 1 and 110 bytes holds no IPv4 or IPv6 address");
  EXPECT_FALSE(ip_key(any(v4), 4).ok());
  EXPECT_FALSE(ip_key(any(v6), sizeof v4).ok());
  EXPECT_FALSE(ip_key(static_cast<const sockaddr*>(nullptr), 16).ok());
}

TEST_F(Keys, C038AnIpv6CallerIsItsNetwork) {
  start("limits:\n"
        "  api:  {rate: 10/m, burst: 10}\n"
        "  site: {rate: 100/m, burst: 100, ip-prefix: {v4: 24, v6: 48}}\n");
  Limit api = limit(), site = limit("site");
  ASSERT_EQ(site.ip_prefix().v6, 48);
  ASSERT_EQ(site.ip_prefix().v4, 24);
  ASSERT_EQ(api.ip_prefix().v6, 64);
  const auto address = [](int net, int host) {
    char text[64];
    std::snprintf(text, sizeof text, "2001:db8:77:%x::%x", net, host);
    return std::string(text);
  };

  // 1000 addresses of one /64: ten, and one entry.
  std::uint64_t admitted = 0;
  for (int host = 0; host < 1000; ++host) {
    admitted += api.try_acquire(ip_key(address(1, host), api.ip_prefix()).value()).allowed();
  }
  EXPECT_EQ(admitted, 10U);
  std::uint64_t entries = 0;
  for (std::uint64_t i = 0; i < view().slot_count; ++i) entries += view().slots[i].lo != 0;
  EXPECT_EQ(entries, 1U);

  // 1000 addresses spread over one /48: a second tier holds them together.
  admitted = 0;
  for (int net = 0; net < 1000; ++net) {
    const std::string user = ip_key(address(net + 2, 1), api.ip_prefix()).value();
    const std::string network = ip_key(address(net + 2, 1), site.ip_prefix()).value();
    admitted += client->acquire_all({{api, user}, {site, network}}).allowed();
  }
  EXPECT_EQ(admitted, 100U);
}

}  // namespace
}  // namespace cutwater::test
