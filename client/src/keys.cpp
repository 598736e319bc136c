// SPDX-License-Identifier: Apache-2.0
#include <cutwater/keys.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <cutwater/limit.hpp>

#include "base/composite_key.hpp"
#include "shm/limit/rule_reader.hpp"
#include "src/ask/elsewhere.hpp"
#include "src/no_memory.hpp"

namespace cutwater {

static_assert(kMaxPartsOfKey == kMaxKeyParts);

namespace {

Result<std::string> key_of_parts(std::initializer_list<std::string_view> parts) {
  if (parts.size() == 0 || parts.size() > kMaxKeyParts) {
    return Error{Errc::InvalidArgument, "a key has 1 to " + std::to_string(kMaxKeyParts) +
                                            " parts; this one has " + std::to_string(parts.size())};
  }
  auto key = composite_key(std::span{parts.begin(), parts.size()});
  if (key) return std::move(*key);
  std::size_t length = 0;
  for (const std::string_view part : parts) length += kPartHeadBytes + part.size();
  return Error{Errc::KeyTooLong, "the parts make a key of " + std::to_string(length) +
                                     " bytes; at most " + std::to_string(kMaxKeyBytes) +
                                     " are taken, two of them for each part"};
}

constexpr std::size_t kAddressTextMax = 128;    // the longest right one: 46 + zone + port
constexpr std::size_t kShownBytes = 60;

using Bytes6 = std::array<std::uint8_t, 16>;

/// The text as an error may show it.
std::string shown(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out + (text.size() > kShownBytes ? "\"..." : "\"");
}

Error refused(std::string_view text, const char* why) {
  return {Errc::InvalidArgument, shown(text) + " is no address: " + why +
                                     "; wanted is an IPv4 or IPv6 address, with or without a port"};
}

Result<void> check(IpPrefix prefix) {
  if (prefix.v4 <= 32 && prefix.v6 <= 128) return {};
  return Error{Errc::InvalidArgument,
               "prefix lengths are 0..32 for IPv4 and 0..128 for IPv6, not " +
                   std::to_string(prefix.v4) + " and " + std::to_string(prefix.v6)};
}

/// Clears all but the first `bits`, and writes what is left.
std::string network(int family, std::span<std::uint8_t> bytes, unsigned bits) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned kept = bits > 8 * i ? std::min(8U, bits - static_cast<unsigned>(8 * i)) : 0;
    bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00U >> kept));
  }
  char text[INET6_ADDRSTRLEN];
  inet_ntop(family, bytes.data(), text, sizeof text);
  return std::string(text) + "/" + std::to_string(bits);
}

std::string key_of_v4(std::span<const std::uint8_t> address, IpPrefix prefix) {
  std::array<std::uint8_t, 4> bytes;
  std::copy(address.begin(), address.end(), bytes.begin());
  return network(AF_INET, bytes, prefix.v4);
}

std::string key_of_v6(Bytes6 bytes, IpPrefix prefix) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr std::array<std::uint8_t, 12> kNat64{0, 0x64, 0xff, 0x9b};
  const std::span front = std::span{bytes}.first(12);
  const bool is_v4 = std::equal(front.begin(), front.end(), kMapped.begin()) ||
                     std::equal(front.begin(), front.end(), kNat64.begin());
  if (is_v4) return key_of_v4(std::span{bytes}.last(4), prefix);
  return network(AF_INET6, bytes, prefix.v6);
}

bool is_port(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  unsigned port = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  return port <= 65535;
}

/// The address without brackets and port; `why`: what is wrong with them.
std::string_view without_port(std::string_view text, const char*& why) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) {
      why = "the bracket is not closed";
      return {};
    }
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && (rest[0] != ':' || !is_port(rest.substr(1)))) {
      why = "behind the bracket only a port may follow";
    }
    const std::string_view inside = text.substr(1, end - 1);
    if (inside.find(':') == std::string_view::npos) why = "brackets are for IPv6";
    return inside;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return text;                       // no colon, or an IPv6 address
  }
  if (!is_port(text.substr(colon + 1))) why = "what follows the colon is no port";
  return text.substr(0, colon);
}

Result<std::string> key_of_text(std::string_view address, IpPrefix prefix) {
  if (auto good = check(prefix); !good) return good.error();
  if (address.empty()) return refused(address, "it is empty");
  if (address.size() > kAddressTextMax) return refused(address, "it is too long");
  const char* why = nullptr;
  std::string_view bare = without_port(address, why);
  if (why != nullptr) return refused(address, why);
  const bool is_v6 = bare.find(':') != std::string_view::npos;
  if (const std::size_t zone = bare.find('%'); zone != std::string_view::npos) {
    if (!is_v6) return refused(address, "only IPv6 has zones");
    if (zone + 1 == bare.size()) return refused(address, "the zone is empty");
    bare = bare.substr(0, zone);
  }
  if (bare.find('\0') != std::string_view::npos) return refused(address, "it holds a zero byte");
  const std::string text{bare};
  if (is_v6) {
    Bytes6 bytes;
    if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return key_of_v6(bytes, prefix);
    return refused(address, "it is not an IPv6 address");
  }
  std::array<std::uint8_t, 4> bytes;
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return key_of_v4(bytes, prefix);
  return refused(address, "it is not four numbers from 0 to 255 without leading zeros");
}

Result<std::string> key_of_socket(const ::sockaddr* address, std::size_t length, IpPrefix prefix) {
  if (auto good = check(prefix); !good) return good.error();
  const auto fits = [&](std::size_t size) { return address != nullptr && length >= size; };
  sa_family_t family = AF_UNSPEC;
  if (fits(offsetof(::sockaddr, sa_data))) {
    std::memcpy(&family, reinterpret_cast<const char*>(address) + offsetof(::sockaddr, sa_family),
                sizeof family);
  }
  if (family == AF_INET && fits(sizeof(sockaddr_in))) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &in.sin_addr, sizeof bytes);
    return key_of_v4(bytes, prefix);
  }
  if (family == AF_INET6 && fits(sizeof(sockaddr_in6))) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof in);
    Bytes6 bytes;
    std::memcpy(bytes.data(), &in.sin6_addr, sizeof bytes);
    return key_of_v6(bytes, prefix);
  }
  return Error{Errc::InvalidArgument,
               "a socket address of family " + std::to_string(family) + " and " +
                   std::to_string(length) + " bytes holds no IPv4 or IPv6 address"};
}

}  // namespace

Result<std::string> key_of(std::initializer_list<std::string_view> parts) {
  return detail::or_no_memory([&] { return key_of_parts(parts); });
}

Result<std::string> ip_key(std::string_view address, IpPrefix prefix) {
  return detail::or_no_memory([&] { return key_of_text(address, prefix); });
}

Result<std::string> ip_key(const ::sockaddr* address, std::size_t length, IpPrefix prefix) {
  return detail::or_no_memory([&] { return key_of_socket(address, length, prefix); });
}

IpPrefix Limit::ip_prefix() const noexcept {
  const detail::LimitState* const state = detail::record_now(*state_);
  if (state == nullptr) return {state_->told.ip_prefix_v4, state_->told.ip_prefix_v6};
  const shm::View& view = *state->view;
  const shm::LimitRef ref = detail::unpack_ref(state->ref.load(std::memory_order_relaxed));
  if (ref.index >= view.limit_count) return {};
  // The image was whole only if `current` still names it (I1).
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint64_t current = view.current();
    const shm::LimitConfig& config = view.limit_config(current, ref.index);
    const bool ours = shm::read_once(config.incarnation) == ref.incarnation &&
                      shm::read_once(config.windows) != 0;
    const IpPrefix found{shm::read_once(config.ip_prefix_v4), shm::read_once(config.ip_prefix_v6)};
    if (view.current() == current) return ours ? found : IpPrefix{};
  }
  return {};
}

}  // namespace cutwater
