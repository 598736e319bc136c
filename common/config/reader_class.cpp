// SPDX-License-Identifier: Apache-2.0
// The part of Reader that looks at the names of classes in `record` and `ignore`. A program may
// name classes as it likes, so an unknown name is no mistake by itself; one that only looks like
// one of ours never matches anything, and the breaker would stay closed without a word.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/nearest.hpp"
#include "config/reader.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::string_view kWords[] = {"timeout", "connect",   "reset",    "dns",     "tls",
                                       "local",   "exception", "result",   "own",     "cancelled",
                                       "http-4xx", "http-5xx"};
constexpr std::string_view kGrpc[] = {
    "grpc:CANCELLED",        "grpc:UNKNOWN",           "grpc:INVALID_ARGUMENT",
    "grpc:DEADLINE_EXCEEDED", "grpc:NOT_FOUND",        "grpc:ALREADY_EXISTS",
    "grpc:PERMISSION_DENIED", "grpc:RESOURCE_EXHAUSTED", "grpc:FAILED_PRECONDITION",
    "grpc:ABORTED",          "grpc:OUT_OF_RANGE",      "grpc:UNIMPLEMENTED",
    "grpc:INTERNAL",         "grpc:UNAVAILABLE",       "grpc:DATA_LOSS",
    "grpc:UNAUTHENTICATED"};
constexpr int kHighestErrno = 133;
constexpr std::size_t kShortestNear = 6;   // letters of a word that one letter more or less is near

bool same_but_case(std::string_view a, std::string_view b) {
  return a != b && a.size() == b.size() && edit_distance(a, b) == 0;
}

/// A word of ours that this one is a slip of; empty: it is none.
std::string_view slip_of(std::string_view name, std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    if (word == name) return {};
  }
  for (const std::string_view word : words) {
    const bool near = word.size() >= kShortestNear && edit_distance(name, word) == 1;
    if (same_but_case(name, word) || near) return word;
  }
  return {};
}

bool is_http(std::string_view name) {
  const std::string_view rest = name.substr(5);
  if (rest == "4xx" || rest == "5xx") return true;
  int code = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), code);
  return error == std::errc() && end == rest.data() + rest.size() && rest.size() == 3 &&
         code >= 400 && code <= 599;
}

/// Of a family whose names are all known: what is wrong. Empty: nothing, or it is of no family.
std::string doubt_in_family(std::string_view name) {
  if (name.starts_with("http-") && !is_http(name)) {
    return "is no class: write http-400 .. http-599, http-4xx or http-5xx";
  }
  if (name.starts_with("grpc:") && std::find(std::begin(kGrpc), std::end(kGrpc), name) ==
                                       std::end(kGrpc)) {
    const std::string_view near = nearest(name, kGrpc);
    return near.empty() ? "is no status of gRPC; write one such as grpc:UNAVAILABLE"
                        : "is no status of gRPC; did you mean '" + std::string(near) + "'?";
  }
  if (!name.starts_with("errno:")) return {};
  std::vector<std::string> known;
  for (int i = 1; i <= kHighestErrno; ++i) {
    if (const char* const word = strerrorname_np(i); word != nullptr) {
      known.push_back("errno:" + std::string(word));
    }
  }
  const std::vector<std::string_view> words(known.begin(), known.end());
  if (std::find(words.begin(), words.end(), name) != words.end()) return {};
  const std::string_view near = nearest(name, words);
  return near.empty() ? "is no name of an errno; write one such as errno:EIO"
                      : "is no name of an errno; did you mean '" + std::string(near) + "'?";
}

}  // namespace

std::string Reader::doubt_of_class(std::string_view name) {
  if (std::string doubt = doubt_in_family(name); !doubt.empty()) return doubt;
  const std::string_view word = slip_of(name, kWords);
  if (word.empty()) return {};
  return "is no class; did you mean '" + std::string(word) +
         "'? A class of a program's own needs a name farther from ours";
}

void Reader::check_classes(const Block& block) {
  std::map<std::string_view, Place> recorded;
  const auto each = [&](std::string_view list, auto use) {
    for (const auto& [key, parsed] : block.rows) {
      if (key->name != list && key->same_as != list) continue;
      const Node& node = tree_.at(block.record.leaves.at(key).value);
      for (std::size_t i = 0; i < parsed.words.size() && i < node.items.size(); ++i) {
        use(parsed.words[i], tree_.at(node.items[i]).place,
            block.record.path + "." + std::string(key->name) + "[" + std::to_string(i) + "]");
      }
    }
  };
  each("record", [&](std::string_view name, const Place& place, const std::string&) {
    recorded.emplace(name, place);
  });
  each("ignore", [&](std::string_view name, const Place& place, const std::string& path) {
    const auto also = recorded.find(name);
    if (also == recorded.end()) return;
    fail(place, path, in_quotes(name) + " is recorded as well (" + position(also->second) +
                          "), and ignore would win; keep it in one list");
  });
}

void Reader::check_instances(const Block& block, const MergedRows& merged) {
  if (rule::is_pattern_name(block.name)) return;
  for (const auto& [key, from] : merged) {
    if (key->name != "max-instances" && key->name != "idle") continue;
    if (!from.base.empty()) continue;                // its base is one for patterns too
    fail(from.leaf->key, block.record.path + "." + std::string(key->name),
         "is about the instances of a pattern, and " + in_quotes(block.name) +
             " is one name; leave it out, or write a pattern such as \"" + block.name + "-*\"");
  }
}

}  // namespace cutwater::config
