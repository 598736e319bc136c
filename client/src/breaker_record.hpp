// SPDX-License-Identifier: Apache-2.0
// BreakerRecord, BreakerPlace: a breaker by name, and where it lies in one memory
// (src/named_record.hpp).
#pragma once
#include <string_view>
#include <vector>

#include <cutwater/breaker.hpp>

#include "src/named_record.hpp"
#include "wire/ask_message.hpp"

namespace cutwater::detail {

struct BreakerRecord;

struct BreakerPlace : NamedSpot {
  BreakerRecord* record = nullptr;               ///< whose it is; set before it is published
  BreakerPlace* next = nullptr;                  ///< set before it is published
  std::atomic<bool> measures{false};             ///< the settings need durations
  mutable shm::BreakerLocal local;

  static shm::BreakerRef unpacked(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  shm::BreakerRef breaker() const noexcept {
    return unpacked(ref.load(std::memory_order_relaxed));
  }
  /// `now`: process_life().
  [[gnu::always_inline]] shm::BreakerCaller caller(std::uint64_t now) const noexcept {
    shm::BreakerCaller out = row_caller(now);
    out.local = &local;
    return out;
  }
  shm::BreakerCaller caller() const noexcept { return caller(process_life()); }
  /// Of one that tells how a call ended that was granted under `taken`. What the short ways keep is
  /// of the ref that is asked now: one of before must not be kept in its place.
  shm::BreakerCaller reporter(std::uint64_t taken) const noexcept {
    shm::BreakerCaller out = caller();
    if (!is_asked_now(taken)) out.local = nullptr;
    return out;
  }
  /// The same of one that is about to hold a cell.
  shm::BreakerCaller prober() const noexcept {
    const shm::BreakerCaller out = caller();
    return out.row != 0 || !need_row() ? out : caller();
  }
  /// A call that is granted now may hold one: a probe, or the one by which it is seen to hang.
  bool takes_cells() const noexcept;

  static bool is_there(const shm::View& view, std::string_view name) noexcept;
  void resolve(std::string_view name) noexcept;
};

struct BreakerRecord : NamedRecord<BreakerRecord, BreakerPlace> {
  static constexpr std::string_view kWhat = "breaker";
  static constexpr std::string_view kMany = "breakers";
  static constexpr std::string_view kNothing = "nothing is recorded";
  static constexpr wire::NameKind kKind = wire::NameKind::Breaker;
  static std::vector<std::string> names(const shm::View& view);
};

/// Everything the exception being handled may be called, its causes included, to a depth of 16.
struct OutcomeNames {
  std::size_t count = 0;
  std::string_view own[Outcomes::kMax];          ///< of the program, in the order of adding
  Outcome built_in = Outcome::failure("exception");

  /// What decides when nobody knows the breaker's lists.
  std::string_view first() const noexcept { return count != 0 ? own[0] : built_in.failure_class(); }
};
OutcomeNames names_of_current_exception() noexcept;

}  // namespace cutwater::detail
