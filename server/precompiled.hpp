// SPDX-License-Identifier: Apache-2.0
// What is compiled once for the whole daemon: Asio, fmt and the standard headers nearly every file
// wants.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <asio.hpp>
#include <fmt/format.h>
