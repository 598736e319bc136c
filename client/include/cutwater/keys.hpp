// SPDX-License-Identifier: Apache-2.0
// Keys for what a caller usually has at hand: several names, or an address.
//
//   api.try_acquire(key_of(tenant, user).value());          // ("a:b", "c") is not ("a", "b:c")
//   api.try_acquire(ip_key(peer, api.ip_prefix()).value()); // "192.0.2.7/32", "2001:db8:1:2::/64"
//
// key_of() writes each part behind its length, so different lists of parts never give one key,
// whatever bytes they hold (C034). The form is part of the interface: it is what `[acme, alice]`
// means in a configuration.
//
// ip_key() names the network a caller comes from: an IPv6 user owns 2^64 addresses and more, so one
// bucket per address would be no limit at all (C038). The same caller gets the same key however it
// was written: an IPv4 address inside an IPv6 one (::ffff:192.0.2.7, 64:ff9b::192.0.2.7 of a
// NAT64) is that IPv4 address; a zone (fe80::1%eth0) names our own interface and is left out. For
// tiers ask two limits at once, one by /64 and one by /48 (Client::acquire_all).
//
// Both fail with an error, never with a key that others share: an address that cannot be read gets
// one with the text, escaped, and what is wrong with it. Deny such a request, or give all of them
// one key of their own; never fall back to the text.
// Thread safety: pure functions. They allocate the key.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <cutwater/export.hpp>
#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

struct sockaddr;

namespace cutwater {

/// Most parts of one key.
inline constexpr std::size_t kMaxPartsOfKey = 16;

/// One key of 1..kMaxPartsOfKey parts, any bytes, empty ones too; with two bytes for each part at
/// most kMaxKeyBytes long. InvalidArgument: no or too many parts. KeyTooLong names both lengths.
CUTWATER_EXPORT Result<std::string> key_of(std::initializer_list<std::string_view> parts);

/// The same of what turns into a string_view.
template <class... Parts>
Result<std::string> key_of(std::string_view first, const Parts&... parts) {
  return key_of({first, std::string_view{parts}...});
}

/// Leading bits of an address that make its key.
struct IpPrefix {
  std::uint8_t v4 = 32;          ///< 0..32
  std::uint8_t v6 = 64;          ///< 0..128
};

/// The key of an address as text: `192.0.2.7`, `192.0.2.7:8080`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:443`, `fe80::1%eth0`. InvalidArgument: anything else, or a prefix out of range.
CUTWATER_EXPORT Result<std::string> ip_key(std::string_view address, IpPrefix prefix = {});

/// The key of what accept() or getpeername() gave, AF_INET or AF_INET6. InvalidArgument: another
/// family (a Unix socket has no address), or `length` shorter than the family's address.
CUTWATER_EXPORT Result<std::string> ip_key(const ::sockaddr* address, std::size_t length,
                                           IpPrefix prefix = {});

}  // namespace cutwater
