// SPDX-License-Identifier: Apache-2.0
// How values are written for people: bytes of strangers, durations, counts.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/value.hpp"

namespace cutwater::ctl {

/// Bytes from outside (keys, names of processes, lines of logs) so that a terminal or a log cannot
/// be misled (C037): printable ASCII as it is, a backslash as `\\`, everything else as `\xNN`. Two
/// keys that differ are printed differently, also where they would look alike. Nothing at all is
/// `""`.
std::string escape(std::string_view bytes);

/// escape() of each line of a text of several lines.
std::string escape_lines(std::string_view text);

/// escape(), cut to `max_chars` characters with its length behind it: for tables.
std::string escape_short(std::string_view bytes, std::size_t max_chars = 48);

/// Lines longer than `columns` (0: none) are broken at their spaces. What follows is indented as
/// the line's text behind a gap of two spaces is (`note   what it says`), where that is in its
/// first half, else two deeper than the line. Escape sequences of colours take no room. A word
/// that is longer than a line stays whole.
std::string wrap_text(std::string_view text, std::size_t columns);

/// A key as given on the command line: its bytes; `hex:616c` names bytes; `[acme, alice]` the key
/// of these parts; `exact:` in front keeps a key that looks like one of them. What key_shown()
/// prints whole is read back. InvalidArgument: odd or wrong hex digits. KeyTooLong.
Result<std::string> key_argument(std::string_view text);

/// A key in its one spelling (config/key_text.hpp), cut to `max_chars` with its length behind it.
std::string key_shown(std::string_view bytes, std::size_t max_chars = 256);

/// The key of a row of READ keys, top or journal, for a table: its spelling, `#..` where it is
/// hashed, `-` where it is hidden; of one that was kept in part its beginning and `...`, which is
/// no key to give back.
std::string key_cell(const wire::Value& row);

/// The same for JSON: `key` of each row becomes its spelling where it is whole.
void spell_keys(std::vector<wire::Value>& rows);

/// `1 call`, `2 calls`; `more`: the word for all others where it is not `one` and an s.
std::string counted(std::uint64_t count, std::string_view one, std::string_view more = {});

/// A duration in at most two units, rounded up: `0`, `430ns`, `1.5ms`, `3.2s`, `2m5s`, `3h10m`,
/// `4d2h`; 2^64-1 is `never`.
std::string duration_text(std::uint64_t ns);

/// A share of 1000 as percent with one place: `12.3 %`.
std::string permille_text(std::uint64_t permille);

/// `10/s`, `100/m`, `1000/15m`: tokens per period.
std::string rate_text(std::uint64_t count, std::uint64_t period_ns);

/// `64 KiB`, `8.0 MiB`.
std::string size_text(std::uint64_t bytes);

/// A moment of the calendar, seconds since 1970: `2030-01-01T00:00:00Z`.
std::string moment_text(std::uint64_t unix_s);

/// The same from milliseconds, with them: `2030-01-01T00:00:00.123Z`.
std::string moment_ms_text(std::uint64_t unix_ms);

/// 16 hex digits.
std::string hash_text(std::uint64_t hash);

}  // namespace cutwater::ctl
