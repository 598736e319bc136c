// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <poll.h>
#include <unistd.h>

#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// How often -f looks for more.
constexpr int kFollowMs = 200;
/// So many failed looks in a row end -f: the daemon may be restarting.
constexpr int kFollowPatience = 50;

volatile std::sig_atomic_t interrupted = 0;
void on_signal(int) { interrupted = 1; }

/// From now on SIGINT and SIGTERM end the wait instead of the program.
void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

std::string seconds_text(std::uint64_t ns) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%12llu.%03llu",
                static_cast<unsigned long long>(ns / 1'000'000'000),
                static_cast<unsigned long long>(ns / 1'000'000 % 1000));
  return buffer;
}

/// One line of a table that never ends: number, seconds of segment time, kind, what it is about.
std::string line_of(const wire::Value& row) {
  char number[24];
  std::snprintf(number, sizeof number, "%8llu",
                static_cast<unsigned long long>(number_at(row, "number")));
  std::string kind = escape(text_at(row, "kind"));
  kind.resize(std::max<std::size_t>(kind.size(), 16), ' ');
  const std::string text = text_at(row, "text");
  std::string out = number + ("  " + seconds_text(number_at(row, "clock_ns"))) + "  " + kind;
  out += text.empty() ? "  #" + std::to_string(number_at(row, "object")) : "  " + escape(text);
  out += '\n';
  return out;
}

/// Prints as they come: a line each, or with -o json a document a line.
bool print_events(const Settings& settings, const EventRows& page) {
  std::string out;
  if (page.lost > 0 && !settings.json)
    out += "          (" + std::to_string(page.lost) + " events were overwritten)\n";
  for (const wire::Value& row : page.rows)
    out += settings.json ? to_json(row, JsonForm::Line) : line_of(row);
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
}

Exit follow(const Settings& settings, Look look, std::uint64_t next) {
  int failures = 0;
  while (interrupted == 0) {
    ::poll(nullptr, 0, kFollowMs);
    if (interrupted != 0) break;
    auto page = look.read_events(next);
    if (!page) {
      if (++failures > kFollowPatience) return complain(page.error());
      auto again = Look::open(settings);
      if (!again) continue;
      if (again->remark() != look.remark() && !again->remark().empty()) note(again->remark());
      look = std::move(*again);
      continue;
    }
    failures = 0;
    next = page->next;
    if (!page->rows.empty() && !print_events(settings, *page))
      return Exit::Ok;  // the reader went away
  }
  return Exit::Ok;
}

}  // namespace

Exit run_events(const Settings& settings, const EventsAsk& ask) {
  if (ask.follow) catch_interrupt();
  auto look = Look::open(settings);
  if (!look) return complain(look.error());
  if (!look->remark().empty()) note(look->remark());

  EventRows all;
  for (int page = 0; page < kMaxPages; ++page) {
    auto more = look->read_events(all.next);
    if (!more) return complain(more.error());
    if (all.rows.empty()) all.lost = more->lost;
    all.next = more->next;
    if (more->rows.empty()) break;
    for (wire::Value& row : more->rows) all.rows.push_back(std::move(row));
  }
  if (ask.last > 0 && all.rows.size() > ask.last) {
    all.rows.erase(all.rows.begin(), all.rows.end() - static_cast<std::ptrdiff_t>(ask.last));
    all.lost = 0;
  }
  if (ask.follow) {
    if (!print_events(settings, all)) return Exit::Ok;
    return follow(settings, std::move(*look), all.next);
  }
  wire::Value document = look->document();
  document.set("lost", all.lost);
  std::string text;
  for (const wire::Value& row : all.rows) text += line_of(row);
  document.set("events", wire::Value::Array(all.rows.begin(), all.rows.end()));
  return print(settings, document, text.empty() ? "no events\n" : text);
}

}  // namespace cutwater::ctl
