// SPDX-License-Identifier: Apache-2.0
// BulkheadRecord, BulkheadSpot: a bulkhead by name, and where it lies in one memory
// (src/named_record.hpp).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/bulkhead.hpp>

#include "shm/bulkhead/bulkhead.hpp"
#include "src/named_record.hpp"
#include "wire/ask_message.hpp"

namespace cutwater::detail {

struct BulkheadRecord;

struct BulkheadSpot : NamedSpot {
  BulkheadRecord* record = nullptr;              ///< whose it is; set before it is published
  BulkheadSpot* next = nullptr;                  ///< set before it is published
  mutable shm::BulkheadLocal local;

  static shm::BulkheadRef unpacked(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  shm::BulkheadRef bulkhead() const noexcept {
    return unpacked(ref.load(std::memory_order_relaxed));
  }
  /// `now`: process_life().
  [[gnu::always_inline]] shm::BulkheadCaller caller(std::uint64_t now) const noexcept {
    if (row->life == now) [[likely]] {
      return {row->index, row->generation, counter_for(*this).stripe, &local};
    }
    const shm::BreakerCaller out = row_caller(now);   // a child that was forked
    return {out.row, out.generation, out.stripe, &local};
  }
  shm::BulkheadCaller caller() const noexcept { return caller(process_life()); }
  /// Of one that gives back what it took under `taken`. What the short ways keep is of the ref that
  /// is asked now: one of before must not be kept in its place.
  shm::BulkheadCaller leaver(std::uint64_t taken) const noexcept {
    shm::BulkheadCaller out = caller();
    if (!is_asked_now(taken)) out.local = nullptr;
    return out;
  }
  /// Before a place is asked for or given back.
  void look_after() const noexcept {
    if (keeper != nullptr) [[unlikely]] keeper->look(*view);
  }
  /// The same of one that is about to hold a place.
  shm::BulkheadCaller holder() const noexcept {
    look_after();
    const shm::BulkheadCaller out = caller();
    return out.row != 0 || !need_row() ? out : caller();
  }

  static bool is_there(const shm::View& view, std::string_view name) noexcept;
  void resolve(std::string_view name) noexcept;
};

struct BulkheadRecord : NamedRecord<BulkheadRecord, BulkheadSpot> {
  static constexpr std::string_view kWhat = "bulkhead";
  static constexpr std::string_view kMany = "bulkheads";
  static constexpr std::string_view kNothing = "nothing is held";
  static constexpr wire::NameKind kKind = wire::NameKind::Bulkhead;
  static std::vector<std::string> names(const shm::View& view);
};

}  // namespace cutwater::detail
