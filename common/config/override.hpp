// SPDX-License-Identifier: Apache-2.0
// Values from outside: CUTWATER_LIMITS__API_PER_USER__RATE=20/s and --set
// limits.api-per-user.rate=20/s become nodes of the tree before it is read, so that they go through
// the same checks, with a place of their own. They change or add a scalar of a block that exists:
// the sections always do, a limit when the text has it. The command line wins over the environment,
// a later one over an earlier. Thread safety: works on its own tree.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "config/problem.hpp"
#include "config/tree.hpp"

namespace cutwater::config {

inline constexpr std::string_view kVariablePrefix = "CUTWATER_";
/// Variables of that prefix that mean something else.
inline constexpr std::array<std::string_view, 4> kOtherVariables = {
    "CUTWATER_CONFIG", "CUTWATER_ADDRESS", "CUTWATER_IF_ABSENT", "CUTWATER_ENABLED"};

/// Applies options.environment, then options.settings; appends what cannot be applied to `errors`.
void apply_overrides(Tree& tree, const LoadOptions& options, std::vector<Problem>& errors);

}  // namespace cutwater::config
