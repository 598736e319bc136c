// SPDX-License-Identifier: Apache-2.0
#include "base/composite_key.hpp"

namespace cutwater {

std::optional<std::string> composite_key(std::span<const std::string_view> parts) {
  if (parts.empty() || parts.size() > kMaxKeyParts) return std::nullopt;
  std::string key;
  for (const std::string_view part : parts) {
    if (part.size() > kMaxKeyBytes || key.size() + kPartHeadBytes + part.size() > kMaxKeyBytes) {
      return std::nullopt;
    }
    key += static_cast<char>(part.size() >> 8);
    key += static_cast<char>(part.size() & 0xff);
    key += part;
  }
  return key;
}

std::vector<std::string_view> parts_of(std::string_view key) {
  std::vector<std::string_view> parts;
  if (key.size() > kMaxKeyBytes) return parts;
  while (!key.empty()) {
    if (key.size() < kPartHeadBytes || parts.size() == kMaxKeyParts) return {};
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(key[i]); };
    const std::size_t length = std::size_t{byte(0)} << 8 | byte(1);
    if (length > key.size() - kPartHeadBytes) return {};
    parts.push_back(key.substr(kPartHeadBytes, length));
    key.remove_prefix(kPartHeadBytes + length);
  }
  return parts;
}

}  // namespace cutwater
