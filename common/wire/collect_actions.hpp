// SPDX-License-Identifier: Apache-2.0
// Runs one step of a session machine and catches what only missing memory can throw: the session
// then ends, and its peer sees a closed connection instead of half an answer.
// Thread safety: as the machine it is given.
#pragma once
#include <exception>
#include <vector>

#include "wire/session_words.hpp"

namespace cutwater::wire {

/// `body(out)` appends actions. When it throws: the machine is Closed and the only action is the
/// closing (none at all if even that has no memory, so callers look at state() too).
template <class Action, class Session, class Body>
std::vector<Action> collect_actions(Session& session, Body body) noexcept {
  std::vector<Action> out;
  try {
    body(out);
    return out;
  } catch (const std::exception&) {
    session.ended();
    out.clear();
  }
  try {
    out.push_back(CloseConnection{"no memory"});
  } catch (const std::exception&) {
    out.clear();
  }
  return out;
}

}  // namespace cutwater::wire
