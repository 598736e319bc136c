// SPDX-License-Identifier: Apache-2.0
// What must not compile, and what it says then: run() of a function whose result is ambiguous or
// not there yet. The compiler of this build reads one file with every such use, and one where each
// is written as the message asks for.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

namespace cutwater::test {
namespace {

struct Compiled {
  bool ok = false;
  std::string said;
};

/// Compiles `text` for its syntax only, in English.
Compiled compile(const std::string& text) {
  char name[] = "/tmp/cutwater-compile-XXXXXX";
  const int fd = mkstemp(name);
  EXPECT_GE(fd, 0);
  close(fd);
  const std::string source = std::string(name) + ".cpp";
  std::ofstream(source) << text;
  const std::string command = "LC_ALL=C " CUTWATER_CXX " -std=c++20 -fsyntax-only "
                              CUTWATER_INCLUDES " " + source + " 2>&1";
  Compiled out;
  FILE* const pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::array<char, 4096> part;
  for (std::size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    out.said.append(part.data(), n);
  }
  const int status = pclose(pipe);
  out.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  unlink(source.c_str());
  unlink(name);
  return out;
}

const std::string kHead =
    "#include <cutwater/breaker.hpp>\n"
    "#include <coroutine>\n"
    "#include <future>\n"
    "struct Task {\n"
    "  struct promise_type {\n"
    "    Task get_return_object() { return {}; }\n"
    "    std::suspend_never initial_suspend() noexcept { return {}; }\n"
    "    std::suspend_never final_suspend() noexcept { return {}; }\n"
    "    void return_void() {}\n"
    "    void unhandled_exception() {}\n"
    "  };\n"
    "};\n"
    "struct Awaitable { bool await_ready(); void await_suspend(std::coroutine_handle<>); "
    "int await_resume(); };\n"
    "void use(cutwater::Breaker& b) {\n";

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(Compile, AmbiguousAndUnfinishedResultsAreRefusedWithTheRemedy) {
  const Compiled bad = compile(kHead +
                               "  (void)b.run([] { return true; });\n"
                               "  (void)b.run([] { return std::async([] { return 1; }); });\n"
                               "  (void)b.run([]() -> Task { return {}; });\n"
                               "  (void)b.run([] { return Awaitable{}; });\n"
                               "  (void)b.run([] { return Awaitable{}; }, [](auto&) { return true; "
                               "});\n"
                               "}\n");
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(count_of(bad.said, "static assertion failed: is `false` a failure? Give run() a test"),
            1U)
      << bad.said;
  EXPECT_EQ(count_of(bad.said, "static assertion failed: this function returns a future or an "
                               "awaitable"),
            4U)
      << bad.said;
  EXPECT_NE(bad.said.find("Use async_run"), std::string::npos);
}

TEST(Compile, WhatTheMessagesAskForCompiles) {
  const Compiled good = compile(kHead +
                                "  (void)b.run([] { return true; }, [](bool v) { return v; });\n"
                                "  (void)b.run([] { return std::async([] { return 1; }).get(); "
                                "});\n"
                                "  auto call = b.try_enter();\n"
                                "  if (call) call->succeeded();\n"
                                "}\n");
  EXPECT_TRUE(good.ok) << good.said;
}

}  // namespace
}  // namespace cutwater::test
