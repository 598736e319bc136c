// SPDX-License-Identifier: Apache-2.0
#include "ctl/print.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "ctl/text.hpp"

namespace cutwater::ctl {

std::uint64_t number_at(const wire::Value& row, std::string_view key,
                        std::uint64_t missing) noexcept {
  const wire::Value* found = row.find(key);
  return found == nullptr ? missing : found->as_unsigned().value_or(missing);
}

std::string text_at(const wire::Value& row, std::string_view key) {
  const wire::Value* found = row.find(key);
  if (found == nullptr) return {};
  if (const std::string* text = found->as_string()) return *text;
  if (const std::string* bytes = found->as_binary()) return *bytes;
  return {};
}

bool truth_at(const wire::Value& row, std::string_view key) noexcept {
  const wire::Value* found = row.find(key);
  return found != nullptr && found->as_bool().value_or(false);
}

Exit print(const Settings& settings, const wire::Value& document, const std::string& table) {
  return print_text(settings.json ? to_json(document) : wrap_text(table, settings.columns));
}

Exit print_text(const std::string& text) {
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  // A reader that has seen enough (`| head -1`) is no fault: the verdict of the command stays.
  if (written || errno == EPIPE) return Exit::Ok;
  note(std::string("standard output cannot be written: ") + std::strerror(errno));
  return Exit::NotWritten;
}

void note(const std::string& text) {
  const std::string line =
      "cutwaterctl: " + text + (text.empty() || text.back() != '\n' ? "\n" : "");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Exit complain(const Settings& settings, std::string_view code, const std::string& text,
              Exit exit) {
  note(text);
  if (!settings.json) return exit;
  wire::Value document;
  document.set("error", wire::Value::map({{"code", std::string(code)},
                                          {"text", text},
                                          {"exit", static_cast<std::uint64_t>(exit)}}));
  print(settings, document, {});
  return exit;
}

Exit complain(const Settings& settings, const Error& error) {
  return complain(settings, name_of(error.code()), error.text(), exit_of(error.code()));
}

}  // namespace cutwater::ctl
