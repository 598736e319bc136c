// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "src/connection.hpp"

namespace cutwater::ctl {

std::string tool_program() { return CUTWATERCTL_PROGRAM; }
std::string quickstart_program() { return CUTWATER_QUICKSTART_PROGRAM; }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ProgramRun run_tool(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {tool_program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return test::run_program(command);
}

ProgramRun run_tool_on_terminal(const std::vector<std::string>& arguments, bool no_color,
                                unsigned short columns) {
  std::vector<std::string> words = {tool_program()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int terminal = -1;
  winsize size{};
  size.ws_row = columns == 0 ? 0 : 24;
  size.ws_col = columns;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    ::unsetenv("CUTWATER_BUILD_DIR");
    no_color ? ::setenv("NO_COLOR", "1", 1) : ::unsetenv("NO_COLOR");
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ProgramRun run;
  char piece[4096];
  ssize_t got = 0;
  while ((got = ::read(terminal, piece, sizeof piece)) > 0) {  // the end is an EIO
    run.out.append(piece, static_cast<std::size_t>(got));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return run;
}

ProgramRun run_quickstart(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {quickstart_program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return test::run_program(command);
}

nlohmann::json parse(const std::string& text) {
  auto document = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << text;
  return document;
}

std::string memory_bytes(const ScratchPlace& place) {
  std::string all;
  for (const char* file : {"rules", "state", "stats"}) {
    all += test::read_file(place.memory() + "/" + file);
  }
  return all;
}

Instance::Instance(const std::string& yaml, DaemonOptions options)
    : options_(std::move(options)) {
  place_.write_config(yaml);
  start_again();
}

void Instance::start_again() {
  daemon_ = std::make_unique<DaemonProcess>(place_, options_);
  EXPECT_TRUE(daemon_->ready()) << daemon_->log();
}

ProgramRun Instance::tool(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"--address", place_.address()});
  return run_tool(arguments);
}

nlohmann::json Instance::json(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"-o", "json"});
  const ProgramRun run = tool(std::move(arguments));
  EXPECT_EQ(run.code, 0) << run.err;
  return parse(run.out);
}

Client Instance::client() const {
  auto client = Client::open(place_.address());
  EXPECT_TRUE(client.ok()) << client.error().text();
  return std::move(*client);
}

void Instance::step_by(std::int64_t ns) const {
  const auto deadline = client::Deadline::in(test::kWatchdog);
  auto link = client::Connection::connect(place_.socket(), deadline);
  ASSERT_TRUE(link.ok()) << link.error().text();
  ASSERT_TRUE(link->hello(client::hello_for("test", wire::Want::Ask), deadline).ok());
  const auto now = link->ping(1, deadline);
  ASSERT_TRUE(now.ok()) << now.error().text();
  wire::Steer message;
  message.verb = wire::kVerbClockStep;
  message.arguments.set("to_ns", now->clock_ns + static_cast<std::uint64_t>(ns));
  const auto answer = link->steer(message, deadline);
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  ASSERT_EQ(answer->code, wire::kSteerDone) << answer->text;
}

}  // namespace cutwater::ctl
