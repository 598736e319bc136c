// SPDX-License-Identifier: Apache-2.0
// Classes of outcomes: the name of why a call failed, and what a breaker makes of it.
//
// Built in: timeout, connect, reset, dns, tls; http-NNN, which lies inside http-4xx or http-5xx;
// grpc:CODE; errno:NAME; local (this process is out of something: it says nothing about the
// dependency); exception (any other); result (a value that a test called bad); own (refused by a
// part of ours). A program adds names of its own. A name's most specific entry in `ignore` or
// `record` decides, on a tie `ignore`; a `record` list makes everything it does not name a success;
// then the defaults; then it is a failure. Rules O1-O3.
// Names in shared memory are 63-bit hashes: a list is compared, never printed from there.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace cutwater::rule {

enum class ClassVerdict : std::uint8_t { Failure = 0, Ignored = 1, Success = 2, Cancelled = 3 };

/// Hash of a class name as lists hold it: 63 bits, never 0.
std::uint64_t class_hash(std::string_view name) noexcept;

/// What a list says of one name.
enum class Listed : std::uint8_t { No = 0, Record = 1, Ignore = 2 };

/// `lookup(hash)` is what the breaker's own lists say of a name; `record_given` whether it has a
/// `record` list at all.
template <class Lookup>
ClassVerdict judge_class(std::string_view name, bool record_given, Lookup lookup) noexcept;

/// The group a name lies in: "http-503" in "http-5xx"; empty when it lies in none.
std::string_view group_of(std::string_view name) noexcept;
/// What holds where no list says anything.
ClassVerdict default_verdict(std::string_view name) noexcept;

/// True for the classes whose Retry-After is believed: http-429, http-503, grpc:UNAVAILABLE.
constexpr bool may_retry_after(std::string_view name) noexcept {
  return name == "http-429" || name == "http-503" || name == "grpc:UNAVAILABLE";
}

/// Number of a name's counter among the failures by class, below 32: its own for what is built in,
/// one, `program`, for all names of programs: there they decide (`record`, `ignore`), and are not
/// counted apart. 19 of the 32 are free, and the lists name what could have them, but counters
/// never fall and outlive a reload, a restart and a move into another memory, while lists change: a
/// counter by place in a list would add up failures of two names under the newer one. Each name
/// would have to keep its number in the rule image until nobody shows the old count.
std::uint8_t class_counter(std::string_view name) noexcept;
/// Name of a counter; empty when it has none.
std::string_view counter_name(std::uint8_t counter) noexcept;

/// What the lists say of the name, else of its group.
template <class Lookup>
Listed listed_as(std::string_view name, Lookup lookup) noexcept {
  for (const std::string_view one : {name, group_of(name)}) {
    if (one.empty()) continue;
    const Listed listed = lookup(class_hash(one));
    if (listed != Listed::No) return listed;
  }
  return Listed::No;
}

template <class Lookup>
ClassVerdict judge_class(std::string_view name, bool record_given, Lookup lookup) noexcept {
  if (name == "own" || name == "cancelled") return ClassVerdict::Cancelled;
  switch (listed_as(name, lookup)) {
    case Listed::Ignore: return ClassVerdict::Ignored;
    case Listed::Record: return ClassVerdict::Failure;
    case Listed::No: break;
  }
  return record_given ? ClassVerdict::Success : default_verdict(name);
}

/// Which of the names of one failure decides: the first of the program's `own` that `ignore` lists,
/// else the first that `record` lists, else the built-in name where a list says anything of it,
/// else the first. `listed(name)` is what the breaker's lists say of a name or its group.
template <class Lookup>
std::string_view deciding_class(std::span<const std::string_view> own, std::string_view built_in,
                                Lookup listed) noexcept {
  for (const Listed wanted : {Listed::Ignore, Listed::Record}) {
    for (const std::string_view name : own) {
      if (listed(name) == wanted) return name;
    }
  }
  return own.empty() || listed(built_in) != Listed::No ? built_in : own.front();
}

}  // namespace cutwater::rule
