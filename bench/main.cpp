// SPDX-License-Identifier: Apache-2.0
// cutwater-bench: measured figures as ratios, from one interleaved run each.
//
//   cutwater-bench [--quick] [--json] [--only ID] [--gate FACTOR]
//   --quick   within 40 s on two cores: fewer rounds, no 10M keys
//   --json    one object per figure and line: id, name, ns, cpu_ns, ratio, to
//   --only    figures whose id begins so (L1, L4, R, ...)
//   cutwater-bench outage ...    is outage_main.cpp's
//   --gate F  exit 1 when a figure misses its bound by more than the factor F (headroom for noise)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness.hpp"
#include "outage.hpp"

namespace {

using cutwater::bench::Figure;
using cutwater::bench::Plan;

struct Options {
  Plan plan;
  bool json = false;
  std::string only;
  double gate = 0;
};

int usage(const std::string& word) {
  std::fprintf(
      stderr,
      "cutwater-bench: %s\nusage: cutwater-bench [--quick] [--json] [--only ID] [--gate FACTOR]\n"
      "       cutwater-bench outage [--workers N] [--timeout-ms N] [--hang-ms N] [--json] "
      "[--svg FILE]\n",
      word.c_str());
  return 2;
}

int help() {
  std::fputs(
      "usage: cutwater-bench [--quick] [--json] [--only ID] [--gate FACTOR]\n"
      "  --quick        within 40 s on two cores: fewer rounds, no 10M keys\n"
      "  --json         one object per figure and line: id, name, ns, cpu_ns, ratio, to\n"
      "  --only ID      figures whose id begins so: L1 .. L9, M1, R1, R3\n"
      "  --gate FACTOR  exit 1 when a figure misses its bound by more than that factor\n"
      "usage: cutwater-bench outage ...    what a shared breaker saves; see outage --help\n",
      stdout);
  return 0;
}

/// What is wrong with the line; empty: nothing.
std::string parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") options.plan.quick = true;
    else if (word == "--json") options.json = true;
    else if (word == "--only" && i + 1 < argc) options.only = argv[++i];
    else if (word == "--gate" && i + 1 < argc) options.gate = std::atof(argv[++i]);
    else if (word == "--only" || word == "--gate") return word + ": a value is missing";
    else return "unknown option '" + word + "'";
  }
  return options.gate == 0 || options.gate >= 1 ? "" : "--gate: a factor of 1 or more";
}

void print_json(const Figure& f) {
  std::printf(
      "{\"id\":\"%s\",\"name\":\"%s\",\"ns\":%.2f,\"cpu_ns\":%.2f,\"ratio\":%.4f,\"to\":\"%s\"}\n",
      f.id.c_str(), f.name.c_str(), f.ns, f.cpu_ns, f.ratio, f.to.c_str());
}

void print_row(const Figure& f) {
  std::printf("%-4s %-52s", f.id.c_str(), f.name.c_str());
  if (f.cpu_ns > 0) std::printf(" %9.1f ns", f.cpu_ns);
  else std::printf(" %12s", "");
  if (f.must > 0) std::printf("  %8.2f  (must %s %g)", f.ratio, f.at_least ? ">=" : "<=", f.must);
  else if (f.ratio > 0) std::printf("  %8.2f", f.ratio);
  if (!f.to.empty()) std::printf("  of %s", f.to.c_str());
  std::printf("\n");
}

bool within(const Figure& f, double factor) {
  const double bound = f.gate > 0 ? f.gate : f.must;
  if (bound == 0) return true;
  return f.at_least ? f.ratio * factor >= bound : f.ratio <= bound * factor;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "outage") == 0) {
    return cutwater::bench::outage_main(argc - 1, argv + 1);
  }
  if (argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    return help();
  }
  Options options;
  const std::string wrong = parse(argc, argv, options);
  if (!wrong.empty()) return usage(wrong);
  using Group = std::vector<Figure> (*)(const Plan&);
  const struct { const char* ids; Group run; } groups[] = {
      {"L1 L2 L3", cutwater::bench::limit_figures},
      {"L4 L9", cutwater::bench::table_figures},
      {"L5", cutwater::bench::contention_figures},
      {"L8 M1", cutwater::bench::resource_figures},
      {"L6 L7 M1", cutwater::bench::breaker_figures},
      {"R1 R3", cutwater::bench::round_trip_figures},
  };
  int missed = 0, shown = 0;
  for (const auto& group : groups) {
    if (!options.only.empty() &&
        std::strstr(group.ids, options.only.substr(0, 2).c_str()) == nullptr)
      continue;
    if (!options.json) std::fprintf(stderr, "measuring %s ...\n", group.ids);
    for (const Figure& f : group.run(options.plan)) {
      if (!options.only.empty() && f.id.rfind(options.only, 0) != 0) continue;
      options.json ? print_json(f) : print_row(f);
      std::fflush(stdout);
      ++shown;
      if (options.gate > 0 && !within(f, options.gate)) {
        ++missed;
        std::fprintf(stderr, "missed: %s %s: %.2f, must be %s %g\n", f.id.c_str(), f.name.c_str(),
                     f.ratio, f.at_least ? ">=" : "<=", f.must);
      }
    }
  }
  if (shown == 0) return usage("no figure has that id");
  return missed == 0 ? 0 : 1;
}
