// SPDX-License-Identifier: Apache-2.0
#include "ctl/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include <cutwater/units.hpp>

#include "config/key_text.hpp"

namespace cutwater::ctl {
namespace {

constexpr std::uint64_t kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000;
constexpr std::uint64_t kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::uint64_t kNeverNs = ~std::uint64_t{0};

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 96> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

/// One unit with one decimal, rounded up: 1.5ms.
std::string tenths(std::uint64_t ns, std::uint64_t unit, const char* name) {
  const std::uint64_t tenth = unit / 10;
  const std::uint64_t count = ns / tenth + (ns % tenth != 0);
  if (count % 10 == 0) return print("%llu%s", static_cast<unsigned long long>(count / 10), name);
  return print("%llu.%llu%s", static_cast<unsigned long long>(count / 10),
               static_cast<unsigned long long>(count % 10), name);
}

struct Unit {
  std::uint64_t ns;
  const char* name;
};

/// Two whole units, rounded up: 2m5s.
std::string pair(std::uint64_t ns, Unit large, Unit small) {
  const std::uint64_t count = ns / small.ns + (ns % small.ns != 0);
  const std::uint64_t per = large.ns / small.ns;
  if (count % per == 0)
    return print("%llu%s", static_cast<unsigned long long>(count / per), large.name);
  return print("%llu%s%llu%s", static_cast<unsigned long long>(count / per), large.name,
               static_cast<unsigned long long>(count % per), small.name);
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string escape(std::string_view bytes) {
  if (bytes.empty()) return "\"\"";
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string escape_lines(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    out += line.empty() ? "" : escape(line);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string escape_short(std::string_view bytes, std::size_t max_chars) {
  std::string text = escape(bytes.substr(0, max_chars + 1));
  if (text.size() <= max_chars) return text;
  text.resize(max_chars);
  return text + print("... (%zu bytes)", bytes.size());
}

namespace {

/// One character of a line, or one escape sequence, which takes no room.
std::size_t piece_at(std::string_view line, std::size_t at) noexcept {
  if (line[at] != '\x1b') return 1;
  const std::size_t end = line.find('m', at);
  return end == std::string_view::npos ? 1 : end + 1 - at;
}

/// Where what follows a broken line begins.
std::size_t indent_of(std::string_view line, std::size_t columns) noexcept {
  const std::size_t first = line.find_first_not_of(' ');
  if (first == std::string_view::npos) return 0;
  const std::size_t gap = line.find("  ", first);
  const std::size_t behind =
      gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  return behind != std::string_view::npos && behind <= columns / 2 ? behind : first + 2;
}

void wrap_line(std::string_view line, std::size_t columns, std::string& out) {
  const std::size_t indent = indent_of(line, columns);
  std::size_t begin = 0, width = 0, space = 0;       // space: where it may be broken; 0 nowhere
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t size = piece_at(line, at);
    if (size == 1) ++width;
    if (line[at] == ' ' && at > begin && (begin > 0 || at >= indent)) space = at;
    if (width > columns && space > begin) {
      out.append(line.substr(begin, line.find_last_not_of(' ', space) + 1 - begin));
      out += '\n' + std::string(indent, ' ');
      begin = space + 1;
      while (begin < line.size() && line[begin] == ' ') ++begin;
      at = begin;
      width = indent;
      space = 0;
      continue;
    }
    at += size;
  }
  out.append(line.substr(begin));
}

}  // namespace

std::string wrap_text(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  for (;;) {
    const std::size_t end = text.find('\n');
    wrap_line(text.substr(0, end), columns, out);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

Result<std::string> key_argument(std::string_view text) {
  constexpr std::string_view kExact = "exact:", kHex = "hex:";
  std::string key;
  if (text.substr(0, kExact.size()) == kExact) {
    key = text.substr(kExact.size());
  } else if (text.substr(0, kHex.size()) == kHex) {
    const std::string_view digits = text.substr(kHex.size());
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      const int high = hex_digit(digits[i]);
      const int low = i + 1 < digits.size() ? hex_digit(digits[i + 1]) : -1;
      if (high < 0 || low < 0) {
        return Error{Errc::InvalidArgument,
                     "'" + escape_short(text) +
                         "' is no list of hex bytes; write two digits a byte, or 'exact:' "
                         "in front when the key itself begins with 'hex:'"};
      }
      key += static_cast<char>(high * 16 + low);
    }
  } else if (auto list = config::key_of_list(text)) {
    key = std::move(*list);
  } else {
    key = text;
  }
  if (key.size() > kMaxKeyBytes) {
    return Error{Errc::KeyTooLong,
                 print("key_too_long: the key has %zu bytes, at most %zu are allowed", key.size(),
                       kMaxKeyBytes)};
  }
  return key;
}

std::string key_shown(std::string_view bytes, std::size_t max_chars) {
  std::string text = config::spell_key(bytes);
  if (text.size() <= max_chars) return text;
  text.resize(max_chars);
  return text + print("... (%zu bytes)", bytes.size());
}

namespace {

/// A spelling that a daemon sent: as it is where it is one, since a backslash is a key's own.
std::string spelled(const std::string& text) {
  constexpr std::size_t kMost = 48;
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= 0x20 && c < 0x7f; });
  return plain && text.size() <= kMost ? text : escape_short(text, kMost);
}

}  // namespace

std::string key_cell(const wire::Value& row) {
  const wire::Value* key = row.find("key");
  const std::string* bytes = key == nullptr ? nullptr : key->as_binary();
  const std::string* text = key == nullptr ? nullptr : key->as_string();
  const wire::Value* cut = row.find("cut");
  if (bytes != nullptr && cut != nullptr && cut->as_bool().value_or(false)) {
    return escape(*bytes) + "...";
  }
  if (bytes != nullptr) return key_shown(*bytes, 48);
  return text == nullptr || text->empty() ? "-" : spelled(*text);
}

void spell_keys(std::vector<wire::Value>& rows) {
  for (wire::Value& row : rows) {
    const wire::Value* key = row.find("key");
    const std::string* bytes = key == nullptr ? nullptr : key->as_binary();
    const wire::Value* cut = row.find("cut");
    if (bytes == nullptr || (cut != nullptr && cut->as_bool().value_or(false))) continue;
    row.set("key", config::spell_key(*bytes));
  }
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view more) {
  const std::string plural = more.empty() ? std::string(one) + "s" : std::string(more);
  return std::to_string(count) + " " + (count == 1 ? std::string(one) : plural);
}

std::string duration_text(std::uint64_t ns) {
  if (ns == kNeverNs) return "never";
  if (ns == 0) return "0";
  if (ns < kMicro) return print("%lluns", static_cast<unsigned long long>(ns));
  if (ns < kMilli) return tenths(ns, kMicro, "us");
  if (ns < kSecond) return tenths(ns, kMilli, "ms");
  if (ns < kMinute) return tenths(ns, kSecond, "s");
  // Rounded up to the next larger unit, it is said in that one: 1h, not 60m.
  if (ns <= kHour - kSecond) return pair(ns, {kMinute, "m"}, {kSecond, "s"});
  if (ns <= kDay - kMinute) return pair(ns, {kHour, "h"}, {kMinute, "m"});
  return pair(ns, {kDay, "d"}, {kHour, "h"});
}

std::string permille_text(std::uint64_t permille) {
  return print("%llu.%llu %%", static_cast<unsigned long long>(permille / 10),
               static_cast<unsigned long long>(permille % 10));
}

std::string rate_text(std::uint64_t count, std::uint64_t period_ns) {
  constexpr Unit kUnits[] = {{kDay, "d"},    {kHour, "h"},   {kMinute, "m"}, {kSecond, "s"},
                             {kMilli, "ms"}, {kMicro, "us"}, {1, "ns"}};
  for (const Unit& unit : kUnits) {
    if (period_ns == unit.ns)
      return print("%llu/%s", static_cast<unsigned long long>(count), unit.name);
    if (period_ns != 0 && period_ns % unit.ns == 0) {
      return print("%llu/%llu%s", static_cast<unsigned long long>(count),
                   static_cast<unsigned long long>(period_ns / unit.ns), unit.name);
    }
  }
  return print("%llu/0", static_cast<unsigned long long>(count));
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kNames)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? print("%llu B", static_cast<unsigned long long>(bytes))
                   : print("%.1f %s", value, kNames[unit]);
}

std::string moment_text(std::uint64_t unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  char text[40];
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    return std::to_string(unix_s) + " s";
  }
  return text;
}

std::string moment_ms_text(std::uint64_t unix_ms) {
  std::string text = moment_text(unix_ms / 1000);
  if (text.back() == 'Z') {
    text.pop_back();
    text += print(".%03lluZ", static_cast<unsigned long long>(unix_ms % 1000));
  }
  return text;
}

std::string hash_text(std::uint64_t hash) {
  return print("%016llx", static_cast<unsigned long long>(hash));
}

}  // namespace cutwater::ctl
