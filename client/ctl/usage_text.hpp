// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line that cannot be carried out, and how it would be right: the
// command it is about, the nearest word for a misspelt one, the words there are, and a usage line.
// Included by main.cpp and its test only: it knows CLI11. Pure.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}

namespace cutwater::ctl {

/// `words` are those of the line, without the program's name. No newline at its end.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& words);

}  // namespace cutwater::ctl
