// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>

#include <string>
#include <vector>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"limit"},
                                             {"limit", "get"},
                                             {"limit", "peek", "api"},
                                             {"limit", "ban", "api", "k", "--for", "0s"},
                                             {"limit", "peek", "api", "k", "--cost", "1000000001"},
                                             {"config", "check"},
                                             {"replay", "x.log"},
                                             {"status", "-o", "xml"},
                                             {"status", "--timeout", "15"},
                                             {"status", "--timeout", "0"},
                                             {"--address", "tcp:localhost:1", "nonsense"}}) {
    const ProgramRun run = run_tool(arguments);
    EXPECT_EQ(run.code, 2) << (arguments.empty() ? "" : arguments.back());
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(run.err.empty());
  }
}

TEST(CommandLine, SaysWhatIsWrongWhereAndHowItWouldBeRight) {
  const struct { std::vector<std::string> arguments; std::string text; } wrong[] = {
      {{}, "name a command; one of: status clients limit"},
      {{"bulkhead"}, "bulkhead: name a command; one of: list get explain\n"},
      {{"limt", "list"}, "unknown command 'limt'; did you mean 'limit'? One of: status"},
      {{"nope"}, "unknown command 'nope'; one of: status"},
      {{"breaker", "open", "x"}, "unknown command 'open'; did you mean 'force-open'? One of:"},
      {{"limit", "peek", "api", "k", "--csot", "1"},
       "limit peek: unknown option '--csot'; did you mean '--cost'?\nusage: "},
      {{"limit", "peek", "api", "-x"},
       "unknown option '-x'; what begins with a dash is written behind --\n"},
      {{"events", "-n", "x"}, "events: -n: 'x' is no whole number\n"},
      {{"breaker", "forceopen", "x"}, "unknown command 'forceopen'; did you mean 'force-open'?"},
      {{"breaker", "lst"}, "did you mean 'list'? One of: list get explain why force-open"},
      {{"limit", "peek", "api"},
       "limit peek: KEY is required\nusage: cutwaterctl limit peek [OPTIONS] NAME KEY; --help"},
      {{"breaker", "why", "a", "b"}, "usage: cutwaterctl breaker why [OPTIONS] [NAME];"},
      {{"journal", "undo", "x"}, "journal undo: ID: 'x' is no whole number\n"},
      {{"journal", "undo", "-1"}, "usage: cutwaterctl journal undo [OPTIONS] ID;"},
      {{"events", "-n", "-1"}, "'-1' is no whole number\n"},
      {{"limit", "credit", "a", "b", "0"}, "TOKENS: '0' is no whole number of 1 .. 1000000000"},
      {{"limit", "shadow", "a", "maybe"}, "STATE: 'maybe' is none of on, off"},
      {{"completion", "tcsh"}, "SHELL: 'tcsh' is none of bash, zsh, fish"},
      {{"replay", "x.log"}, "usage: cutwaterctl replay [OPTIONS] LOG --limit NAME;"}};
  for (const auto& one : wrong) {
    const ProgramRun run = run_tool(one.arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_TRUE(has(run.err, one.text)) << run.err;
  }
}

/// Every line of `text`, without its end.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == '\n') out.emplace_back();
    else if (c != '\r') out.back() += c;
  }
  return out;
}

TEST(CommandLine, HelpIsAWordToo) {
  EXPECT_EQ(run_tool({"help"}).out, run_tool({"--help"}).out);
  EXPECT_EQ(run_tool({"help", "limit", "peek"}).out, run_tool({"limit", "peek", "--help"}).out);
  EXPECT_EQ(run_tool({"help"}).code, 0);
}

TEST(CommandLine, AReaderThatWentAwayIsNoErrorAndAFullDiskIs) {
  ScratchPlace place;
  place.write_config("limits: { api: { rate: 0/s } }\n");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const std::string check = "exec " + tool_program() + " config check " + place.config() + " >";
  const ProgramRun gone =
      test::run_program({"/bin/bash", "-c", check + "&" + std::to_string(ends[1])});
  EXPECT_EQ(gone.code, 4) << "the verdict stays: " << gone.err;
  EXPECT_EQ(gone.err, "");
  ::close(ends[1]);
  const ProgramRun full = test::run_program({"/bin/sh", "-c", check + "/dev/full"});
  EXPECT_EQ(full.code, 7);
  EXPECT_TRUE(has(full.err, "standard output cannot be written: No space left")) << full.err;
}

TEST(CommandLine, HelpIsEightyColumnsWide) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--help"},
           {"limit", "--help"},
           {"limit", "override", "--help"},
           {"replay", "--help"}}) {
    const ProgramRun run = run_tool(arguments);
    EXPECT_EQ(run.code, 0);
    for (const std::string& line : lines_of(run.out)) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(has(run.out, "{table,json}")) << "said once";
  }
}

TEST(Terminal, SentencesAreBrokenAtItsWidthAndNotWhereAFileIsWritten) {
  Instance instance("breakers: { fraud: {} }\n");
  const std::vector<std::string> explain = {"--address", instance.place().address(), "breaker",
                                            "explain", "fraud"};

  const ProgramRun narrow = run_tool_on_terminal(explain, true, 80);
  const ProgramRun piped = run_tool(explain);

  for (const std::string& line : lines_of(narrow.out)) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_GT(lines_of(narrow.out).size(), lines_of(piped.out).size());
  EXPECT_TRUE(has(narrow.out, "\n    ")) << narrow.out;
}

TEST(CommandLine, ExplainsItself) {
  const ProgramRun help = run_tool({"--help"});
  const ProgramRun version = run_tool({"--version"});

  EXPECT_EQ(help.code, 0);
  for (const char* word : {"status", "clients", "limit", "config", "events", "verify", "replay",
                           "--address", "--memory", "--timeout", "Exit codes"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "cutwaterctl 0.1.0\n");
}

TEST(CommandLine, WhatCannotBeReadIsOneDocumentWhereJsonIsAskedFor) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"-o", "json"},
                                             {"limit", "--output=json"},
                                             {"limit", "get", "-ojson"},
                                             {"status", "--nonsense", "-o", "json"},
                                             {"breaker", "opne", "x", "--output", "json"},
                                             {"status", "--timeout", "0", "-o", "json"},
                                             {"limit", "ban", "a", "b", "--for=0s", "-ojson"},
                                             {"limit", "ban", "a", "", "-o", "json"}}) {
    const ProgramRun run = run_tool(arguments);
    EXPECT_EQ(run.code, 2) << run.err;
    const auto document = parse(run.out);
    EXPECT_EQ(document["error"]["exit"], 2);
    EXPECT_FALSE(document["error"]["text"].get<std::string>().empty());
  }
  EXPECT_EQ(run_tool({"--help", "-o", "json"}).code, 0);
}

/// What bash offers for the last of these words.
std::string completed(std::vector<std::string> words, const std::string& address) {
  std::string line = "export CUTWATER_ADDRESS='" + address + "' PATH=\"$(dirname '" +
                     tool_program() + "'):$PATH\"; source <(cutwaterctl completion bash); "
                     "COMP_WORDS=(cutwaterctl";
  for (const std::string& word : words) line += " '" + word + "'";
  line += "); COMP_CWORD=" + std::to_string(words.size()) + "; _cutwaterctl; echo ${COMPREPLY[@]}";
  return test::run_program({"/bin/bash", "-c", line}).out;
}

TEST(CommandLine, BashCompletesPositionalWordsAndNames) {
  Instance instance("limits: { api: { rate: 10/s } }\nbreakers: { fraud: {}, stock: {} }\n");
  const std::string at = instance.place().address();

  EXPECT_EQ(completed({"brea"}, at), "breaker\n");
  EXPECT_EQ(completed({"breaker", "force-open", "f"}, at), "fraud\n");
  EXPECT_EQ(completed({"limit", "shadow", "a"}, at), "api\n");
  EXPECT_EQ(completed({"limit", "shadow", "api", "o"}, at), "on off\n");
  EXPECT_EQ(completed({"limit", "shadow", "--for", "1h", "api", "of"}, at), "off\n");
  EXPECT_EQ(completed({"-o", "json", "completion", "z"}, at), "zsh\n");
  EXPECT_EQ(completed({"breaker", "get", "stock", "s"}, at), "\n") << "there is one name only";
}

TEST(CommandLine, AKeyMayBeginWithADash) {
  Instance instance("limits: { api: { rate: 10/s, show-keys: shown } }\n");

  EXPECT_EQ(instance.tool({"limit", "ban", "api", "--for", "1h", "--", "-x"}).code, 0);

  EXPECT_EQ(instance.tool({"limit", "peek", "api", "--", "-x"}).code, 1);
  EXPECT_EQ(instance.tool({"limit", "peek", "--cost", "2", "api", "hex:2d78"}).code, 1);
  EXPECT_EQ(instance.json({"journal", "list"})["journal"][0]["key"], "-x");
  const ProgramRun help = run_tool({"--help"});
  EXPECT_NE(help.out.find("-- in front of a key that begins with a dash"), std::string::npos);
}

TEST(CommandLine, TakesGlobalOptionsInFrontAndBehind) {
  ScratchPlace place;
  place.write_config("limits: { api: { rate: 10/s } }\n");

  EXPECT_EQ(run_tool({"-o", "json", "config", "check", place.config()}).out,
            run_tool({"config", "check", place.config(), "-o", "json"}).out);
}

TEST(Terminal, HasColoursUnlessTheyAreNotWanted) {
  Instance instance("limits: { api: { rate: 10/s } }\n");
  const std::vector<std::string> status = {"--address", instance.place().address(), "status"};

  const ProgramRun colour = run_tool_on_terminal(status);
  const ProgramRun plain = run_tool_on_terminal(status, true);
  std::vector<std::string> json_arguments = status;
  json_arguments.insert(json_arguments.end(), {"-o", "json"});
  const ProgramRun json = run_tool_on_terminal(json_arguments);

  EXPECT_EQ(colour.code, 0);
  EXPECT_NE(colour.out.find("\x1b[32mrunning"), std::string::npos) << colour.out;
  EXPECT_EQ(plain.out.find('\x1b'), std::string::npos) << plain.out;
  EXPECT_EQ(json.out.find('\x1b'), std::string::npos) << json.out;
}

TEST(Terminal, ShowsABarWhileItReplays) {
  ScratchPlace place;
  place.write_config("limits: { api: { rate: 10/s } }\n");
  test::write_file(place.path() + "/log",
                   "a - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1\n");

  const ProgramRun run = run_tool_on_terminal(
      {"replay", place.path() + "/log", "--limit", "api", "--config", place.config()});

  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("\r[####"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("100 %\r\x1b[K"), std::string::npos) << "the bar stays";
}

}  // namespace
}  // namespace cutwater::ctl
