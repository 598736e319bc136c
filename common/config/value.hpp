// SPDX-License-Identifier: Apache-2.0
// From the text of one scalar to a Parsed value, by the row of its key: kind, range, words. The
// reader adds place and path to the errors. Names of users and groups go through LoadOptions; where
// it has no lookup they stay names, and only numbers become ids. Errors: InvalidConfig, `what is
// wrong; remedy`. Thread safety: pure functions of their arguments.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/rate.hpp"
#include "config/schema.hpp"

namespace cutwater::config {

/// A value of every kind but Users and Groups.
Result<Parsed> parse_value(const Key& key, std::string_view text, const LoadOptions& options);

/// One member of a Users or Groups list: a name, a number or "*". `ids` has at most one entry.
Result<Parsed> parse_member(const Key& key, std::string_view text, const LoadOptions& options);

/// Members put together; the text is the list as one would write it.
Parsed join_members(const std::vector<Parsed>& members);

/// The default of a row that has one. A default group that does not exist is left out.
Parsed default_value(const Key& key, const LoadOptions& options);

Parsed rate_value(Rate rate);

/// Replaces `${NAME}` and `${NAME:-default}`, once: what comes in is not looked at again.
Result<std::string> substitute(std::string_view text, const LoadOptions& options);

}  // namespace cutwater::config
