// SPDX-License-Identifier: Apache-2.0
// Answers on standard output: a table for people or one JSON document for scripts; notes and errors
// on standard error, one line each. Rows are wire::Value maps, as READ answers them; keys a newer
// daemon adds appear in JSON and are left out of tables. Thread safety: one thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/error.hpp>

#include "ctl/exit_code.hpp"
#include "ctl/settings.hpp"
#include "ctl/table.hpp"
#include "wire/value.hpp"

namespace cutwater::ctl {

/// The number, word or truth at a key of a row; the default when it is missing or of another kind.
std::uint64_t number_at(const wire::Value& row, std::string_view key,
                        std::uint64_t missing = 0) noexcept;
std::string text_at(const wire::Value& row, std::string_view key);
bool truth_at(const wire::Value& row, std::string_view key) noexcept;

/// How JSON is laid out: two blanks a level for one document, one line each for a stream of them.
enum class JsonForm : std::uint8_t { Indented, Line };

/// The tree as JSON, ending in a newline. Binary becomes its escape() text,
/// bytes that are no UTF-8 are replaced.
std::string to_json(const wire::Value& value, JsonForm form = JsonForm::Indented);

/// to_json(document) with -o json, `table` otherwise. Exit::Ok, or Exit::NotWritten when standard
/// output cannot be written (a note says why); of a reader that went away nothing is said.
Exit print(const Settings& settings, const wire::Value& document, const std::string& table);

/// The table in the colours and the width of standard output.
inline std::string table_text(const Settings& settings, const Table& table) {
  return table.text(settings.colour, settings.columns);
}

/// A text that is no table and no document, such as a script.
Exit print_text(const std::string& text);

/// `cutwaterctl: TEXT` on standard error.
void note(const std::string& text);
/// note(error.text()) and its exit code. With -o json also a document {error: {code, text, exit}}
/// on standard output, so that a script reads one stream.
Exit complain(const Settings& settings, const Error& error);
/// The same for a refusal that is no Error of ours, such as a daemon's verdict.
Exit complain(const Settings& settings, std::string_view code, const std::string& text, Exit exit);

}  // namespace cutwater::ctl
