// SPDX-License-Identifier: Apache-2.0
// Names and patterns of breakers and bulkheads (rule S22): one way to find, and to make at first
// use, for both.
//
// Whoever asks for a name that only a pattern stands for gives it one of the pattern's places,
// daemon or not, in two swaps: one of the pattern's `create` word, which orders all creations, then
// one of the place's own word. Where no place is left the pattern's own answers, counted. A name is
// taken away again by a publication only: a reload, or the daemon that makes room for others
// (shm/pattern_idle.hpp). Its callers find their reference of an incarnation that is over.
// Killed at any instruction: the next one who asks for any name of the pattern finishes it.
// Thread and process safety: any number. Every loop is bounded; running out answers that there is
// no such name and is counted as contention. Allocates nothing.
#pragma once
#include <cstdint>
#include <string_view>

#include "shm/breaker/layout.hpp"
#include "shm/counters.hpp"
#include "shm/pattern_layout.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// One entry of an image, as far as names are concerned. `place`: of a pattern or an instance;
/// nullptr where the memory says something that cannot be.
struct PatternEntry {
  bool used = false;
  std::uint8_t kind = kNamedEntry;
  std::uint32_t incarnation = 0;
  std::uint32_t pattern = kNoLine;   ///< of an instance: index of its pattern's own entry
  PatternPlace* place = nullptr;
};

/// The breakers, or the bulkheads, of one memory.
class PatternSide {
 public:
  explicit PatternSide(const View& view) noexcept : view_(view) {}
  PatternSide(const PatternSide&) = delete;
  PatternSide& operator=(const PatternSide&) = delete;

  const View& view() const noexcept { return view_; }
  virtual std::uint32_t count() const noexcept = 0;
  /// The entry of the image that `current` names; `index` < count().
  virtual PatternEntry entry(std::uint64_t current, std::uint32_t index) const noexcept = 0;
  /// What the operator wrote there, or the name that got the place; with its 0, cut to `size`.
  virtual void name(std::uint64_t current, std::uint32_t index, char* out,
                    std::size_t size) const noexcept = 0;
  /// A name found no place at this pattern.
  virtual void count_beyond(StripeHandle stripe, std::uint32_t pattern) const noexcept = 0;
  /// A number that changes whenever it is used: all that was ever counted of it.
  virtual std::uint64_t uses(std::uint32_t index) const noexcept = 0;
  /// True when nothing of it is out and it keeps nobody out: a breaker counts no call in flight
  /// and is CLOSED for everybody, or OPEN past its wait, or HALF_OPEN without a probe out; of a
  /// bulkhead nobody holds a place or waits. What a hand set never rests.
  virtual bool rests(std::uint32_t index) const noexcept = 0;

 protected:
  ~PatternSide() = default;

 private:
  const View& view_;
};

class BreakerSide final : public PatternSide {
 public:
  using PatternSide::PatternSide;
  std::uint32_t count() const noexcept override;
  PatternEntry entry(std::uint64_t current, std::uint32_t index) const noexcept override;
  void name(std::uint64_t current, std::uint32_t index, char* out,
            std::size_t size) const noexcept override;
  void count_beyond(StripeHandle stripe, std::uint32_t pattern) const noexcept override;
  std::uint64_t uses(std::uint32_t index) const noexcept override;
  bool rests(std::uint32_t index) const noexcept override;
};
class BulkheadSide final : public PatternSide {
 public:
  using PatternSide::PatternSide;
  std::uint32_t count() const noexcept override;
  PatternEntry entry(std::uint64_t current, std::uint32_t index) const noexcept override;
  void name(std::uint64_t current, std::uint32_t index, char* out,
            std::size_t size) const noexcept override;
  void count_beyond(StripeHandle stripe, std::uint32_t pattern) const noexcept override;
  std::uint64_t uses(std::uint32_t index) const noexcept override;
  bool rests(std::uint32_t index) const noexcept override;
};

struct ResolvedName {
  std::uint32_t index = kNoLine;     ///< kNoLine: no such name, and no pattern stands for it
  std::uint32_t incarnation = 0;
  bool shared = false;               ///< no place was left: the pattern's own, shared with others
};
/// Whose name it is in the rules in force, also one that a pattern made; an exact name beats those.
/// Reads only.
ResolvedName find_name(const PatternSide& side, std::string_view name) noexcept;
/// The same, and gives it a place where a pattern stands for it and has one left.
ResolvedName resolve_name(const PatternSide& side, std::string_view name,
                          StripeHandle stripe) noexcept;

/// True when a name has the place, under this incarnation.
bool is_taken(const PatternEntry& entry) noexcept;
/// Its text; empty while whoever made it has not written all of it.
void taken_name(const PatternEntry& entry, char* out, std::size_t size) noexcept;

}  // namespace cutwater::shm
