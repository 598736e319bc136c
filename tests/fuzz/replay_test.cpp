// SPDX-License-Identifier: Apache-2.0
// The corpus of a fuzzer without libFuzzer: with any compiler, every file of it, every beginning of
// each file, and each file with one byte changed must be taken without a crash. Finding new inputs
// is the work of the fuzzer itself (.ci/fuzz); what it found once stands in the corpus and is a
// test from then on.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

// The fuzzer's own entry, linked in.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kPrefixesMax = 2048;   // per file; longer ones are cut at even distances
constexpr int kChangesPerFile = 200;

std::vector<std::string> corpus() {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(CUTWATER_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Each input in a block of exactly its size, so that a sanitizer sees the first byte behind it.
int feed(const std::string& input) {
  const auto copy = std::make_unique<std::uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), copy.get());
  return LLVMFuzzerTestOneInput(copy.get(), input.size());
}

TEST(Corpus, EveryFileIsTaken) {
  const auto inputs = corpus();

  ASSERT_FALSE(inputs.empty()) << CUTWATER_CORPUS;
  for (const auto& input : inputs) EXPECT_EQ(feed(input), 0);
}

TEST(Corpus, EveryBeginningOfEveryFileIsTaken) {
  for (const auto& input : corpus()) {
    const std::size_t step = 1 + input.size() / kPrefixesMax;
    for (std::size_t size = 0; size < input.size(); size += step) {
      EXPECT_EQ(feed(input.substr(0, size)), 0);
    }
  }
}

TEST(Corpus, EveryFileWithOneByteChangedIsTaken) {
  std::mt19937_64 chance(20250117);   // fixed: a failure comes again

  for (auto input : corpus()) {
    if (input.empty()) continue;
    for (int n = 0; n < kChangesPerFile; ++n) {
      const std::size_t place = chance() % input.size();
      const char before = input[place];
      input[place] = static_cast<char>(chance());
      EXPECT_EQ(feed(input), 0);
      input[place] = before;
    }
  }
}

}  // namespace
