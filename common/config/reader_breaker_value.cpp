// SPDX-License-Identifier: Apache-2.0
// The part of Reader that turns a map or a list of a breaker into one value.
#include <algorithm>

#include "config/count.hpp"
#include "config/duration.hpp"
#include "config/reader.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::string_view kRampExample = "{ steps: [25, 50, 100], over: 5s }";
constexpr std::size_t kMaxClassBytes = 255;

}  // namespace

std::optional<Parsed> Reader::read_decision(const std::string& path, const Leaf& leaf) {
  const Node& node = tree_.at(leaf.value);
  const auto refuse = [&](const Place& place, const std::string& what) {
    fail(place, path, what + "write rate, all-succeed, { rate-over: M } or { successes: k }");
    return std::nullopt;
  };
  if (node.entries.size() != 1 || tree_.at(node.entries[0].key).kind != Node::Kind::Scalar) {
    return refuse(node.place, "one of its kinds is wanted; ");
  }
  const Node& key = tree_.at(node.entries[0].key);
  const std::string word = kebab(key.text);
  const bool over = word == "rate-over";
  if (!over && word != "successes") {
    return refuse(key.place, in_quotes(key.text) + " is not known here; ");
  }
  const Node& value = tree_.at(node.entries[0].value);
  if (value.kind != Node::Kind::Scalar) return refuse(key.place, "a number is wanted; ");
  const auto text = read_text(path + "." + word, node.entries[0].value);
  if (!text) return std::nullopt;
  const auto number = parse_count(*text);
  if (!number || *number == 0 || *number > rule::kMaxProbes) {
    fail(value.place, path + "." + word,
         number ? std::to_string(*number) + " is outside 1.." + std::to_string(rule::kMaxProbes)
                : number.error().text());
    return std::nullopt;
  }
  Parsed parsed;
  parsed.number = static_cast<std::uint64_t>(over ? rule::HalfOpenRule::RateOver
                                                  : rule::HalfOpenRule::Successes);
  parsed.period_ns = *number;
  parsed.text = "{ " + word + ": " + std::to_string(*number) + " }";
  return parsed;
}

std::optional<Parsed> Reader::read_ramp(const std::string& path, const Leaf& leaf) {
  const Node& node = tree_.at(leaf.value);
  Parsed parsed;
  parsed.number = static_cast<std::uint64_t>(rule::Ramp::On);
  bool good = true;
  const auto refuse = [&](const Place& place, std::string_view part, const std::string& text) {
    fail(place, path + (part.empty() ? "" : "." + std::string(part)),
         text + "; write " + std::string(kRampExample));
    good = false;
  };
  for (const Entry& entry : node.entries) {
    const Node& key = tree_.at(entry.key);
    const Node& value = tree_.at(entry.value);
    if (key.text == "over" && value.kind == Node::Kind::Scalar && parsed.period_ns == 0) {
      const auto text = read_text(path + ".over", entry.value);
      const auto ns = text ? parse_duration(*text) : Result<std::uint64_t>(std::uint64_t{0});
      if (!ns) {
        fail(value.place, path + ".over", ns.error().text());
        good = false;
      } else if (*ns < 1'000'000 || *ns > rule::kMaxRampNs) {
        refuse(value.place, "over", format_duration(*ns) + " is outside 1ms..1h");
      } else {
        parsed.period_ns = *ns;
      }
    } else if (key.text == "steps" && value.kind == Node::Kind::List && parsed.ids.empty()) {
      for (const NodeIndex item : value.items) {
        const auto step = parse_count(tree_.at(item).text);
        if (!step || *step == 0 || *step > 100) {
          refuse(tree_.at(item).place, "steps", "a step is a whole percentage, 1..100");
        } else {
          parsed.ids.push_back(static_cast<std::uint32_t>(*step));
        }
      }
      if (value.items.size() > rule::kMaxRampSteps) {
        refuse(value.place, "steps", "more than 8 steps");
      } else if (!std::is_sorted(parsed.ids.begin(), parsed.ids.end())) {
        refuse(value.place, "steps", "the steps do not rise");
      }
    } else {
      refuse(key.place, {}, in_quotes(key.text) + " is not known here, or comes twice");
    }
  }
  if (good && (parsed.ids.empty() || parsed.period_ns == 0)) {
    refuse(node.place, {}, parsed.ids.empty() ? "has no steps" : "has no over");
  }
  if (!good) return std::nullopt;
  return parsed;
}

std::optional<Parsed> Reader::read_classes(const Key& key, const std::string& path,
                                           const Leaf& leaf) {
  const Node& node = tree_.at(leaf.value);
  if (node.kind != Node::Kind::List) {
    const std::string example = node.kind == Node::Kind::Scalar ? shown(node.text) : "http-4xx";
    fail(node.place, path, "a list is wanted; write [" + example + "]");
    return std::nullopt;
  }
  if (node.items.size() > key.max) {
    fail(node.place, path, std::to_string(node.items.size()) +
                               " classes are above the maximum of " + std::to_string(key.max));
    return std::nullopt;
  }
  Parsed parsed;
  bool good = true;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = tree_.at(node.items[i]);
    const std::string item_path = path + "[" + std::to_string(i) + "]";
    std::optional<std::string> text;
    if (item.kind == Node::Kind::Scalar) text = read_text(item_path, node.items[i]);
    if (!text || text->empty() || text->size() > kMaxClassBytes) {
      fail(item.kind == Node::Kind::Null ? node.place : item.place, item_path,
           "a class is wanted here, 1..255 bytes; write one such as timeout or http-5xx");
      good = false;
    } else if (std::string doubt = doubt_of_class(*text); !doubt.empty()) {
      fail(item.place, item_path, in_quotes(*text) + " " + doubt);
      good = false;
    } else {
      parsed.words.push_back(std::move(*text));
    }
  }
  if (!good) return std::nullopt;
  return parsed;
}

}  // namespace cutwater::config
