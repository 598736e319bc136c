// SPDX-License-Identifier: Apache-2.0
// Walks a tree along the schema and fills a Config, collecting every error and note on the way:
// unknown and doubled keys, wrong types, ranges, contradictions. It never stops at the first error.
// Thread safety: one Reader belongs to one thread.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/key_text.hpp"
#include "config/problem.hpp"
#include "config/schema.hpp"
#include "config/tree.hpp"

namespace cutwater::config {

/// "9:11", or what a value from outside is called.
std::string position(const Place& place);

/// "BLOCK.NAME"; NAME at the top.
std::string joined(std::string_view block, std::string_view name);

/// CUTWATER_ form of one level of a path: upper case, each of - . : written as _.
std::string folded(std::string_view name);

class Reader {
 public:
  Reader(const Tree& tree, const LoadOptions& options) : tree_(tree), options_(options) {}

  /// Reads the whole tree. Call once.
  void read();

  Config& config() { return config_; }
  std::vector<Problem>& errors() { return errors_; }
  std::vector<Problem>& notes() { return notes_; }

 private:
  /// A key that was found, with its value.
  struct Child {
    std::string name;      ///< of the schema, or of a limit
    std::string path;      ///< as written
    Place key;
    NodeIndex value = 0;
    bool again = false;    ///< a second one of the same name: looked at for errors only
  };
  struct Leaf {
    Place key;
    NodeIndex value = 0;
  };
  /// What is written in one block: of each row the first leaf.
  struct Record {
    std::string_view block;
    std::string path;
    Place key;             ///< of the block itself
    std::map<const Key*, Leaf> leaves;
  };
  using Leaves = std::map<const Key*, Leaf>;
  using Values = std::vector<Value>;
  /// What a limit, a window or a key is.
  struct Shape {
    rule::LimitKind kind = rule::LimitKind::Bucket;
    std::vector<rule::WindowSettings> windows;
  };
  /// One block of breakers or bulkheads, its rows read and nothing put under them yet.
  struct Block {
    std::string name;
    bool again = false;
    Record record;
    std::map<const Key*, Parsed> rows;
  };
  /// A row of a block or of one of its bases; `base` names the latter.
  struct MergedRow {
    const Parsed* value = nullptr;
    const Leaf* leaf = nullptr;
    std::string base;
  };
  using MergedRows = std::map<const Key*, MergedRow>;
  /// A row that says what something is, and where it is written.
  struct Said {
    const Key* row;
    Leaf leaf;
  };

  void fail(const Place& place, std::string path, std::string text);

  // The walk: blocks hold blocks and keys.
  std::vector<Child> children(NodeIndex node, std::string_view block, const std::string& path);
  void check_unknown(std::string_view written, std::string_view block, const std::string& path,
                     const Place& place);
  void read_block(const Child& block, Leaves& leaves);
  void read_static(const Leaves& leaves);
  Record read_record(std::string_view block, const std::string& path, const Leaf& at);
  void store_rows(const Record& record, const Target& target, Values& values);
  /// False: it is no name, which is an error by now.
  bool claim_name(std::string_view section, const Child& named);

  // Limits (reader_limit.cpp) and their keys (reader_keys.cpp).
  void read_limits(const Child& section);
  void read_limit(const Child& limit);
  std::optional<Shape> read_shape(const Record& record, Values& values);
  bool check_said(const Record& record, const std::vector<Said>& said);
  bool read_said(const Said& said, const std::string& path, Shape& shape, Values& values);
  bool read_burst(const Record& record, const Leaf* leaf, const Said& first, Shape& shape,
                  Values& values);
  bool read_windows(const std::string& path, const Leaf& leaf, Shape& shape, Values& values);
  bool read_window(const std::string& path, NodeIndex item, Shape& shape, Values& values);
  bool read_calendar(const std::string& path, const Leaf& leaf, rule::WindowSettings& window,
                     Values& values);
  void read_keys(const std::string& path, const Leaf& leaf, rule::LimitSettings& limit,
                 Values& values);
  std::optional<KeyText> read_key(const std::string& path, NodeIndex node);
  void read_override(const std::string& path, const Leaf& leaf, rule::OverrideSettings& over,
                     Values& values);

  // What breakers and bulkheads share (reader_named.cpp).
  std::vector<Block> read_blocks(const Child& section, std::string_view of);
  static bool is_abstract(const Block& block);
  std::optional<MergedRows> merge(const Block& block, const std::vector<Block>& blocks);
  void keep_named(const Block& block, const MergedRows& merged, std::string_view preset,
                  const Target& target);
  void check_patterns(const std::vector<Block>& blocks);

  // Names of classes, and what only patterns have (reader_class.cpp).
  static std::string doubt_of_class(std::string_view name);
  void check_classes(const Block& block);
  void check_instances(const Block& block, const MergedRows& merged);

  // Breakers (reader_breaker.cpp) and bulkheads (reader_bulkhead.cpp).
  void read_breakers(const Child& section);
  void read_breaker(const Block& block, const std::vector<Block>& blocks);
  static rule::BreakerPreset preset_of(const MergedRows& merged);
  void check_preset(const Block& block, const MergedRows& merged, rule::BreakerPreset preset);
  void finish_window(const Block& block, const MergedRows& merged, rule::BreakerPreset preset,
                     rule::BreakerSettings& settings);
  void check_breaker(const Block& block, const MergedRows& merged,
                     const rule::BreakerSettings& settings);
  void read_bulkheads(const Child& section);
  void read_bulkhead(const Block& block, const MergedRows& merged);

  // Values (reader_value.cpp, reader_breaker_value.cpp).
  std::optional<Parsed> read_value(const Key& key, const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_left_on(const Key& key, const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_list(const Key& key, const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_rate_map(const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_decision(const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_ramp(const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_classes(const Key& key, const std::string& path, const Leaf& leaf);
  std::optional<std::string> read_text(const std::string& path, NodeIndex scalar);
  void keep(const Key& key, const std::string& path, const Parsed& value, const Leaf* leaf,
            Values& values);

  // What one key says about another (reader_check.cpp).
  void check_limit(const rule::LimitSettings& limit, const std::string& path,
                   const Values& values);
  void check_whole();
  void fit_capacity();
  void check_capacity();
  void check_overrides();
  void check_rules();
  void check_breakers();
  void check_bulkheads();
  void check_listen();

  const Tree& tree_;
  const LoadOptions& options_;
  Config config_;
  std::vector<Problem> errors_;
  std::vector<Problem> notes_;
  std::set<std::string> written_blocks_;
  std::map<std::string, Child> folded_names_;   ///< of all named blocks, in their CUTWATER_ form
  Place limits_place_;
  Place breakers_place_;
  Place bulkheads_place_;
};

}  // namespace cutwater::config
