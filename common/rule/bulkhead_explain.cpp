// SPDX-License-Identifier: Apache-2.0
#include "rule/bulkhead_explain.hpp"

#include <algorithm>

#include "rule/breaker_text.hpp"
#include "rule/bulkhead_settings.hpp"

namespace cutwater::rule {
namespace {

/// Waits longer than this have no end that is worth a number.
constexpr std::int64_t kYearNs = std::int64_t{365} * 86'400 * 1'000'000'000;

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string name_of(const BulkheadShare& one) {
  std::string text = one.pid != 0 ? "pid " + number(one.pid) : "row " + number(one.row);
  if (one.gone) text += " (gone)";
  return text;
}

/// "at most 200 ms", "for as long as it takes".
std::string longest_wait(std::uint64_t max_wait_ns) {
  return max_wait_ns == kWaitForever
             ? "until its own deadline"
             : "at most " + duration_text(static_cast<std::int64_t>(max_wait_ns));
}

/// What the next caller gets.
std::string verdict(const BulkheadStory& s, const BulkheadAround& a) {
  if (!a.enabled) return "switched off: the next caller is let through, and nothing is counted";
  if (s.limit == 0) return "the next caller is refused: max-concurrent-calls is 0";
  if (s.in_use < s.limit && s.waiting == 0) {
    return "the next caller gets a place: " + use_text(s);
  }
  const std::string why = s.in_use < s.limit
                              ? "the next place goes to those in line: " + use_text(s)
                              : use_text(s);
  const std::string back = "come back in about " + wait_text(a.retry_after_ns);
  if (a.max_wait_ns == 0) return "the next caller is refused: " + why + "; " + back;
  if (s.waiting >= a.max_waiting) {
    return "the next caller is refused, also one that would wait: " + why + ", as many as may (" +
           number(a.max_waiting) + "); " + back;
  }
  return "the next caller that does not wait is refused: " + why + "; " + back;
}

void about_line(const BulkheadStory& s, const BulkheadAround& a, std::vector<std::string>& out) {
  const bool room = a.max_wait_ns != 0 && s.waiting < a.max_waiting;
  if (room && (s.in_use >= s.limit || s.waiting != 0)) {
    out.push_back("one that waits is number " + number(s.waiting + 1) + " in line, of at most " +
                  number(a.max_waiting) + ", and waits " + longest_wait(a.max_wait_ns));
  } else if (a.max_wait_ns == 0) {
    out.push_back("nobody waits in line here: max-wait-duration is 0");
  }
  if (a.next_row == 0) return;
  const auto next = std::find_if(
      a.shares.begin(), a.shares.end(),
      [&a](const BulkheadShare& one) { return one.row == a.next_row && one.waiting != 0; });
  const std::string who =
      next == a.shares.end() ? "row " + number(a.next_row) : name_of(*next);
  std::string text = "the next place that is given back goes to " + who + ", first in line";
  if (a.next_left_ns > 0 && a.next_left_ns < kYearNs) {
    text += ", which waits for " + duration_text(a.next_left_ns) + " more at most";
  }
  out.push_back(std::move(text));
}

/// "pid 77 holds 8 places, the oldest for 3.2 s"; "pid 80 waits with 2 calls".
std::string share_words(const BulkheadShare& one) {
  std::string text = name_of(one);
  if (one.places != 0) {
    text += " holds " + number(one.places) + (one.places == 1 ? " place" : " places");
    if (one.oldest_ns > 0) {
      text += (one.places == 1 ? ", for " : ", the oldest for ") + duration_text(one.oldest_ns);
    }
  }
  if (one.waiting != 0) {
    text += (one.places != 0 ? ", and waits with " : " waits with ") + number(one.waiting) +
            (one.waiting == 1 ? " call" : " calls");
  }
  if (one.gone && one.places != 0) text += "; the daemon gives them back";
  return text;
}

void about_shares(const BulkheadAround& a, std::vector<std::string>& out) {
  std::vector<BulkheadShare> shares = a.shares;
  std::stable_sort(shares.begin(), shares.end(),
                   [](const BulkheadShare& x, const BulkheadShare& y) {
                     return x.places != y.places ? x.places > y.places : x.waiting > y.waiting;
                   });
  const std::size_t named = std::min(shares.size(), kHoldersNamed);
  for (std::size_t i = 0; i < named; ++i) out.push_back(share_words(shares[i]));
  std::uint64_t places = 0, waiting = 0;
  for (std::size_t i = named; i < shares.size(); ++i) {
    places += shares[i].places;
    waiting += shares[i].waiting;
  }
  if (named == shares.size()) return;
  out.push_back(number(shares.size() - named) + " more processes hold " + number(places) +
                (places == 1 ? " place and wait with " : " places and wait with ") +
                number(waiting) + (waiting == 1 ? " call" : " calls"));
}

void about_holding(const BulkheadStory& s, const BulkheadAround& a,
                   std::vector<std::string>& out) {
  if (s.in_use > s.limit) {
    out.push_back(number(s.in_use - s.limit) +
                  " too many are inside since the number was lowered: they finish, and nobody "
                  "gets a place before");
  }
  if (a.median_ns > 0) {
    out.push_back("half of the places of the last minute were held for " +
                  duration_text(a.median_ns) + " or less");
  }
  out.push_back(a.max_hold_ns == 0
                    ? "max-hold is off: a call that does not end keeps its place while its "
                      "process lives"
                    : "a place that is held longer than " +
                          duration_text(static_cast<std::int64_t>(a.max_hold_ns)) +
                          " is taken back (max-hold)");
  if (a.pattern) {
    out.push_back("these are the pattern's own places: each of its names has as many of its own, "
                  "and names beyond max-instances share these");
  }
}

}  // namespace

std::vector<std::string> explain_lines(const BulkheadStory& s, const BulkheadAround& a) {
  std::vector<std::string> out{verdict(s, a)};
  if (a.enabled && s.limit != 0) about_line(s, a, out);
  about_shares(a, out);
  if (a.enabled && (s.limit != 0 || s.in_use != 0)) about_holding(s, a, out);
  return out;
}

}  // namespace cutwater::rule
