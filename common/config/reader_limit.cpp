// SPDX-License-Identifier: Apache-2.0
// The part of Reader that reads limits: what each is, and everything else it says.
#include <algorithm>
#include <tuple>

#include "config/reader.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

/// "what this limit is": the end of a contradiction.
std::string_view subject(std::string_view block) {
  if (block == kWindowBlock) return "what this window is";
  return block == kKeyBlock ? "what this key gets" : "what this limit is";
}

std::string_view missing(std::string_view block) {
  if (block == kWindowBlock) return "has no rate; write { rate: 10/s }";
  if (block == kKeyBlock) return "says nothing; write { rate: 10/s }, unlimited or banned";
  return "has no rate; write rate: 10/s";
}

/// Why there is no burst beside something that is no rate.
std::string no_burst(const Key& said) {
  switch (said.kind) {
    case Kind::Windows:
      return "'windows' have a burst each; write it inside, { rate: 10/s, burst: 20 }";
    case Kind::Calendar:
      return "a calendar window holds its count and no other burst; take it out";
    case Kind::True:
      return "there is nothing to burst beside '" + std::string(said.name) + "'; take it out";
    default: return "a spacing has a burst of 1; take it out, or write a rate";
  }
}

bool before(const Place& a, const Place& b) {
  return std::tie(a.source, a.line, a.column) < std::tie(b.source, b.line, b.column);
}

}  // namespace

void Reader::read_limits(const Child& section) {
  if (!section.again) limits_place_ = section.key;
  for (Child& limit : children(section.value, "limits", section.path)) {
    limit.again |= section.again;
    read_limit(limit);
  }
}

void Reader::read_limit(const Child& limit) {
  const std::size_t errors = errors_.size();
  claim_name("limits", limit);
  if (const Node& node = tree_.at(limit.value);
      node.kind != Node::Kind::Map && node.kind != Node::Kind::Null) {
    fail(node.place, limit.path, "a block is wanted here; write { rate: 10/s }");
    return;
  }
  rule::LimitSettings settings;
  settings.name = limit.name;
  const Record record = read_record(kLimitBlock, limit.path, {limit.key, limit.value});
  Values values;
  if (auto shape = read_shape(record, values)) {
    settings.kind = shape->kind;
    settings.windows = std::move(shape->windows);
  }
  store_rows(record, {.config = config_, .limit = &settings}, values);
  check_limit(settings, limit.path, values);
  if (errors_.size() == errors) {
    // What the rows cannot see would be refused by whoever publishes it: say so here, with a place.
    if (auto fine = rule::check(settings); !fine) {
      fail(limit.key, limit.path, fine.error().text() + "; write it within that range");
    }
  }
  if (limit.again) return;
  config_.limits.push_back(std::move(settings));
  config_.values.insert(config_.values.end(), values.begin(), values.end());
}

std::optional<Reader::Shape> Reader::read_shape(const Record& record, Values& values) {
  std::vector<Said> said;
  const Leaf* burst = nullptr;
  for (const auto& [row, leaf] : record.leaves) {
    if (!row->shape) continue;
    if (row->name == "burst") {
      burst = &leaf;
    } else {
      said.push_back({row, leaf});
    }
  }
  std::sort(said.begin(), said.end(),
            [](const Said& a, const Said& b) { return before(a.leaf.key, b.leaf.key); });
  bool good = check_said(record, said);
  Shape shape;
  for (std::size_t i = 0; i < said.size(); ++i) {
    Shape other;      // one too many: only its errors count
    Values ignored;
    const std::string path = record.path + "." + std::string(said[i].row->name);
    good &= read_said(said[i], path, i == 0 ? shape : other, i == 0 ? values : ignored);
  }
  if (!said.empty()) {
    good &= read_burst(record, burst, said.front(), shape, values);
  } else if (burst != nullptr) {
    read_value(*find_key(record.block, "burst"), record.path + ".burst", *burst);
  }
  if (!good) return std::nullopt;
  return shape;
}

bool Reader::check_said(const Record& record, const std::vector<Said>& said) {
  if (said.empty()) fail(record.key, record.path, std::string(missing(record.block)));
  for (std::size_t i = 0; i + 1 < said.size(); ++i) {
    fail(said[i].leaf.key, record.path + "." + std::string(said[i].row->name),
         "'" + std::string(said[i + 1].row->name) + "' (" + position(said[i + 1].leaf.key) +
             ") also says " + std::string(subject(record.block)) + "; keep one");
  }
  return said.size() == 1;
}

bool Reader::read_said(const Said& said, const std::string& path, Shape& shape, Values& values) {
  const Key& row = *said.row;
  if (row.kind == Kind::Windows) return read_windows(path, said.leaf, shape, values);
  rule::WindowSettings window;
  if (row.kind == Kind::Calendar) {
    if (!read_calendar(path, said.leaf, window, values)) return false;
    shape.windows.push_back(std::move(window));
    return true;
  }
  const auto value = read_value(row, path, said.leaf);
  if (!value) return false;
  shape.kind = row.says;
  row.store({.config = config_, .window = &window}, *value);
  if (shape.kind == rule::LimitKind::Bucket) shape.windows.push_back(std::move(window));
  keep(row, path, *value, &said.leaf, values);
  return true;
}

bool Reader::read_burst(const Record& record, const Leaf* leaf, const Said& first, Shape& shape,
                        Values& values) {
  const std::string path = record.path + ".burst";
  const Key* row = find_key(record.block, "burst");
  const bool rate = first.row->kind == Kind::Rate;
  if (leaf == nullptr) {
    if (!rate || shape.windows.empty()) return true;
    Parsed count;
    count.text = std::to_string(shape.windows.front().burst);
    keep(*row, path, count, nullptr, values);
    return true;
  }
  const auto value = read_value(*row, path, *leaf);
  if (!value) return false;
  if (!rate) {
    fail(leaf->key, path, no_burst(*first.row));
    return false;
  }
  if (shape.windows.empty()) return true;   // the rate had an error of its own
  row->store({.config = config_, .window = &shape.windows.front()}, *value);
  keep(*row, path, *value, leaf, values);
  return true;
}

bool Reader::read_windows(const std::string& path, const Leaf& leaf, Shape& shape,
                          Values& values) {
  const Node& node = tree_.at(leaf.value);
  constexpr std::string_view kRemedy = "; write [100/s, { rate: 10000/h, burst: 2000 }]";
  if (node.kind != Node::Kind::List) {
    fail(node.kind == Node::Kind::Null ? leaf.key : node.place, path,
         "a list of windows is wanted" + std::string(kRemedy));
    return false;
  }
  if (node.items.empty()) {
    fail(node.place, path, "an empty list" + std::string(kRemedy));
    return false;
  }
  if (node.items.size() > rule::kMaxWindows) {
    fail(node.place, path, std::to_string(node.items.size()) +
                               " windows are above the maximum of " +
                               std::to_string(rule::kMaxWindows));
    return false;
  }
  bool good = true;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    good &= read_window(path + "[" + std::to_string(i) + "]", node.items[i], shape, values);
  }
  return good;
}

bool Reader::read_window(const std::string& path, NodeIndex item, Shape& shape, Values& values) {
  static constexpr std::string_view kRateParts[] = {"count", "requests", "requests-per-unit",
                                                    "per", "unit"};
  const Node& node = tree_.at(item);
  const Leaf leaf{node.place, item};
  const auto is_rate_part = [&](const Entry& entry) {
    const std::string name = kebab(tree_.at(entry.key).text);
    return std::find(std::begin(kRateParts), std::end(kRateParts), name) != std::end(kRateParts);
  };
  const bool rate = node.kind == Node::Kind::Scalar ||
                    std::any_of(node.entries.begin(), node.entries.end(), is_rate_part);
  if (!rate && node.kind != Node::Kind::Map) {
    fail(node.place, path, "a window is wanted here; write 100/s, { rate: 10000/h, burst: 2000 }, "
                           "{ spacing: 2s } or { calendar: { count: 500, per: day } }");
    return false;
  }
  Shape one;
  if (!rate) {
    auto read = read_shape(read_record(kWindowBlock, path, leaf), values);
    if (!read) return false;
    one = std::move(*read);
  } else {
    const Key* row = find_key(kWindowBlock, "rate");
    const auto value = read_value(*row, path, leaf);
    if (!value) return false;
    one.windows.emplace_back();
    row->store({.config = config_, .window = &one.windows.front()}, *value);
    keep(*row, path + ".rate", *value, &leaf, values);
    const Record record{.block = kWindowBlock, .path = path, .key = node.place, .leaves = {}};
    read_burst(record, nullptr, {row, leaf}, one, values);
  }
  shape.windows.push_back(std::move(one.windows.front()));
  return true;
}

bool Reader::read_calendar(const std::string& path, const Leaf& leaf,
                           rule::WindowSettings& window, Values& values) {
  const Node& node = tree_.at(leaf.value);
  constexpr std::string_view kRemedy = "write { count: 500, per: month, zone: Europe/Berlin }";
  if (node.kind != Node::Kind::Map) {
    fail(node.kind == Node::Kind::Null ? leaf.key : node.place, path,
         "a block is wanted here; " + std::string(kRemedy));
    return false;
  }
  window.kind = rule::WindowKind::Calendar;
  const std::size_t errors = errors_.size();
  const Record record = read_record(kCalendarBlock, path, leaf);
  for (const Key& key : keys_of(kCalendarBlock)) {
    if (key.fallback.empty() && !record.leaves.contains(&key)) {
      fail(node.place, path, "has no " + std::string(key.name) + "; " + std::string(kRemedy));
    }
  }
  store_rows(record, {.config = config_, .window = &window}, values);
  return errors_.size() == errors;
}

}  // namespace cutwater::config
