// SPDX-License-Identifier: Apache-2.0
// AskedBreaker: what a Breaker and its Calls do over the socket (src/breaker.cpp does the rest).
// A Call that was granted there has no place; its ticket_[0] points to its AskedCall.
// Every function ends within the client's ask_timeout; where the daemon did not answer it says so
// and `found` becomes what answers instead. Thread safety: as Breaker and Call.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <cutwater/breaker.hpp>

#include "src/breaker_record.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::detail {

struct AskedBreaker {
  /// True: `out` is filled.
  static bool enter(BreakerRecord& record, Nanos deadline, Entered& out,
                    Found<BreakerPlace>& found) noexcept;

  /// The breaker as the next caller finds it.
  struct Looked {
    BreakerStatus state = BreakerStatus::Closed;
    std::uint16_t would = 0;           ///< 0, or the reason it would refuse for
    std::string explain;
  };
  static std::optional<Looked> look(BreakerRecord& record, Found<BreakerPlace>& found) noexcept;

  /// The end of a Call without a place; nothing for one that was granted nowhere. `wait`: of
  /// open_for() when open_now, else a Retry-After.
  static void report(Call& call, std::uint8_t ended, std::string_view outcome_class,
                     std::optional<Nanos> took, bool open_now,
                     std::optional<Nanos> wait) noexcept;
  /// The same for an exception: all its names, of which the breaker's lists choose there. Beyond
  /// wire::kMaxOtherClasses of the program's own the later ones are not told.
  static void failed_by(Call& call, std::span<const std::string_view> own,
                        std::string_view built_in, std::optional<Nanos> took) noexcept;
  /// The Call has no word to say any more.
  static void let_go(Call& call) noexcept;

 private:
  static void say(Call& call, wire::OutcomeReport report, bool counts) noexcept;
};

}  // namespace cutwater::detail
