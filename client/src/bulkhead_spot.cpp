// SPDX-License-Identifier: Apache-2.0
// Where a bulkhead is asked.
#include "src/bulkhead_record.hpp"
#include "src/core.hpp"
#include "src/no_memory.hpp"

namespace cutwater::detail {

bool BulkheadSpot::is_there(const shm::View& view, std::string_view name) noexcept {
  return shm::resolve_bulkhead(view, name, {}).ref.index != shm::kNoLine;
}

void BulkheadSpot::resolve(std::string_view name) noexcept {
  const std::uint64_t current = view->current();
  // Of a pattern it is made at first use; beyond max-instances the pattern's own answers.
  const shm::BulkheadRef found = shm::resolve_bulkhead(*view, name, row_caller().stripe).ref;
  const std::uint64_t word = std::uint64_t{found.incarnation} << 32 | found.index;
  ref.store(word, std::memory_order_relaxed);
  plain.store(found.index != shm::kNoLine, std::memory_order_relaxed);
  // release: whoever finds these rules named finds what was stored above.
  seen_current.store(current, std::memory_order_release);
}

std::vector<std::string> BulkheadRecord::names(const shm::View& view) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < view.bulkhead_count; ++i) {
    shm::BulkheadInfo info;
    if (shm::read_bulkhead(view, i, info)) names.emplace_back(info.name);
  }
  return names;
}

}  // namespace cutwater::detail

namespace cutwater {

Result<Bulkhead> Client::bulkhead(std::string_view name) {
  return detail::or_no_memory([&]() -> Result<Bulkhead> {
    auto found = core_->bulkhead(name);
    if (!found) return found.error();
    return Bulkhead{*found};
  });
}

Result<detail::BulkheadRecord*> Client::Core::bulkhead(std::string_view name) {
  return detail::named_record(bulkheads_, name, *this, link_, watcher_);
}

}  // namespace cutwater
