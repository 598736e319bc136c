// SPDX-License-Identifier: Apache-2.0
#include "ctl/steer.hpp"

#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

Result<wire::SteerAnswer> ask(const Settings& settings, const wire::Steer& message,
                              Nanos patience) {
  auto link = open_link(settings);
  if (!link) return link.error();
  auto answer = link->connection.steer(message, client::Deadline::in(patience));
  if (!answer && answer.error().code() == Errc::Timeout) {
    return Error{Errc::Timeout, answer.error().text() + "; it may still be carried out"};
  }
  return answer;
}

}  // namespace

Exit steer(const Settings& settings, const wire::Steer& message, const std::string& done,
           Nanos patience) {
  const auto answer = ask(settings, message, patience);
  if (!answer) return complain(settings, answer.error());
  if (answer->code == wire::kSteerDone) {
    wire::Value document;
    document.set("done", true);
    document.set("text", answer->text);
    document.set("generation", answer->generation);
    return print(settings, document,
                 (answer->text.empty() ? done : escape_lines(answer->text)) + '\n');
  }
  const std::string text = answer->text.empty()
                               ? "refused with code " + std::to_string(answer->code)
                               : escape_lines(answer->text);
  switch (answer->code) {
    case wire::kSteerNotPermitted:
      return complain(settings, "not_permitted", text, Exit::NotPermitted);
    case wire::kSteerNoSuchName:
      return complain(settings, "unknown_name", text, Exit::NoSuchName);
    case wire::kSteerNoRoom:
      return complain(settings, "no_room", text, Exit::Invalid);
    default:
      return complain(settings, "refused", text, Exit::Invalid);
  }
}

}  // namespace cutwater::ctl
