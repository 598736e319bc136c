// SPDX-License-Identifier: Apache-2.0
#include "log.hpp"

#include <cstdio>
#include <mutex>

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>

#include "log_writer.hpp"

namespace cutwater::server {

namespace {

spdlog::level::level_enum to_spdlog(config::LogLevel level) noexcept {
  switch (level) {
    case config::LogLevel::Trace: return spdlog::level::trace;
    case config::LogLevel::Debug: return spdlog::level::debug;
    case config::LogLevel::Info: return spdlog::level::info;
    case config::LogLevel::Warn: return spdlog::level::warn;
    case config::LogLevel::Error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// syslog's number of a level, as journald reads it.
char priority_of(config::LogLevel level) noexcept {
  switch (level) {
    case config::LogLevel::Error: return '3';
    case config::LogLevel::Warn: return '4';
    case config::LogLevel::Info: return '6';
    default: return '7';
  }
}

std::string pattern_of(config::LogFormat format, bool journal) {
  if (format == config::LogFormat::Json) {
    return R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","text":%v})";
  }
  return journal ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
}

/// One line, whatever the text holds.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, Log::kMaxLine - 256));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return out;
}

}  // namespace

struct Log::Front {
  std::mutex mutex;
  config::LogLevel level = config::LogLevel::Info;
  config::LogFormat format = config::LogFormat::Text;
  bool to_stderr = true;
  bool journal = false;
  spdlog::pattern_formatter formatter;
  std::string last_text;
  config::LogLevel last_level = config::LogLevel::Info;
  std::uint64_t repeats = 0;
  std::shared_ptr<LogWriter> writer;

  Front() : formatter("%v", spdlog::pattern_time_type::utc) {}

  bool prefixed() const { return journal && to_stderr; }

  void take(const config::Log& settings) {
    level = settings.level;
    format = settings.format;
    to_stderr = settings.file.empty();
    formatter.set_pattern(pattern_of(format, prefixed()));
  }

  std::string line(config::LogLevel at, std::string_view text) {
    std::string body = printable(text);
    if (format == config::LogFormat::Json) {
      body = nlohmann::json(body).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    spdlog::memory_buf_t buffer;
    const spdlog::details::log_msg message("", to_spdlog(at), body);
    formatter.format(message, buffer);
    std::string out;
    if (prefixed()) out = {'<', priority_of(at), '>'};
    out.append(buffer.data(), buffer.size());
    return out;
  }
};

Result<std::unique_ptr<Log>> Log::open(const config::Log& settings, bool journal) {
  auto writer = LogWriter::start(settings.file, {.lines = settings.queue,
                                                 .bytes = settings.queue * kMeanLine});
  if (!writer) return writer.error();
  return std::unique_ptr<Log>(new Log(settings, journal, std::move(*writer)));
}

Log::Log(const config::Log& settings, bool journal, std::shared_ptr<LogWriter> writer)
    : front_(std::make_unique<Front>()) {
  front_->journal = journal;
  front_->writer = std::move(writer);
  front_->take(settings);
}

Log::~Log() { close(std::chrono::milliseconds{100}); }

void Log::write(config::LogLevel level, std::string_view text) noexcept try {
  std::lock_guard lock(front_->mutex);
  if (level < front_->level) return;
  if (text == front_->last_text && level == front_->last_level) {
    ++front_->repeats;
    return;
  }
  emit(level, text);
  front_->last_text = text;
  front_->last_level = level;
} catch (...) {
  // Out of memory: a log line is the first thing to go without.
}

/// Caller holds the mutex.
void Log::emit(config::LogLevel level, std::string_view text) {
  if (front_->repeats > 0) {
    const auto times = std::exchange(front_->repeats, 0);
    front_->writer->push(front_->line(front_->last_level,
                                      fmt::format("the line before came {} times more", times)));
  }
  // What a full queue lost is told through the writer, in the form of the day.
  std::string mark = front_->line(config::LogLevel::Warn, "\x01");
  const auto at = mark.find('?');
  front_->writer->set_drop_line(mark.substr(0, at),
                                " log lines were dropped, the log could not take them" +
                                    mark.substr(at + 1));
  front_->writer->push(front_->line(level, text));
}

void Log::put(config::LogLevel level, fmt::string_view form, fmt::format_args args) noexcept try {
  write(level, fmt::vformat(form, args));
} catch (...) {
}

Result<void> Log::change(const config::Log& settings) {
  std::lock_guard lock(front_->mutex);
  if (auto moved = front_->writer->retarget(settings.file); !moved) return moved;
  front_->take(settings);
  return {};
}

void Log::reopen() noexcept { front_->writer->reopen(); }

void Log::flush_repeats() noexcept try {
  std::lock_guard lock(front_->mutex);
  if (front_->repeats == 0) return;
  const auto times = std::exchange(front_->repeats, 0);
  front_->writer->push(front_->line(front_->last_level,
                                    fmt::format("the line before came {} times more", times)));
} catch (...) {
}

std::uint64_t Log::dropped() const noexcept { return front_->writer->dropped(); }

bool Log::close(std::chrono::milliseconds patience) noexcept {
  flush_repeats();
  return front_->writer->stop(patience);
}

bool stderr_is_journal(const char* journal_stream) noexcept {
  if (journal_stream == nullptr) return false;
  unsigned long long device = 0, inode = 0;
  if (std::sscanf(journal_stream, "%llu:%llu", &device, &inode) != 2) return false;
  struct stat now {};
  return ::fstat(STDERR_FILENO, &now) == 0 && now.st_dev == device && now.st_ino == inode;
}

}  // namespace cutwater::server
