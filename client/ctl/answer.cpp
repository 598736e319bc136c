// SPDX-License-Identifier: Apache-2.0
#include "ctl/answer.hpp"

#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {

Result<std::string> explained_text(const wire::Value& row, const std::string& name) {
  const wire::Value* words = row.find("explain");
  if (words == nullptr || words->as_array() == nullptr || words->as_array()->empty()) {
    return Error{Errc::Protocol,
                 "the daemon gave no words for it: it is older than this tool; restart it"};
  }
  std::string text = escape(name) + '\n';
  for (const wire::Value& line : *words->as_array()) {
    if (line.as_string() != nullptr) text += "  " + escape_short(*line.as_string(), 512) + '\n';
  }
  return text;
}

Exit print_row(const Settings& settings, const Look& look, const wire::Value& row,
               const std::string& text) {
  wire::Value document = look.document();
  for (const auto& entry : *row.as_map()) document.set(entry.key, entry.value);
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !truth_at(row, "allowed") ? Exit::Refused : printed;
}

}  // namespace cutwater::ctl
