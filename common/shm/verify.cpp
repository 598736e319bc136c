// SPDX-License-Identifier: Apache-2.0
#include "shm/verify.hpp"

#include <cstring>
#include <string_view>

#include "base/sync_point.hpp"
#include "shm/breaker/trips.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"
#include "shm/verify_detail.hpp"

namespace cutwater::shm {

VerifyReport verify(const View& view) {
  detail::Verifier verifier(view);
  detail::verify_control(verifier);
  detail::verify_image(verifier);
  detail::verify_buckets(verifier);
  detail::verify_rows(verifier);
  detail::verify_breakers(verifier);
  detail::verify_bulkheads(verifier);
  detail::verify_stats(verifier);
  return std::move(verifier.report);
}

namespace detail {
namespace {

std::string check_row(const View& view, std::uint32_t index) {
  RowInfo row;
  read_row(view, index, row);
  const auto kind = static_cast<std::uint8_t>(row.word.kind);
  if (row.word.state > RowState::Dead) return "has a state that does not exist";
  if (row.word.kind > RowKind::Remote) return "has a kind that does not exist";
  if ((read_once(view.rows[index].word) & 0xffff) != 0) return "its reserved bits are not 0";
  if (read_once(view.rows[index].name[sizeof row.name - 1]) != 0) return "its name has no end";
  if (index == 0) return pack_row(row.word) == 0 ? "" : "row 0 is in use";
  if (row.word.state == RowState::Free) return "";
  if (kind == 0) return "is in use but of no kind";
  if ((index == kDaemonRow) != (row.word.kind == RowKind::Daemon)) {
    return index == kDaemonRow ? "row 1 is not the daemon's" : "says that it is the daemon";
  }
  if (row.word.generation == 0) return "is in use but was never granted";
  if (row.attached_ns < 0 || row.attached_ns > kHorizonNs) return "attached at an impossible time";
  return "";
}

std::string check_stripe(const View& view, std::uint32_t stripe) {
  const auto& place = *reinterpret_cast<const StripeOwner*>(
      view.stripes + std::uint64_t{stripe} * view.stripe_stride);
  const Word16 owner = load16(&place.owner);
  if (owner == Word16{}) return "";
  if (stripe == kSharedStripe) return "the shared stripe has an owner";
  const auto row = static_cast<std::uint32_t>(owner.lo >> 32);
  CUTWATER_SYNC_POINT("verify.stripe_read");
  RowInfo info;
  const bool there = row != 0 && read_row(view, row, info);
  // A life may have ended between the two looks; its stripes were freed before its row was.
  if (load16(&place.owner) != owner) return "";
  if (!there) {
    return "belongs to row " + std::to_string(row) + ", which does not exist";
  }
  // A dead row's stripes are freed before the row is: so FREE or another generation cannot be.
  const bool same_life = info.word.generation == static_cast<std::uint32_t>(owner.lo);
  if (!same_life || info.word.state == RowState::Free) {
    return "belongs to a life of row " + std::to_string(row) + " that is over";
  }
  return "";
}

}  // namespace

void verify_control(Verifier& verifier) {
  const View& view = verifier.view;
  verifier.expect("control page", Verifier::kNoIndex, [&]() -> std::string {
    return verifier.c >> kCurrentGenerationShift == 0 ? "`current` has generation 0" : "";
  });
  if (!view.clock.is_stepped()) return;
  verifier.expect("stepped clock", Verifier::kNoIndex, [&]() -> std::string {
    const std::int64_t t = view.clock.now();
    return t < 0 || t > kHorizonNs ? "stands at an impossible time" : "";
  });
}

void verify_rows(Verifier& verifier) {
  const View& view = verifier.view;
  for (std::uint32_t index = 0; index < view.row_count; ++index) {
    verifier.expect("row", index, [&] { return check_row(view, index); });
    const RowWord word = unpack_row(read_once(view.rows[index].word));
    if (word.state != RowState::Free) ++verifier.report.rows;
  }
}

void verify_stats(Verifier& verifier) {
  const View& view = verifier.view;
  for (std::uint32_t stripe = 0; stripe < view.stripe_count; ++stripe) {
    verifier.expect("stripe", stripe, [&] { return check_stripe(view, stripe); });
  }
  for (std::uint32_t index = 0; index < view.event_count; ++index) {
    verifier.expect("event record", index, [&] { return check_event(view, index); });
    if (read_once(view.events[index].number) != 0) ++verifier.report.events;
  }
  for (std::uint32_t index = 0; index < view.trip_count; ++index) {
    verifier.expect("trip record", index, [&] { return check_trip(view, index); });
  }
}

}  // namespace detail
}  // namespace cutwater::shm
