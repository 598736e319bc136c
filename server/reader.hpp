// SPDX-License-Identifier: Apache-2.0
// Answers READ: rows from the memory (rows/segment_rows.hpp) and what only the daemon knows.
//
//   status    + instance version config_file socket memory_directory memory_bytes birth connections
//               accepted refused log_dropped names_lost rules_repaired reloads reloads_refused;
//             config_refused (the first error of the last reload, while it is not taken over)
//             not_protecting (by the configuration and by hand), acts_over_file (act_rows.hpp)
//   clients   + watched (pidfd, connection) mode why connection; sessions without a row come last,
//               with row 0
//   limits, limit   + initial note; with a key: act (the ban or override that stands for it)
//   breaker   + note record ignore (of the configuration), act (by hand: stands, or ended last)
//   bulkhead  + note
//   breakers  + act (id of the one that stands)
//   counters, events, bulkheads, trips (name?; the newest first), config {path value origin}
//   journal, overrides       act_rows.hpp
//   keys (name)              the keys of a limit that are in debt (rows/key_rows.hpp)
//   top (name?)              limit key named cut asked refused over: most asking first (shm/limit/
//                            tops.hpp); key of a cut one: the bytes that are kept
// Options: `cost` of `limit` with a key (0..1e9, default 1).
// Cursors are decimal numbers: of the next event for `events`, of the next row for the others. An
// answer is filled up to max_rows and the session's frame; its cursor is empty at the end. Of
// `keys` it is the next slot of the table, and an answer with a cursor may have no rows. For
// `events` the next number is the last row's + 1, also when the cursor is empty: so one follows.
// Reading changes nothing (law 11). Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "acts/act_book.hpp"
#include "memory.hpp"
#include "rows/named_rows.hpp"
#include "rows/segment_rows.hpp"
#include "running.hpp"
#include "wire/message.hpp"

namespace cutwater::server {

/// What the daemon adds to the memory's rows.
struct ReaderFacts {
  std::function<rows::TableFill()> fill;
  std::function<void(wire::Value& status)> add_status;
  std::function<void(rows::Rows& clients)> add_clients;
  std::function<rows::Rows()> overrides = [] { return rows::Rows{}; };
  std::function<const ActBook&()> book = []() -> const ActBook& {
    static const ActBook kNobody;
    return kNobody;
  };
};

class Reader {
 public:
  Reader(const Memory& memory, const Running& running, ReaderFacts facts)
      : memory_(memory), running_(running), facts_(std::move(facts)) {}

  /// `max_bytes`: payload the answer may have.
  std::variant<wire::ReadAnswer, wire::Fault> answer(const wire::Read& asked,
                                                     std::size_t max_bytes) const;

 private:
  using Outcome = std::variant<rows::Rows, wire::Fault>;
  Outcome rows_of(const wire::Read& asked) const;
  wire::ReadAnswer listed(const wire::Read& asked, std::uint64_t first,
                          std::size_t max_bytes) const;
  wire::Value breaker_row_of(const rows::Named& one) const;
  Outcome limit(const wire::Read& asked) const;
  Outcome breaker(const wire::Read& asked) const;
  Outcome bulkhead(const wire::Read& asked) const;
  Outcome top(const wire::Read& asked) const;
  std::variant<wire::ReadAnswer, wire::Fault> keys(const wire::Read& asked,
                                                   std::size_t max_bytes) const;
  wire::Value status() const;
  void add_settings(wire::Value& limit) const;
  std::variant<wire::ReadAnswer, wire::Fault> events(const wire::Read& asked,
                                                     std::size_t max_bytes) const;

  const Memory& memory_;
  const Running& running_;
  ReaderFacts facts_;
  /// Names in the order in which they are told, as of the last answer without a cursor: all
  /// breakers, all bulkheads, and those of each that are not well.
  mutable std::vector<rows::Named> lists_[4];
};

}  // namespace cutwater::server
