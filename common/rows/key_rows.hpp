// SPDX-License-Identifier: Apache-2.0
// The keys of one limit that are in debt, read off the bucket table page by page: READ `keys`, of
// the daemon and from the memory of a dead one.
//
//   key              as show-keys allows: the bytes of its name where that is kept and believed
//                    (shm/limit/key_name.hpp; of a longer key its beginning, see `cut`), else
//                    `#` and its fingerprint, 12 hex digits, the same in all windows of the limit;
//                    "" where keys are hidden
//   named cut        whether `key` is a name; whether it is only the beginning of one
//   window           which of the limit's; a key in debt in several has a row for each
//   remaining reset_after_ns retry_after_ns      as an ask of one token would be answered now, by
//                    this window; retry_after_ns 0: it would be let through; never: 2^64-1
//   owes             whole tokens beyond the burst (Limit::charge), rounded up; 0: none
//
// Keys that owe nothing have no entry and are not listed, nor are bans. The order is that of the
// table, which means nothing. A page looks at no more than kSlotsPerPage slots, some 1 ms, and may
// have no rows though others follow. What changes between two pages is seen by the later one; a key
// that is inserted meanwhile may be missed.
// Never writes a byte. Process safety: beside any daemon and clients. Thread safety: one thread.
#pragma once
#include "rows/segment_rows.hpp"

namespace cutwater::rows {

inline constexpr std::uint64_t kSlotsPerPage = std::uint64_t{1} << 16;

struct KeyQuery {
  std::string_view limit;
  std::uint64_t from = 0;              ///< slot; 0 begins
  std::size_t max_rows = 1000;
  std::size_t max_bytes = ~std::size_t{0};   ///< of all rows as they are sent
};
struct KeyPage {
  Rows rows;
  std::uint64_t next = 0;              ///< KeyQuery::from of the next page; 0: that was all
};
/// UnknownName lists the nearest names.
Result<KeyPage> key_page(const shm::View& view, const KeyQuery& query);

}  // namespace cutwater::rows
