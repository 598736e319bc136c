// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ctl/completion.hpp"

namespace cutwater::ctl {
namespace {

CommandTree tool() {
  CommandTree get{"get", "One: its figures", {}, {{Wanted::LimitName, {}}}, {}};
  CommandTree shadow{"shadow",
                     "Only count",
                     {},
                     {{Wanted::LimitName, {}}, {Wanted::Words, {"on", "off"}}},
                     {}};
  CommandTree limit{"limit", "Limits", {}, {}, {get, shadow}};
  CommandTree open{"force-open", "Refuse", {}, {{Wanted::BreakerName, {}}}, {}};
  CommandTree breaker{"breaker", "Breakers", {}, {}, {open}};
  CommandTree check{"check", "Every error of a user's file", {}, {{Wanted::File, {}}}, {}};
  return {"tool",
          "",
          {{{"-o", "--output"}, "form", Wanted::Words, {"table", "json"}}},
          {},
          {limit, breaker, check}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Completion, OfBashKnowsCommandsWordsFilesAndNames) {
  const std::string script = completion_script(tool(), Shell::Bash);

  EXPECT_TRUE(has(script, "/limit|/limit/get|/limit/shadow|/breaker|/breaker/force-open|/check) "
                          "at=$at/$word; n=0 ;;")) << script;
  EXPECT_TRUE(has(script, "-o|--output) COMPREPLY=($(compgen -W 'table json'")) << script;
  EXPECT_TRUE(has(script, "words='limit breaker check -o --output'")) << script;
  EXPECT_TRUE(has(script, "tool --timeout 200ms limit list 2>/dev/null")) << script;
  EXPECT_TRUE(has(script, "tool --timeout 200ms breaker list 2>/dev/null")) << script;
  EXPECT_TRUE(has(script, "[[ $n == 1 ]] && words+=' on off'")) << script;
  EXPECT_TRUE(has(script, "-o|--output) skip=1; continue ;;")) << script;
  EXPECT_TRUE(has(script, "complete -o filenames -F _tool tool")) << script;
}

TEST(Completion, OfZshQuotesWhatIsSpecialThere) {
  const std::string script = completion_script(tool(), Shell::Zsh);

  EXPECT_TRUE(has(script, "'get:One\\: its figures'")) << script;
  EXPECT_TRUE(has(script, "'check:Every error of a user'\\''s file'")) << script;
  EXPECT_TRUE(has(script, "[[ $n == 1 ]] && compadd -- on off")) << script;
  EXPECT_FALSE(has(script, "local path")) << "in zsh that is PATH";
  EXPECT_EQ(script.rfind("#compdef tool\n", 0), 0U);
}

TEST(Completion, OfFishQuotesWhatIsSpecialThere) {
  const std::string script = completion_script(tool(), Shell::Fish);

  EXPECT_TRUE(has(script, "-a check -d 'Every error of a user\\'s file'")) << script;
  EXPECT_TRUE(has(script, "-n '__tool_at \\'/limit\\'' -a get")) << script;
  EXPECT_TRUE(has(script, "-n '__tool_at \\'/limit/shadow\\' 1' -a 'on off'")) << script;
  EXPECT_TRUE(has(script, "-s o -l output -x -a 'table json'")) << script;
}

TEST(Completion, ReadsPlaceholdersOfTheHelp) {
  EXPECT_EQ(wanted_by("FILE", Wanted::Anything), Wanted::File);
  EXPECT_EQ(wanted_by("NAME", Wanted::BreakerName), Wanted::BreakerName);
  EXPECT_EQ(wanted_by("KEY", Wanted::LimitName), Wanted::Anything);
  EXPECT_EQ(names_of_group("limit"), Wanted::LimitName);
  EXPECT_EQ(names_of_group("bulkhead"), Wanted::BulkheadName);
  EXPECT_EQ(names_of_group("config"), Wanted::Anything);
  EXPECT_EQ(words_of("table|json"), (std::vector<std::string>{"table", "json"}));
  EXPECT_EQ(words_of("on|off:{on,off}"), (std::vector<std::string>{"on", "off"}));
  EXPECT_TRUE(words_of("TEXT").empty());
  EXPECT_FALSE(shell_of("tcsh").has_value());
}

}  // namespace
}  // namespace cutwater::ctl
