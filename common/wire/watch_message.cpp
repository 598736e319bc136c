// SPDX-License-Identifier: Apache-2.0
#include "wire/watch_message.hpp"

#include "wire/fields.hpp"

namespace cutwater::wire {
namespace {

constexpr auto kWatch = [](auto& io, auto& m) {
  io.number("kinds", m.kinds, 0, kKnownEventKinds);
  io.text("pattern", m.pattern, kMaxPattern);
  io.number("from_seq", m.from_seq);
  io.number("max_pending", m.max_pending, 1, kMaxPending);
};

constexpr auto kWatchAnswer = [](auto& io, auto& m) {
  io.number("watch", m.watch);
  io.number("next_seq", m.next_seq);
};

constexpr auto kEvent = [](auto& io, auto& m) {
  io.number("watch", m.watch);
  io.list("events", m.events, {0, kMaxEvents}, [](auto& list, auto& event) {
    list.tuple("", [&](auto& in) {
      in.number("seq", event.seq);
      in.number("clock_ns", event.clock_ns);
      in.number("kind", event.kind);
      in.subject_or_empty("name", event.name);
      in.number("epoch", event.epoch);
      in.map("data", event.data);
    });
  });
  io.number("missed", m.missed);
};

}  // namespace

template <>
Decoded<Watch> decode<Watch>(std::string_view payload) {
  return read_message<Watch>(payload, kWatch);
}
template <>
Decoded<WatchAnswer> decode<WatchAnswer>(std::string_view payload) {
  return read_message<WatchAnswer>(payload, kWatchAnswer);
}
template <>
Decoded<Event> decode<Event>(std::string_view payload) {
  return read_message<Event>(payload, kEvent);
}

Result<std::string> encode(const Watch& m) { return write_message(m, kWatch); }
Result<std::string> encode(const WatchAnswer& m) { return write_message(m, kWatchAnswer); }
Result<std::string> encode(const Event& m) { return write_message(m, kEvent); }

// Linear: after a mismatch only the last `*` is tried again, one byte further on.
bool matches_pattern(std::string_view pattern, std::string_view name) noexcept {
  if (pattern.empty()) return true;
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace cutwater::wire
