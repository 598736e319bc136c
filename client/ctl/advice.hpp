// SPDX-License-Identifier: Apache-2.0
// Advice: what the figures of one instance mean for the operator at night, in sentences with their
// remedy. `status` prints them, `doctor` counts them among its findings. Thread safety: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/value.hpp"

namespace cutwater::ctl {

/// part of whole in permille; 0 of nothing.
std::uint64_t share_permille(std::uint64_t part, std::uint64_t whole) noexcept;

/// Of a row of READ `status`; `daemon` is Look::daemon(). Empty when all is well.
std::vector<std::string> advice_for(const wire::Value& status, std::string_view daemon);

}  // namespace cutwater::ctl
