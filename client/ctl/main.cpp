// SPDX-License-Identifier: Apache-2.0
// cutwaterctl: reads its command line (ctl/command_line.hpp), runs the command it names
// (ctl/commands.hpp), and says what is wrong with a line that names none.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cutwater/version.hpp>

#include "base/standard_descriptors.hpp"
#include "config/duration.hpp"
#include "ctl/command_line.hpp"
#include "ctl/print.hpp"
#include "ctl/text.hpp"
#include "ctl/usage_text.hpp"

namespace {

using namespace cutwater;
using ctl::Exit;

/// Help is as wide as that, whatever it is printed on.
constexpr std::size_t kHelpColumns = 80;
constexpr const char* kAbout =
    "Looks at and steers a cutwater instance.\n"
    "Asks the daemon with a deadline; when it does not answer, root and the daemon's user read the "
    "memory itself.\n";
constexpr const char* kFooter =
    "Exit codes:  0 ok or allowed, 1 refused or open, 2 usage, 3 cannot connect, 4 invalid config "
    "or damage found, 5 not permitted, 6 no such name, 7 output not written.\n"
    "Keys:  their bytes, or as lists show them: hex:616c for bytes that cannot be typed, "
    "'[acme, alice]' for a key of parts (exact: in front of a key that looks so); -- in front of a "
    "key that begins with a dash, behind all options.";

int usage(const ctl::Settings& settings, const std::string& text) {
  return static_cast<int>(ctl::complain(settings, "usage", text, Exit::Usage));
}

/// Whether a line that could not be read asks for JSON all the same: a script reads one stream.
bool wants_json(int argc, char** argv) {
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--") break;
    if (word == "-o" || word == "--output") json = next == "json";
    if (word == "-ojson" || word == "-o=json" || word == "--output=json") json = true;
  }
  return json;
}

/// Help and version end well; everything else is a line that cannot be carried out.
int explain_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::ostringstream out, err;
  if (app.exit(error, out, err) == 0) {
    return static_cast<int>(ctl::print_text(ctl::wrap_text(out.str(), kHelpColumns)));
  }
  ctl::Settings settings;
  settings.json = wants_json(argc, argv);
  return usage(settings, ctl::usage_text(app, error, {argv + 1, argv + argc}));
}

/// 0: standard output is no terminal, or one that does not say.
std::size_t terminal_columns() {
  winsize size{};
  return ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
             ? size.ws_col
             : 0;
}

int run(int argc, char** argv) {
  ctl::Line line;
  CLI::App app{kAbout, "cutwaterctl"};
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("cutwaterctl ") + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough();
  ctl::add_globals(app, line);
  ctl::add_commands(app, line);
  // `help limit peek` is what others call `limit peek --help`.
  static char help[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(help);
  }
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return explain_usage(app, error, argc, argv);
  }
  line.settings.json = line.output == "json";
  const auto timeout = config::parse_duration(line.timeout);
  if (!timeout || *timeout <= 0) {
    return usage(line.settings, "--timeout: " + (timeout ? std::string("must be above 0")
                                                         : timeout.error().text()));
  }
  const auto hold = config::parse_duration(line.hold);
  if (!hold || (*hold == 0 && line.hold != ctl::kUntilUndone)) {
    return usage(line.settings,
                 "--for: " + (hold ? std::string("0 is no time; leave it out for 'until undone'")
                                   : hold.error().text()));
  }
  constexpr std::uint64_t kSecondNs = 1'000'000'000;
  if (*hold % kSecondNs != 0) {
    const std::uint64_t longer = (*hold / kSecondNs + 1) * kSecondNs;
    return usage(line.settings, "--for: an act by hand ends at a whole second; write " +
                                    config::format_duration(longer));
  }
  line.act.for_ns = *hold;
  line.settings.timeout = Nanos{static_cast<std::int64_t>(*timeout)};
  line.settings.colour =
      !line.settings.json && ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  line.settings.columns = terminal_columns();
  return static_cast<int>(line.chosen());
}

}  // namespace

int main(int argc, char** argv) {
  cutwater::open_standard_descriptors(cutwater::ClosedOutput::Refused);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of writing, not a death
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // of libraries: out of memory
    cutwater::ctl::note(std::string("gave up: ") + error.what());
    return static_cast<int>(Exit::NoConnection);
  }
}
