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
#include "ctl/seen_events.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// How often -f looks for more.
constexpr int kFollowMs = 200;
/// Looks at a memory between two tries to find its daemon again.
constexpr unsigned kLooksPerTry = 5;
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

/// One line of a table that never ends: number, wall time, seconds of segment time, kind, what it
/// is about.
std::string line_of(const wire::Value& row) {
  char number[24];
  std::snprintf(number, sizeof number, "%8llu",
                static_cast<unsigned long long>(number_at(row, "number")));
  std::string kind = escape(text_at(row, "kind"));
  kind.resize(std::max<std::size_t>(kind.size(), 16), ' ');
  const std::string words = text_at(row, "words");
  const std::string text = words.empty() ? text_at(row, "text") : words;
  const std::string wall =
      row.find("unix_ms") == nullptr ? std::string("-") : moment_ms_text(number_at(row, "unix_ms"));
  std::string out = number + ("  " + wall) + seconds_text(number_at(row, "clock_ns")) + "  " + kind;
  out += text.empty() ? "  #" + std::to_string(number_at(row, "object")) : "  " + escape(text);
  if (kind == "config_refused  ") {
    out += " ... (in full: `cutwaterctl doctor` while it lasts, and the daemon's log)";
  }
  out += '\n';
  return out;
}

/// What takes the place of events that are not there any more; empty when none is missing.
std::string lost_line(std::uint64_t lost) {
  if (lost == 0) return "";
  return "          (" + std::to_string(lost) + (lost == 1 ? " event is" : " events are") +
         " lost: overwritten by newer ones, or never finished)\n";
}

/// Prints as they come: a line each, or with -o json a document a line.
bool print_events(const Settings& settings, const EventRows& page) {
  std::string out = settings.json ? std::string() : lost_line(page.lost);
  for (const wire::Value& row : page.rows)
    out += settings.json ? to_json(row, JsonForm::Line) : line_of(row);
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
}

/// Where a reader of events stands: the number it wants next, the last row it saw, and the names of
/// what it showed (ctl/seen_events.hpp).
class Position {
 public:
  std::uint64_t next() const { return next_; }
  const wire::Value& last() const { return last_; }

  /// Leaves those of the page's rows that were not shown yet.
  void pass(EventRows& page) {
    next_ = page.next;
    if (!page.rows.empty()) last_ = page.rows.back();
    std::erase_if(page.rows, [this](const wire::Value& row) {
      return !seen_.first(text_at(row, "kind"), number_at(row, "object"), number_at(row, "epoch"));
    });
  }

 private:
  std::uint64_t next_ = 0;
  wire::Value last_;
  SeenEvents seen_;
};

/// Whether the last row seen is still there. A memory made anew counts from 0 again.
bool same_memory(Look& look, const Position& at) {
  if (at.last().is_nil()) return true;
  const std::uint64_t number = number_at(at.last(), "number");
  const auto page = look.read_events(number);
  if (!page || page->rows.empty()) return false;
  const wire::Value& first = page->rows.front();
  // Or it was overwritten. The wall clock's reckoning may differ a little from look to look.
  const bool same = number_at(first, "clock_ns") == number_at(at.last(), "clock_ns") &&
                    text_at(first, "kind") == text_at(at.last(), "kind") &&
                    text_at(first, "text") == text_at(at.last(), "text");
  return number_at(first, "number") > number || same;
}

bool reopen(const Settings& settings, Look& look, Position& at, bool daemon_only) {
  auto again = Look::open(settings, Look::Voice::Quiet);
  if (!again || (daemon_only && std::string_view(again->source()) != "daemon")) return false;
  if (!same_memory(*again, at)) at = {};
  if (again->remark() != look.remark() && !again->remark().empty()) note(again->remark());
  look = std::move(*again);
  return true;
}

Exit follow(const Settings& settings, Look look, Position at) {
  int failures = 0;
  for (unsigned looks = 1; interrupted == 0; ++looks) {
    ::poll(nullptr, 0, kFollowMs);
    if (interrupted != 0) break;
    // Who reads a memory goes back to the daemon when there is one again.
    const bool in_memory = std::string_view(look.source()) == "memory" && settings.memory.empty();
    if (in_memory && looks % kLooksPerTry == 0) reopen(settings, look, at, true);
    auto page = look.read_events(at.next());
    if (!page) {
      if (!reopen(settings, look, at, false) && ++failures > kFollowPatience) {
        return complain(settings, page.error());
      }
      continue;
    }
    failures = 0;
    at.pass(*page);
    const bool news = !page->rows.empty() || page->lost > 0;
    if (news && !print_events(settings, *page)) return Exit::Ok;  // reader gone
  }
  return Exit::Ok;
}

}  // namespace

Exit run_events(const Settings& settings, const EventsAsk& ask) {
  if (ask.follow) catch_interrupt();
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());

  EventRows all;
  Position at;
  for (int page = 0; page < kMaxPages; ++page) {
    auto more = look->read_events(at.next());
    if (!more) return complain(settings, more.error());
    all.lost += more->lost;
    if (more->rows.empty()) break;
    at.pass(*more);
    for (wire::Value& row : more->rows) all.rows.push_back(std::move(row));
  }
  if (ask.last > 0 && all.rows.size() > ask.last) {
    all.rows.erase(all.rows.begin(), all.rows.end() - static_cast<std::ptrdiff_t>(ask.last));
    all.lost = 0;
  }
  if (ask.follow) {
    if (!print_events(settings, all)) return Exit::Ok;
    return follow(settings, std::move(*look), std::move(at));
  }
  wire::Value document = look->document();
  document.set("lost", all.lost);
  std::string text = lost_line(all.lost);
  for (const wire::Value& row : all.rows) text += line_of(row);
  document.set("events", wire::Value::Array(all.rows.begin(), all.rows.end()));
  return print(settings, document, text.empty() ? "no events\n" : text);
}

}  // namespace cutwater::ctl
