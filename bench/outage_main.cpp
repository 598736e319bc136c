// SPDX-License-Identifier: Apache-2.0
// The command line of `cutwater-bench outage`; kHelp below says what there is.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "outage.hpp"

namespace cutwater::bench {
namespace {

struct Options {
  OutagePlan plan;
  bool json = false, help = false;
  std::string svg;
};

bool read_number(std::string_view text, int least, int most, int& out) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  if (number < least || number > most) return false;
  out = number;
  return true;
}

constexpr const char* kUsage =
    "usage: cutwater-bench outage [--workers N] [--timeout-ms N] [--hang-ms N] [--json] "
    "[--svg FILE]\n";

constexpr const char* kHelp =
    "What one breaker for the host saves while a dependency hangs: workers, each a process, call a "
    "small\nserver that answers, hangs, and answers again; once with a breaker in each worker and, "
    "at the same\ntime, once with the shared one of a cutwaterd. Needs cutwaterd beside it, and no "
    "network.\n\n"
    "  --workers N     2 .. 32, default 8\n"
    "  --timeout-ms N  how long a worker waits for an answer, 10 .. 1000, default 100\n"
    "  --hang-ms N     the dependency hangs for so long, 100 .. 20000, also when that is too short "
    "for\n"
    "                  breakers to open. Without it: 2500, and longer until each worker was "
    "refused\n"
    "  --json          one object instead of the table: plan {workers, timeout_ms, hang_ms,\n"
    "                  until_all_refused}; hangs_ms, recovers_ms, ends_ms since the run began; "
    "saved\n"
    "                  {calls, seconds}; own and shared {calls, time_outs, time_out_seconds, "
    "refused,\n"
    "                  openings, time_outs_to_open, protected_ms or null, back_ms, workers: for "
    "each\n"
    "                  [[at_ms, took_ms, good|timeout|refused|probing], ...]}\n"
    "  --svg FILE      also draws both timelines into FILE\n"
    "  --help          this text\n\n"
    "Exit: 0 done, 1 it could not run or write, 2 usage.\n";

int wrong(const std::string& what) {
  std::fprintf(stderr, "cutwater-bench outage: %s\n%stry cutwater-bench outage --help\n",
               what.c_str(), kUsage);
  return 2;
}

/// 0, or the exit code.
int parse(int argc, char** argv, Options& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      out.help = true;
      return 0;
    }
    if (word == "--json") {
      out.json = true;
      continue;
    }
    const bool known =
        word == "--workers" || word == "--timeout-ms" || word == "--hang-ms" || word == "--svg";
    if (!known) return wrong("unknown option " + std::string(word));
    if (++i == argc) return wrong(std::string(word) + " needs a value");
    const std::string_view value = argv[i];
    bool good = true;
    if (word == "--workers")
      good = read_number(value, 2, kMostWorkers, out.plan.workers);
    else if (word == "--timeout-ms")
      good = read_number(value, 10, 1000, out.plan.timeout_ms);
    else if (word == "--hang-ms")
      good = read_number(value, 100, 20'000, out.plan.hang_ms);
    else if (value.empty())
      good = false;
    else
      out.svg = value;
    if (word == "--hang-ms") out.plan.until_all_refused = false;
    if (!good) return wrong(std::string(word) + " cannot be '" + std::string(value) + "'");
  }
  return 0;
}

/// A file that will be written at the end; what cannot be is known before the run.
class Target {
 public:
  explicit Target(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "wx");
    is_new_ = file_ != nullptr;
    if (file_ == nullptr && errno == EEXIST) file_ = std::fopen(path.c_str(), "r+");
    if (file_ == nullptr) fault_ = std::strerror(errno);
  }
  ~Target() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    if (is_new_) std::remove(path_.c_str());
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  const std::string& fault() const { return fault_; }
  /// In place of what it held.
  bool write(const std::string& text) {
    is_new_ = false;
    const bool whole = ftruncate(fileno(file_), 0) == 0 &&
                       std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    return whole && closed;
  }

 private:
  const std::string path_;
  std::FILE* file_ = nullptr;
  bool is_new_ = false;
  std::string fault_;
};

}  // namespace

int outage_main(int argc, char** argv) {
  Options options;
  if (const int code = parse(argc, argv, options); code != 0) return code;
  if (options.help) {
    std::printf("%s%s", kUsage, kHelp);
    return 0;
  }
  Target svg(options.svg);
  if (!svg.fault().empty()) {
    std::fprintf(stderr,
                 "cutwater-bench outage: --svg %s cannot be written: %s; name a file in a folder "
                 "that is there and that you may write\n",
                 options.svg.c_str(), svg.fault().c_str());
    return 1;
  }
  Outage outage;
  if (!run_outage(options.plan, outage)) return 1;
  const std::string text = options.json ? outage_json(outage) : outage_table(outage);
  std::fputs(text.c_str(), stdout);
  if (options.svg.empty() || svg.write(outage_svg(outage))) return 0;
  std::fprintf(stderr, "cutwater-bench outage: %s could not be written: %s\n",
               options.svg.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace cutwater::bench
