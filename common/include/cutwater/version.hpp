// SPDX-License-Identifier: Apache-2.0
// Numbers that must fit between library, daemon and memory. HELLO carries them; the daemon decides.
#pragma once
#include <cstdint>

namespace cutwater {

inline constexpr char kVersion[] = "0.1.0";
/// Memory layout this library was built with (common/LAYOUT.md).
inline constexpr std::uint16_t kLayoutMajor = 5;
inline constexpr std::uint16_t kLayoutMinor = 0;
/// Protocol versions this library speaks (common/PROTOCOL.md).
inline constexpr std::uint8_t kProtocolMin = 1;
inline constexpr std::uint8_t kProtocolMax = 1;

}  // namespace cutwater
