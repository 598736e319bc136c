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
    return Error{Errc::Timeout,
                 answer.error().text() +
                     "; it may be in force all the same: `cutwaterctl journal list` shows the acts "
                     "that stand, and a longer --timeout waits longer"};
  }
  return answer;
}

/// A reload is refused for what the file says; any other act because it cannot be carried out.
Exit refused_exit(const wire::Steer& message) noexcept {
  return message.verb == wire::kVerbConfigReload ? Exit::Invalid : Exit::Refused;
}

const char* saved_word(std::uint8_t saved) {
  switch (saved) {
    case wire::kSteerSaved:
      return "saved";
    case wire::kSteerSavePending:
      return "pending";
    case wire::kSteerNotSaved:
      return "failed";
    default:
      return nullptr;
  }
}

Exit print_done(const Settings& settings, const wire::SteerAnswer& answer,
                const std::string& done, const std::string& remark) {
  wire::Value document;
  document.set("done", true);
  document.set("text", answer.text);
  document.set("generation", answer.generation);
  if (answer.act != 0) document.set("act", answer.act);
  if (const char* saved = saved_word(answer.saved)) document.set("saved", saved);
  std::string text = answer.text.empty() ? done : escape_lines(answer.text);
  while (text.ends_with('\n')) text.pop_back();
  if (answer.act != 0) {
    const std::string id = std::to_string(answer.act);
    text += "\nact " + id + ": `cutwaterctl journal undo " + id + "` ends it";
  }
  if (!remark.empty()) {
    document.set("note", remark);
    text += "\nnote: " + remark;
  }
  return print(settings, document, text + '\n');
}

}  // namespace

Exit steer(const Settings& settings, const wire::Steer& message, const std::string& done,
           Nanos patience, const std::string& remark) {
  const auto answer = ask(settings, message, patience);
  if (!answer) return complain(settings, answer.error());
  if (answer->code == wire::kSteerDone) return print_done(settings, *answer, done, remark);
  const std::string text = answer->text.empty()
                               ? "refused with code " + std::to_string(answer->code)
                               : escape_lines(answer->text);
  switch (answer->code) {
    case wire::kSteerNotPermitted:
      return complain(settings, "not_permitted", text, Exit::NotPermitted);
    case wire::kSteerNoSuchName:
      return complain(settings, "unknown_name", text, Exit::NoSuchName);
    case wire::kSteerNoRoom:
      return complain(settings, "no_room", text, Exit::Refused);
    default:
      return complain(settings, "refused", text, refused_exit(message));
  }
}

}  // namespace cutwater::ctl
