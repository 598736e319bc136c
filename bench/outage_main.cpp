// SPDX-License-Identifier: Apache-2.0
//   cutwater-bench outage [--workers N] [--timeout-ms N] [--hang-ms N] [--json] [--svg FILE]
//   --json      one object instead of the table
//   --svg FILE  also draws both timelines into FILE
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

#include "outage.hpp"

namespace cutwater::bench {
namespace {

struct Options {
  OutagePlan plan;
  bool json = false;
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

int wrong(std::string_view what) {
  std::fprintf(stderr,
               "cutwater-bench outage: %.*s\nusage: cutwater-bench outage [--workers 2..%d] "
               "[--timeout-ms 10..1000] [--hang-ms 100..20000] [--json] [--svg FILE]\n",
               static_cast<int>(what.size()), what.data(), kMostWorkers);
  return 2;
}

/// 0, or the exit code.
int parse(int argc, char** argv, Options& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
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
    else
      out.svg = value;
    if (!good) return wrong(std::string(word) + " cannot be " + std::string(value));
  }
  return 0;
}

}  // namespace

int outage_main(int argc, char** argv) {
  Options options;
  if (const int code = parse(argc, argv, options); code != 0) return code;
  Outage outage;
  if (!run_outage(options.plan, outage)) return 1;
  const std::string text = options.json ? outage_json(outage) : outage_table(outage);
  std::fputs(text.c_str(), stdout);
  if (options.svg.empty()) return 0;
  std::ofstream file(options.svg);
  file << outage_svg(outage);
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "cutwater-bench outage: %s cannot be written: %m\n", options.svg.c_str());
  return 1;
}

}  // namespace cutwater::bench
