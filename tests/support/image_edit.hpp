// SPDX-License-Identifier: Apache-2.0
// ImageEdit: writes rules into the image in force, by hand. For tests of what decides: they want
// windows, sets, patterns and calendar edges exactly as they say, whatever a configuration or a
// publisher would make of it. One process, nobody else deciding meanwhile; every edit is followed
// by a new generation, as a publication is.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "rule/limit_settings.hpp"
#include "shm/limit/admit.hpp"
#include "shm/view.hpp"

namespace cutwater::test {

class ImageEdit {
 public:
  explicit ImageEdit(const shm::View& view) : view_(view) {}

  /// A window of a rate, or of a calendar (edges in segment time, rising).
  struct Window {
    std::uint64_t count = 0;
    std::int64_t period_ns = 0;
    std::uint64_t burst = 0;
    std::vector<std::int64_t> edges = {};
    std::uint64_t max_debt = 0;
  };

  /// Adds a limit with these windows; flags of LimitConfig besides those the windows demand.
  shm::LimitRef add_limit(std::string_view name, const std::vector<Window>& windows,
                          std::uint8_t flags = 0);
  /// Sets flags of a limit on or off.
  void set_flag(shm::LimitRef limit, std::uint8_t flag, bool on);
  void set_on_full(shm::LimitRef limit, std::uint8_t on_full);

  /// A set of windows for overrides of `limit`; or one without a bucket.
  std::uint32_t add_set(shm::LimitRef limit, const std::vector<Window>& windows);
  std::uint32_t add_set(rule::LimitKind kind);
  /// until_s: seconds of segment time; 0 = for ever.
  void add_override(shm::LimitRef limit, shm::KeyHash key, std::uint32_t set,
                    std::uint32_t until_s = 0);
  void drop_override(shm::LimitRef limit, shm::KeyHash key);
  void add_pattern(shm::LimitRef limit, std::string_view pattern, std::uint32_t set);

  /// The image is another from now on: generation + 1.
  void announce();

 private:
  std::uint16_t add_rule(const Window& window, std::uint32_t limit, std::uint8_t number);
  template <class T>
  T& at(const T& record) { return const_cast<T&>(record); }

  const shm::View& view_;
  std::uint32_t next_set_ = shm::kFirstSet, next_pattern_ = 0, next_calendar_ = 0;
};

}  // namespace cutwater::test
