// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/key_hash.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cutwater::shm {

LimitSecret make_limit_secret(const std::uint8_t* master, std::string_view limit_name) noexcept {
  std::array<char, 64 + 2> input{};
  const std::size_t length = std::min<std::size_t>(limit_name.size(), 64);
  std::memcpy(input.data(), limit_name.data(), length);
  LimitSecret secret;
  for (std::size_t block = 0; block < kSecretBytes / 16; ++block) {
    input[length] = 0;
    input[length + 1] = static_cast<char>(block);
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(input.data(), length + 2, master, kSecretBytes);
    std::memcpy(secret.data() + block * 16, &hash.low64, 8);
    std::memcpy(secret.data() + block * 16 + 8, &hash.high64, 8);
  }
  return secret;
}

KeyHash hash_key(const LimitSecret& secret, std::string_view key) noexcept {
  const XXH128_hash_t hash =
      XXH3_128bits_withSecret(key.data(), key.size(), secret.data(), kSecretBytes);
  return {hash.low64, hash.high64};
}

bool random_bytes(void* place, std::size_t length) noexcept {
  auto* next = static_cast<std::uint8_t*>(place);
  while (length > 0) {
    const ssize_t got = getrandom(next, length, 0);
    if (got <= 0) return false;
    next += got;
    length -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace cutwater::shm
