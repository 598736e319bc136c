// SPDX-License-Identifier: Apache-2.0
// Any bytes as an access log. The first byte chooses how many bytes come at a time; the rest is the
// log. Whatever it holds, the reader must come to the same lines as a plain split of the text, in
// any portions, and give nothing but clients of one word and stamps in its range.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/units.hpp>

#include "ctl/access_log.hpp"

namespace {

using namespace cutwater;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Line {
  std::string client;
  std::int64_t stamp_ns;
  bool operator==(const Line&) const = default;
};

struct Seen {
  std::vector<Line> lines;
  std::uint64_t total = 0, skipped = 0, bytes = 0;
  bool operator==(const Seen&) const = default;
};

Seen read_in_portions(std::string_view text, std::size_t portion) {
  std::size_t at = 0;
  ctl::AccessLog log([&](char* place, std::size_t size) {
    const std::size_t count = std::min({portion, size, text.size() - at});
    std::memcpy(place, text.data() + at, count);
    at += count;
    return count;
  });
  Seen seen;
  ctl::LogEntry entry;
  while (log.next(entry)) {
    require(!entry.client.empty() && entry.client.size() <= kMaxKeyBytes);
    require(entry.client.find(' ') == std::string_view::npos);
    require(entry.stamp_ns >= 0 && entry.stamp_ns % 1'000'000'000 == 0);
    seen.lines.push_back({std::string(entry.client), entry.stamp_ns});
  }
  require(log.faults().size() <= ctl::kShownLogFaults);
  require(log.faults().size() == std::min<std::uint64_t>(log.skipped(), ctl::kShownLogFaults));
  seen.total = log.lines();
  seen.skipped = log.skipped();
  seen.bytes = log.bytes();
  return seen;
}

/// The same by a plain split.
Seen read_plainly(std::string_view text) {
  Seen seen;
  seen.bytes = text.size();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++seen.total;
    const bool too_long = line.size() > ctl::kMaxLogLine;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ctl::LogEntry entry;
    if (too_long || ctl::parse_log_line(line, entry) != nullptr) {
      ++seen.skipped;
    } else {
      seen.lines.push_back({std::string(entry.client), entry.stamp_ns});
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Seen plain = read_plainly(text);
  require(read_in_portions(text, std::size_t{1} + data[0]) == plain);
  require(read_in_portions(text, text.size() + 1) == plain);
  return 0;
}
