// SPDX-License-Identifier: Apache-2.0
// EntryNames: which entry of an image has a name, and which one a new name gets.
//
// The publishers of breakers and of bulkheads fill one at the beginning of each apply() from the
// image at hand, in one pass, and ask it for each name instead of looking through all entries: a
// pattern of 10 000 instances is 10 000 names over 10 000 entries.
// Which free entry: the name's own of before, since nobody could be confused by it; else one that
// no name ever had; else the first of those that may be reused.
// Thread safety: one thread. Private memory; allocates.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cutwater::shm {

class EntryNames {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Who may have an entry that is in no use.
  enum class Free : std::uint8_t {
    OwnerOnly,   ///< the name that had it: it rests, or its calls are still in
    Reusable,    ///< any name; others had it
    Fresh,       ///< any name; none had it
  };

  /// Forgets everything; `entries` of them, all free for nobody until told.
  void begin(std::uint32_t entries);
  void add_used(std::uint32_t index, std::string_view name);
  /// `name`: of the last one that had it, empty: unknown. Of two with one name the first counts.
  void add_free(std::uint32_t index, std::string_view name, Free free);

  /// The entry that has the name; kNone: none.
  std::uint32_t index_of(std::string_view name) const;
  /// The entry the name gets; kNone: none is left. take() makes it used.
  std::uint32_t free_for(std::string_view name) const;
  void take(std::uint32_t index, std::string_view name);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept {
      return std::hash<std::string_view>{}(name);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> used_, gone_;
  std::set<std::uint32_t> fresh_, reusable_;
  std::vector<bool> free_;           ///< by index
};

}  // namespace cutwater::shm
