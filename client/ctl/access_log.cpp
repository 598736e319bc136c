// SPDX-License-Identifier: Apache-2.0
#include "ctl/access_log.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cutwater/units.hpp>

namespace cutwater::ctl {
namespace {

constexpr std::size_t kStampLength = 26;  // 17/May/2015:10:05:03 +0000
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr int kFirstYear = 1970, kLastYear = 2200;  // inside 64 bits of ns

/// `count` digits at `at` as a number, or -1.
int digits(std::string_view text, std::size_t at, std::size_t count) noexcept {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

int month_of(std::string_view name) noexcept {
  constexpr std::string_view kNames = "JanFebMarAprMayJunJulAugSepOctNovDec";
  for (std::size_t i = 0; i < kNames.size(); i += 3) {
    if (kNames.substr(i, 3) == name) return static_cast<int>(i / 3) + 1;
  }
  return 0;
}

int days_in(int year, int month) noexcept {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

/// Days from 1970-01-01, proleptic Gregorian.
std::int64_t days_from_epoch(int year, int month, int day) noexcept {
  std::int64_t days = day - 1;
  for (int m = 1; m < month; ++m) days += days_in(year, m);
  const std::int64_t before = year - 1;
  days += before * 365 + before / 4 - before / 100 + before / 400;
  return days - 719'162;  // days from year 1 to 1970
}

/// `17/May/2015:10:05:03 +0000`, exactly kStampLength bytes. A leap second counts as the second
/// after it.
bool parse_stamp(std::string_view text, std::int64_t& out) noexcept {
  if (text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' || text[17] != ':')
    return false;
  if (text[20] != ' ' || (text[21] != '+' && text[21] != '-')) return false;
  const int day = digits(text, 0, 2), month = month_of(text.substr(3, 3)),
            year = digits(text, 7, 4);
  const int hour = digits(text, 12, 2), minute = digits(text, 15, 2), second = digits(text, 18, 2);
  const int zone_hours = digits(text, 22, 2), zone_minutes = digits(text, 24, 2);
  if (month == 0 || year < kFirstYear || year > kLastYear || day < 1 || day > days_in(year, month))
    return false;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return false;
  if (zone_hours < 0 || zone_hours > 14 || zone_minutes < 0 || zone_minutes > 59) return false;
  const std::int64_t zone = (zone_hours * 60 + zone_minutes) * 60 * (text[21] == '-' ? -1 : 1);
  const std::int64_t seconds =
      days_from_epoch(year, month, day) * 86'400 + hour * 3600 + minute * 60 + second - zone;
  if (seconds < 0) return false;
  out = seconds * kNanosPerSecond;
  return true;
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// `"request" 200 ...`: the closing quote is the first one with a status behind it, so quotes
/// inside the request, escaped or not, do no harm.
const char* check_request(std::string_view rest) noexcept {
  if (rest.substr(0, 2) != " \"") return "no quoted request behind the time";
  for (std::size_t at = rest.find('"', 2); at != std::string_view::npos;
       at = rest.find('"', at + 1)) {
    const std::string_view tail = rest.substr(at + 1);
    const bool status = tail.size() >= 4 && tail[0] == ' ' && is_digit(tail[1]) &&
                        is_digit(tail[2]) && is_digit(tail[3]) &&
                        (tail.size() == 4 || tail[4] == ' ');
    if (!status) continue;
    return tail.size() >= 6 && (is_digit(tail[5]) || tail[5] == '-') ? nullptr
                                                                     : "no size behind the status";
  }
  return "no status behind the request";
}

}  // namespace

const char* parse_log_line(std::string_view line, LogEntry& out) noexcept {
  if (line.empty()) return "empty line";
  const std::size_t blank = line.find(' ');
  if (blank == 0) return "no client in the first field";
  if (blank == std::string_view::npos) return "one field only";
  if (blank > kMaxKeyBytes) return "client longer than 4096 bytes";
  const std::size_t quote = std::min(line.find('"', blank), line.size());
  const char* fault = "no [time]";
  for (std::size_t at = line.find('[', blank); at < quote; at = line.find('[', at + 1)) {
    if (line.size() < at + kStampLength + 2 || line[at + kStampLength + 1] != ']' ||
        !parse_stamp(line.substr(at + 1, kStampLength), out.stamp_ns)) {
      fault = "time is not like [17/May/2015:10:05:03 +0000]";
      continue;
    }
    out.client = line.substr(0, blank);
    return check_request(line.substr(at + kStampLength + 2));
  }
  return fault;
}

AccessLog::AccessLog(Source source)
    : source_(std::move(source)),
      buffer_(2 * kMaxLogLine),
      failed_(std::make_shared<std::string>()) {}

Result<AccessLog> AccessLog::open(const std::string& path) {
  const int fd = path == "-" ? ::dup(0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found {};
  if (fd < 0 || ::fstat(fd, &found) != 0 || S_ISDIR(found.st_mode)) {
    const int error = fd >= 0 && S_ISDIR(found.st_mode) ? EISDIR : errno;
    if (fd >= 0) ::close(fd);
    return Error{error == EACCES ? Errc::NotPermitted : Errc::InvalidArgument,
                 path + ": " + std::strerror(error)};
  }
  const std::shared_ptr<void> closer(nullptr, [fd](void*) { ::close(fd); });
  auto failed = std::make_shared<std::string>();
  AccessLog log([fd, closer, failed, path](char* place, std::size_t size) -> std::size_t {
    for (;;) {
      const ssize_t got = ::read(fd, place, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      *failed = path + ": " + std::strerror(errno);
      return 0;
    }
  });
  log.failed_ = failed;
  if (S_ISREG(found.st_mode)) log.size_ = static_cast<std::uint64_t>(found.st_size);
  return log;
}

bool AccessLog::next(LogEntry& out) {
  std::string_view line;
  bool too_long = false;
  while (next_line(line, too_long)) {
    ++lines_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const char* reason = too_long ? "longer than 65536 bytes" : parse_log_line(line, out);
    if (reason == nullptr) return true;
    reject(reason);
  }
  return false;
}

void AccessLog::reject(const char* reason) {
  ++skipped_;
  if (faults_.size() < kShownLogFaults) faults_.push_back({lines_, reason});
}

bool AccessLog::fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t got = source_(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  at_end_ = got == 0;
  return got > 0;
}

bool AccessLog::next_line(std::string_view& line, bool& too_long) {
  too_long = false;
  std::size_t looked = 0;  // bytes of the line known to hold no end
  for (;;) {
    const char* found = static_cast<const char*>(
        std::memchr(buffer_.data() + begin_ + looked, '\n', end_ - begin_ - looked));
    if (found != nullptr) {
      line = {buffer_.data() + begin_, static_cast<std::size_t>(found - buffer_.data()) - begin_};
      begin_ += line.size() + 1;
      bytes_ += line.size() + 1;
      too_long = too_long || line.size() > kMaxLogLine;
      return true;
    }
    looked = end_ - begin_;
    if (looked > kMaxLogLine) {  // pass over what is there; only its end is still wanted
      too_long = true;
      bytes_ += looked;
      begin_ = end_ = 0;
      looked = 0;
    }
    if (fill()) continue;
    if (end_ == begin_ && !too_long) return false;
    line = {buffer_.data() + begin_, end_ - begin_};
    bytes_ += line.size();
    begin_ = end_;
    return true;
  }
}

}  // namespace cutwater::ctl
