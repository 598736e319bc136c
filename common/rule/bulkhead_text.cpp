// SPDX-License-Identifier: Apache-2.0
#include "rule/bulkhead_text.hpp"

#include "rule/breaker_text.hpp"

namespace cutwater::rule {

std::string use_text(const BulkheadStory& s) {
  std::string text = std::to_string(s.in_use) + " of " + std::to_string(s.limit) +
                     (s.limit == 1 ? " place is held" : " places are held");
  if (s.oldest_ns > 0) text += ", the oldest for " + duration_text(s.oldest_ns);
  if (s.waiting != 0) {
    const char* const wait = s.waiting == 1 ? " waits in line" : " wait in line";
    text += "; " + std::to_string(s.waiting) + wait;
  }
  return text;
}

std::string refusal_text(const BulkheadStory& s, std::int64_t retry_after_ns) {
  std::string text = "bulkhead '" + std::string(s.name) + "' ";
  if (s.expired) {
    text += "had no place before the call's deadline";
  } else {
    text += s.limit == 0          ? "lets nobody in: max-concurrent-calls is 0"
            : s.in_use < s.limit ? "gives its next place to those in line"
                                 : "is full";
  }
  if (s.waited_ns > 0) text += " after " + duration_text(s.waited_ns) + " in line";
  if (s.limit != 0 || s.in_use != 0) text += ": " + use_text(s);
  if (s.limit == 0) return text;
  if (!s.shared_by.empty()) {
    text += "; these places are shared by names beyond max-instances of '" +
            std::string(s.shared_by) + "'";
  }
  if (s.cut_wait_ns > 0 && s.waited_ns > 0) {
    text += "; its max-wait-duration ended the wait, " + wait_text(s.cut_wait_ns) +
            " were asked for";
  } else if (s.cut_wait_ns > 0) {
    text += "; nobody may wait for one: its max-wait-duration is 0, and the " +
            wait_text(s.cut_wait_ns) + " asked for do not change that";
  }
  if (s.expired) return text + "; give the call more time, or try again later";
  if (retry_after_ns < 0) return text + "; only a change of its settings helps";
  return text + "; retry after about " + wait_text(retry_after_ns);
}

}  // namespace cutwater::rule
