// SPDX-License-Identifier: Apache-2.0
// What a reload would change, said before it happens: every value that differs, what stands against
// it, and for each limit in words what becomes of keys in debt. Pure: two Configs in, no memory, no
// clock; how many keys in debt a limit has comes from the caller, who can look.
//
//   const Diff found = diff(running, next, reserved, [&](auto limit) { return in_debt(limit); });
//   std::cout << found.text();
//   if (!found.refused.empty()) return 4;   // needs a restart
//
// Thread safety: pure functions of their arguments; they allocate.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace cutwater::config {

/// One value that differs. A value that is not there is an empty text.
struct Change {
  std::string path;
  std::string before;
  std::string after;
  std::string before_origin;   ///< "default", "cutwater.yaml:3:5", ...; empty with `before`
  std::string after_origin;
  char reload = 'L';   ///< L: taken over by a reload, S: by a restart, C: within the reserve
};

/// One limit that keeps no other numbers than before, or is new or gone.
struct LimitChange {
  std::string name;
  std::vector<std::string> words;          ///< what happens, a sentence each
  std::optional<std::uint64_t> touched;    ///< keys in debt it concerns; none: nobody could look
};

struct Diff {
  std::vector<Change> changes;       ///< in the order of the new file, what is gone last
  std::vector<LimitChange> limits;   ///< in the order of the new file, what is gone last
  std::vector<Finding> refused;      ///< reload_errors(): with any of them, nothing is taken over
  std::uint64_t hash_before = 0;
  std::uint64_t hash_after = 0;

  bool empty() const noexcept { return changes.empty(); }
  /// For people: a line for each change, what the letters mean, the words of each limit below its
  /// name, and a last line that says whether a reload takes it over.
  std::string text() const;
};

/// Keys in debt of a limit, or nothing when that cannot be known.
using KeysInDebt = std::function<std::optional<std::uint64_t>(std::string_view limit)>;

Diff diff(const Config& running, const Config& next, const Capacity& reserved,
          const KeysInDebt& keys_in_debt = {});

/// Where a key stands at the moment of a change of one window.
struct Effect {
  std::int64_t level = 0;            ///< tokens there; below 0: in debt
  std::uint64_t first_token_ns = 0;  ///< until one is there; 0 at once. Of a calendar window: 0
  std::uint64_t edges = 0;           ///< of a calendar window: edges until one is there
};

/// Of a key that had used `used` tokens of `before`. Rounded against the key.
Effect effect_of(const rule::WindowSettings& before, const rule::WindowSettings& after,
                 rule::OnChange on_change, std::uint64_t used);

}  // namespace cutwater::config
