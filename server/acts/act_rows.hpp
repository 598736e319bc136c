// SPDX-License-Identifier: Apache-2.0
// READ rows about what was set by hand or for single keys.
//
//   journal    id do limit key? count? period_ns? burst? on? (of a breaker: breaker to?) at_s
//              until_s who note state (stands, undone, replaced, expired, done) saved
//              (saved, pending, failed) ended_s? ended_by?; by id
//   overrides  limit key pattern kind (bucket, unlimited, blocked) windows until_s note origin
//              (configuration, act) act?; by limit
// Keys appear as the limit's show-keys allows: as they are (control characters replaced), as the
// hash of the memory, or not at all. A key pattern is the operator's own text and always shown.
// Pure but for the secret of the hash. Thread safety: functions without state.
#pragma once
#include "acts/act_book.hpp"
#include "rows/segment_rows.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::server {

/// A key as people may see it: in its one spelling (config/key_text.hpp), hashed, or nothing.
std::string shown_key(const shm::View& view, const rule::LimitSettings& limit,
                      std::string_view key);

rows::Rows journal_rows(const shm::View& view, const ActBook& book,
                        const std::vector<rule::LimitSettings>& limits);
/// The act that stands for a breaker, else the last one that ended; nil: none is remembered.
wire::Value breaker_act_row(const shm::View& view, const ActBook& book, std::string_view breaker);
/// The ban or override that stands for a key, by hand or (state: configuration) in the file; nil:
/// none, or a pattern's.
wire::Value key_act_row(const shm::View& view, const ActBook& book,
                        const std::vector<rule::LimitSettings>& limits, std::string_view limit,
                        std::string_view key);
/// Acts that say something else than the configuration about the same limit or key, a sentence
/// each without the key; at most kMostOverFile, then how many more.
inline constexpr std::size_t kMostOverFile = 8;
wire::Value::Array acts_over_file(const ActBook& book,
                                  const std::vector<rule::LimitSettings>& limits);
rows::Rows override_rows(const shm::View& view, const ActBook& book,
                         const std::vector<rule::LimitSettings>& effective);

}  // namespace cutwater::server
