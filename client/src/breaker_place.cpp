// SPDX-License-Identifier: Apache-2.0
// Where a breaker is asked, and what of its settings the short way needs.
#include <string>
#include <vector>

#include "shm/breaker/words.hpp"
#include "src/breaker_record.hpp"
#include "src/core.hpp"
#include "src/no_memory.hpp"

namespace cutwater::detail {

bool BreakerPlace::is_there(const shm::View& view, std::string_view name) noexcept {
  return shm::resolve_breaker(view, name, {}).ref.index != shm::kNoLine;
}

void BreakerPlace::resolve(std::string_view name) noexcept {
  const std::uint64_t current = view->current();
  // Of a pattern it is made at first use; beyond max-instances the pattern's own answers.
  const shm::BreakerRef found = shm::resolve_breaker(*view, name, row_caller().stripe).ref;
  shm::BreakerInfo info;
  const bool there = found.index != shm::kNoLine && shm::read_breaker(*view, found.index, info);
  const std::uint64_t word = std::uint64_t{found.incarnation} << 32 | found.index;
  ref.store(word, std::memory_order_relaxed);
  if (there) shm::join_breaker(*view, found, caller());
  const bool slow_on = info.numbers.slow_ppm != rule::kOffPpm;
  measures.store(there && slow_on, std::memory_order_relaxed);
  // release: whoever finds these rules named finds what was stored above.
  seen_current.store(current, std::memory_order_release);
}

bool BreakerPlace::takes_cells() const noexcept {
  const std::uint32_t at = index();
  if (at >= view->breaker_count || !plain.load(std::memory_order_relaxed)) return true;
  // relaxed: a hint; enter_breaker() looks for itself.
  const std::uint64_t lo = __atomic_load_n(&view->breakers[at].state.lo, __ATOMIC_RELAXED);
  return (lo & shm::kStateNotPlain) != 0;
}

std::vector<std::string> BreakerRecord::names(const shm::View& view) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    shm::BreakerInfo info;
    if (shm::read_breaker(view, i, info)) names.emplace_back(info.name);
  }
  return names;
}

}  // namespace cutwater::detail

namespace cutwater {

Result<Breaker> Client::breaker(std::string_view name) {
  return detail::or_no_memory([&]() -> Result<Breaker> {
    auto found = core_->breaker(name);
    if (!found) return found.error();
    return Breaker{*found};
  });
}

Result<detail::BreakerRecord*> Client::Core::breaker(std::string_view name) {
  return detail::named_record(breakers_, name, *this, link_, watcher_);
}

}  // namespace cutwater
