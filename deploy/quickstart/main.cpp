// SPDX-License-Identifier: Apache-2.0
// cutwater-quickstart: shows on an access log that several processes share one limit exactly, and
// how fast. Started by deploy/quickstart.sh, which starts the daemons it needs; also by itself:
//
//   cutwaterd --clock=stepped ... &     cutwater-quickstart --address unix:SOCK --limit per-client
//   cutwaterd ... &                     cutwater-quickstart --free-run --address unix:SOCK
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "ctl/access_log.hpp"
#include "ctl/text.hpp"
#include "free_run.hpp"
#include "made_log.hpp"
#include "main_job.hpp"

namespace {

using namespace cutwater;

struct Line {
  std::string address, limit = "per-client", log;
  std::uint32_t workers = 4;
  bool free_run = false;
  std::vector<std::uint32_t> processes{1, 2, 4};
  double seconds = 1;
  std::uint64_t seed = 0;
};

void add_options(CLI::App& app, Line& line) {
  const CLI::Range processes(1U, quickstart::kMaxWorkers);
  app.add_option("--address", line.address,
                 "unix:PATH of the daemon's socket; default: usual places");
  app.add_option("--limit", line.limit, "name of the limit each client is asked for");
  app.add_option("--log", line.log, "access log, Common or Combined; default: one is made");
  app.add_option("--seed", line.seed, "of the log that is made; default: another one each time");
  app.add_option("--workers", line.workers, "processes of the main job")->check(processes);
  app.add_flag("--free-run", line.free_run, "measure decisions a second instead");
  app.add_option("--processes", line.processes, "of the free run, such as 1,2,4")
      ->delimiter(',')
      ->check(processes);
  app.add_option("--seconds", line.seconds, "of each measurement")->check(CLI::Range(0.01, 60.0));
}

/// The log that was named, or a made one read like any other.
Result<ctl::AccessLog> open_log(Line& line) {
  if (!line.log.empty()) return ctl::AccessLog::open(line.log);
  if (line.seed == 0) line.seed = std::random_device{}() % 1'000'000 + 1;
  std::printf("%-10s made, --seed %llu\n", "log", static_cast<unsigned long long>(line.seed));
  auto text = std::make_shared<std::string>(quickstart::make_log({.seed = line.seed}));
  auto at = std::make_shared<std::size_t>(0);
  return ctl::AccessLog([text, at](char* place, std::size_t size) {
    const std::size_t count = text->copy(place, size, *at);
    *at += count;
    return count;
  });
}

void report(const Line& line, const quickstart::SharedLog& log) {
  const auto span = log.request(log.size() - 1).at_ns;
  std::printf("%-10s %u requests of %u clients in %s, %llu stamped out of order, %llu skipped\n",
              "read", log.size(), log.clients(),
              ctl::duration_text(static_cast<std::uint64_t>(span)).c_str(),
              static_cast<unsigned long long>(log.out_of_order()),
              static_cast<unsigned long long>(log.skipped()));
  for (const ctl::LogFault& fault : log.faults()) {
    std::printf("%-10s %s:%llu: %s\n", "skipped", line.log.c_str(),
                static_cast<unsigned long long>(fault.line), fault.reason.c_str());
  }
  if (log.left_out() > 0) {
    std::printf("%-10s %llu requests beyond the first %u\n", "left out",
                static_cast<unsigned long long>(log.left_out()), log.size());
  }
}

int run(int argc, char** argv) {
  Line line;
  CLI::App app{"Shares one limit between processes on the requests of an access log, and compares",
               "cutwater-quickstart"};
  add_options(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  auto text = open_log(line);
  auto log = text ? quickstart::SharedLog::read(*text) : text.error();
  if (!log) {
    std::fprintf(stderr, "cutwater-quickstart: %s\n", log.error().text().c_str());
    return 1;
  }
  const bool colour = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  report(line, *log);
  std::fflush(stdout);  // before a fork would copy it
  if (line.free_run) {
    return quickstart::run_free({.address = line.address,
                                 .limit = line.limit,
                                 .processes = line.processes,
                                 .seconds = line.seconds,
                                 .colour = colour},
                                *log);
  }
  return quickstart::run_main_job(
      {.address = line.address, .limit = line.limit, .workers = line.workers, .colour = colour},
      *log);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // of libraries: out of memory
    std::fprintf(stderr, "cutwater-quickstart: gave up: %s\n", error.what());
    return 1;
  }
}
