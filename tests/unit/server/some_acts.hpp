// SPDX-License-Identifier: Apache-2.0
// Acts by hand for the tests of the book and the journal.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "acts/act.hpp"

namespace cutwater::server {

/// A ban on `login` by uid 0 at second 1000, with a note that a line must quote.
inline Act ban(std::string key, std::uint64_t until_s = 0) {
  Act act;
  act.kind = ActKind::Ban;
  act.limit = "login";
  act.key = std::move(key);
  act.at_s = 1000;
  act.until_s = until_s;
  act.who = "uid 0";
  act.note = "scraping, \"again\"\n\xc3\xa4";
  return act;
}

}  // namespace cutwater::server
