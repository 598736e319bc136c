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

#include "config/problem.hpp"
#include "config/schema.hpp"
#include "config/tree.hpp"

namespace cutwater::config {

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
  using Leaves = std::map<const Key*, Leaf>;

  void fail(const Place& place, std::string path, std::string text);

  // The walk: blocks hold blocks and keys.
  std::vector<Child> children(NodeIndex node, std::string_view block, const std::string& path);
  void check_unknown(std::string_view written, std::string_view block, const std::string& path,
                     const Place& place);
  void read_block(const Child& block, Leaves& leaves);
  void read_static(const Leaves& leaves);
  void read_limits(const Child& section);
  void read_limit(const Child& limit);
  bool claim_limit_name(const Child& limit);

  // Values.
  std::optional<Parsed> read_value(const Key& key, const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_list(const Key& key, const std::string& path, const Leaf& leaf);
  std::optional<Parsed> read_rate_map(const std::string& path, const Leaf& leaf);
  std::optional<std::string> read_text(const std::string& path, NodeIndex scalar);
  void keep(const Key& key, const std::string& path, const Parsed& value, const Leaf* leaf,
            std::vector<Value>& values);

  // What one key says about another.
  void check_limit(const rule::LimitSettings& limit, const std::string& path,
                   const std::vector<Value>& values);
  void check_whole();

  const Tree& tree_;
  const LoadOptions& options_;
  Config config_;
  std::vector<Problem> errors_;
  std::vector<Problem> notes_;
  std::set<std::string> written_blocks_;
  std::map<std::string, Child> folded_limits_;
  Place limits_place_;
};

}  // namespace cutwater::config
