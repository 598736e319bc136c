// SPDX-License-Identifier: Apache-2.0
// An error or note while it is being collected: a place that sorts, the path of the key, and the
// text. Thread safety: values and pure functions.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace cutwater::config {

struct Problem {
  Place place;
  std::string path;   ///< empty: the text as a whole
  std::string text;
};

/// Sorted by place (file, then environment, then command line), at most kMaxFindings of them and
/// one more line that counts the rest.
std::vector<Finding> to_findings(std::vector<Problem> problems, std::string_view file_name);

/// "cutwater.yaml:9:11", "environment CUTWATER_LOG__LEVEL", "command line --set log.level".
std::string where_text(const Place& place, std::string_view file_name);

}  // namespace cutwater::config
