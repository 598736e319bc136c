// SPDX-License-Identifier: Apache-2.0
// A time zone: what the wall clock of a place is ahead of UTC, at any moment. Read from the zone
// files of the system (TZif, version 2 or newer) together with the rule in their footer, so that
// daylight saving goes on for ever; "UTC" needs no file. Nothing here reads a clock, looks at TZ or
// keeps state between calls.
//
//   auto zone = Zone::load("Europe/Berlin");
//   if (!zone) return zone.error();          // names the zone, the nearest names and tzdata
//   zone->offset_s(1782000000);              // 7200: summer time
//
// Units: unix seconds (leap seconds are not counted) and seconds ahead of UTC. Bounds: a name of
// kMaxZoneName bytes, a file of kMaxZoneFileBytes, kMaxTransitions in it. Moments before 0 are
// answered as 0.
// Errors: load() and parse() return InvalidArgument (a name that cannot be one, no such zone),
// System (the file cannot be read) or Damaged (not TZif, or one that counts leap seconds). The text
// is `what is wrong; remedy`. Thread safety: a Zone is a value; const calls from any thread.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "calendar/zone_rule.hpp"

namespace cutwater::calendar {

inline constexpr std::size_t kMaxZoneName = 63;
inline constexpr std::size_t kMaxZoneFileBytes = 64 * 1024;
inline constexpr std::size_t kMaxTransitions = 8192;   ///< in one file
inline constexpr std::int64_t kMaxUnixSecond = 253'402'300'799;   ///< 9999-12-31T23:59:59Z
/// No zone is further ahead of UTC or behind it (RFC 8536).
inline constexpr std::int32_t kMaxOffset = 26 * 3600;
/// Where zone files are looked for, first to last; the same places as other programs use.
inline constexpr const char* kZoneDirectories[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo",
                                                   "/usr/share/lib/zoneinfo", "/etc/zoneinfo"};

/// A time during which the offset stays the same: begin <= moment < end.
struct Stretch {
  std::int64_t begin_s = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_s = std::numeric_limits<std::int64_t>::max();
  std::int32_t offset_s = 0;
};

class Zone {
 public:
  /// UTC.
  Zone() = default;

  /// The zone of that name ("" is UTC), from the first of kZoneDirectories that exists, or from
  /// `directory`.
  static Result<Zone> load(std::string_view name, const std::string& directory = {});

  /// The zone in the bytes of a TZif file; `name` is only remembered. Any bytes are safe.
  static Result<Zone> parse(std::string_view name, std::string_view bytes);

  const std::string& name() const noexcept { return name_; }

  /// Seconds that the wall clock there is ahead of UTC.
  std::int32_t offset_s(std::int64_t unix_s) const { return stretch_at(unix_s).offset_s; }

  /// The stretch that contains a moment. Going from stretch to stretch by end_s sees every change
  /// of the offset; two neighbours may have the same one.
  Stretch stretch_at(std::int64_t unix_s) const;

 private:
  friend class ZoneFile;

  std::string name_ = "UTC";
  std::vector<std::int64_t> changes_;    ///< ascending; before the first: first_offset_
  std::vector<std::int32_t> offsets_;    ///< from changes_[i] on
  std::int32_t first_offset_ = 0;
  std::optional<ZoneRule> rule_;         ///< from the last change on; none: that offset stays
};

/// A name a zone could have: letters, digits, + - _ and /, no level that is empty or begins with a
/// dot, at most kMaxZoneName bytes.
bool is_zone_name(std::string_view name) noexcept;

/// The names of the zones there are, sorted; empty when there are no zone files. At most a few
/// thousand, whatever the directory holds.
std::vector<std::string> zone_names(const std::string& directory = {});

}  // namespace cutwater::calendar
