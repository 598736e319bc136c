// SPDX-License-Identifier: Apache-2.0
// What `get` and `explain` of breakers and bulkheads have in common: one row becomes the document,
// and the exit code says whether a caller would be refused now. Thread safety: one thread.
#pragma once
#include <string>

#include <cutwater/result.hpp>

#include "ctl/exit_code.hpp"
#include "ctl/look.hpp"
#include "ctl/settings.hpp"
#include "wire/value.hpp"

namespace cutwater::ctl {

/// The row's sentences (`explain`), each indented below `name`. Protocol when it has none.
Result<std::string> explained_text(const wire::Value& row, const std::string& name);

/// Prints the fields of one row as a document, or `text`. Exit::Refused when a caller would be
/// refused now.
Exit print_row(const Settings& settings, const Look& look, const wire::Value& row,
               const std::string& text);

}  // namespace cutwater::ctl
