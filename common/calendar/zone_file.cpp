// SPDX-License-Identifier: Apache-2.0
// A zone from a TZif file (RFC 8536): a block of 32-bit times that is skipped, the same in 64 bits,
// and the footer. The bytes are not trusted: every count is bounded and every index checked.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.hpp"
#include "calendar/zone.hpp"

namespace cutwater::calendar {
namespace {

constexpr std::size_t kHeaderBytes = 44;
constexpr std::size_t kMaxNames = 4096;    // of zone_names()
constexpr int kMaxNameLevels = 3;          // America/Argentina/Salta

std::string quoted(std::string_view name) {
  std::string out = "'";
  for (const char c : name.substr(0, kMaxZoneName)) out += c >= ' ' && c < 0x7f ? c : '?';
  return out + (name.size() > kMaxZoneName ? "...'" : "'");
}

Error damaged(std::string_view name, std::string_view what) {
  return Error(Errc::Damaged, "the file of time zone " + quoted(name) + " " + std::string(what) +
                                  "; reinstall the package tzdata");
}

/// Big-endian two's complement.
std::int64_t number_at(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = static_cast<unsigned char>(bytes[at]) & 0x80 ? ~std::uint64_t{0} : 0;
  for (std::size_t i = 0; i < width; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return static_cast<std::int64_t>(value);
}

struct Counts {
  std::size_t utc, standard, leaps, times, types, chars;

  /// Bytes of the data behind the header, with times of `width` bytes.
  std::size_t bytes(std::size_t width) const {
    return times * (width + 1) + types * 6 + chars + leaps * (width + 4) + standard + utc;
  }
};

std::optional<Counts> counts_at(std::string_view bytes, std::size_t at) {
  if (bytes.size() < at + kHeaderBytes || bytes.substr(at, 4) != "TZif") return std::nullopt;
  std::size_t fields[6];
  for (std::size_t i = 0; i < 6; ++i) {
    const std::int64_t value = number_at(bytes, at + 20 + 4 * i, 4);
    if (value < 0 || value > static_cast<std::int64_t>(kMaxZoneFileBytes)) return std::nullopt;
    fields[i] = static_cast<std::size_t>(value);
  }
  return Counts{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]};
}

/// A descriptor that closes itself.
struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

bool is_directory(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::string directory_of(const std::string& wanted) {
  if (!wanted.empty()) return is_directory(wanted) ? wanted : std::string();
  for (const char* const directory : kZoneDirectories) {
    if (is_directory(directory)) return directory;
  }
  return {};
}

void collect_names(const std::string& directory, const std::string& prefix, int level,
                   std::vector<std::string>& names) {
  DIR* const opened = opendir(directory.c_str());
  if (opened == nullptr) return;
  while (const dirent* entry = readdir(opened)) {
    const std::string name = prefix + entry->d_name;
    if (names.size() >= kMaxNames) break;
    if (!is_zone_name(name) || name == "posix" || name == "right") continue;
    const std::string path = directory + "/" + entry->d_name;
    if (is_directory(path)) {
      if (level < kMaxNameLevels) collect_names(path, name + "/", level + 1, names);
    } else {
      names.push_back(name);
    }
  }
  closedir(opened);
}

/// "there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?"
Error no_such(std::string_view name, const std::string& directory) {
  std::string text = "there is no time zone " + quoted(name) + " on this host; ";
  if (directory.empty()) return Error(Errc::InvalidArgument, text + "install the package tzdata");
  const std::vector<std::string> names = zone_names(directory);
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string_view near = nearest(name, views);
  if (4 * edit_distance(name, near) > name.size()) near = {};   // Europe is no misspelt Eire
  // "berlin" is no misspelling either, but a zone ends so.
  const auto ends = [&](std::string_view known) {
    return edit_distance(known.substr(known.rfind('/') + 1), name) == 0;
  };
  if (const auto at = std::find_if(views.begin(), views.end(), ends); at != views.end()) near = *at;
  if (!near.empty()) {
    return Error(Errc::InvalidArgument, text + "did you mean '" + std::string(near) + "'?");
  }
  return Error(Errc::InvalidArgument, text + "write a name such as Europe/Berlin, or UTC (" +
                                          directory + " has them all, from the package tzdata)");
}

}  // namespace

/// Fills a Zone; Zone's only friend.
class ZoneFile {
 public:
  static Result<Zone> read(std::string_view name, std::string_view bytes) {
    const auto first = counts_at(bytes, 0);
    if (!first) return damaged(name, "is no TZif file");
    if (bytes[4] < '2') return damaged(name, "is of version 1, with 32-bit times only");
    const std::size_t second = kHeaderBytes + first->bytes(4);
    const auto counts = counts_at(bytes, second);
    if (!counts) return damaged(name, "has no 64-bit times");
    const std::size_t data = second + kHeaderBytes;
    if (bytes.size() < data + counts->bytes(8)) return damaged(name, "is cut off");
    if (counts->types == 0 || counts->types > 256 || counts->times > kMaxTransitions) {
      return damaged(name, "has counts out of range");
    }
    if (counts->leaps != 0) {
      return Error(Errc::Damaged, "time zone " + quoted(name) +
                                      " counts leap seconds; take the one without 'right/'");
    }
    Zone zone;
    zone.name_ = std::string(name);
    if (!read_changes(bytes, data, *counts, zone)) return damaged(name, "has times out of order");
    if (!read_footer(bytes.substr(data + counts->bytes(8)), zone)) {
      return damaged(name, "ends with a rule that cannot be read");
    }
    return zone;
  }

 private:
  static bool read_changes(std::string_view bytes, std::size_t data, const Counts& counts,
                           Zone& zone) {
    const std::size_t kinds = data + counts.times * 8;
    const std::size_t types = kinds + counts.times;
    std::vector<std::int32_t> offsets;
    for (std::size_t i = 0; i < counts.types; ++i) {
      offsets.push_back(static_cast<std::int32_t>(number_at(bytes, types + 6 * i, 4)));
      if (offsets.back() < -kMaxOffset || offsets.back() > kMaxOffset) return false;
    }
    zone.first_offset_ = offsets.front();
    for (std::size_t i = 0; i < counts.times; ++i) {
      const std::int64_t at = number_at(bytes, data + 8 * i, 8);
      const auto kind = static_cast<unsigned char>(bytes[kinds + i]);
      if (kind >= counts.types || (i > 0 && at <= zone.changes_.back())) return false;
      zone.changes_.push_back(at);
      zone.offsets_.push_back(offsets[kind]);
    }
    return true;
  }

  /// "\nCET-1CEST,M3.5.0,M10.5.0/3\n", or "\n\n": no rule.
  static bool read_footer(std::string_view footer, Zone& zone) {
    if (!footer.starts_with('\n')) return false;
    footer.remove_prefix(1);
    const std::size_t end = footer.find('\n');
    if (end == std::string_view::npos) return false;
    if (end == 0) return true;
    zone.rule_ = parse_rule(footer.substr(0, end));
    return zone.rule_.has_value();
  }
};

Result<Zone> Zone::parse(std::string_view name, std::string_view bytes) {
  return ZoneFile::read(name, bytes);
}

Result<Zone> Zone::load(std::string_view name, const std::string& directory) {
  if (name.empty() || name == "UTC") return Zone();
  if (!is_zone_name(name)) {
    return Error(Errc::InvalidArgument, quoted(name) +
                                            " is no time zone; write a name such as "
                                            "Europe/Berlin, or UTC");
  }
  const std::string root = directory_of(directory);
  if (root.empty()) return no_such(name, root);
  const std::string path = root + "/" + std::string(name);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat found {};
  if (file.number < 0 || fstat(file.number, &found) != 0 || !S_ISREG(found.st_mode)) {
    if (file.number < 0 && errno == EACCES) {
      return Error(Errc::System, "cannot read " + path + ": " + std::strerror(errno) +
                                     "; zone files must be readable by everybody");
    }
    return no_such(name, root);
  }
  std::string bytes(kMaxZoneFileBytes + 1, '\0');
  std::size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t got = ::read(file.number, bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Error(Errc::System, "cannot read " + path + ": " + std::strerror(errno) +
                                     "; reinstall the package tzdata");
    }
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMaxZoneFileBytes) return damaged(name, "is larger than 65536 bytes");
  bytes.resize(length);
  return parse(name, bytes);
}

std::vector<std::string> zone_names(const std::string& directory) {
  std::vector<std::string> names;
  const std::string root = directory_of(directory);
  if (!root.empty()) collect_names(root, "", 1, names);
  names.emplace_back("UTC");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace cutwater::calendar
