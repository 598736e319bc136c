// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_class.hpp"

#include <algorithm>
#include <iterator>

#include "rule/breaker_rule.hpp"

namespace cutwater::rule {
namespace {

constexpr std::string_view kCounters[] = {
    "exception", "timeout", "connect", "reset",  "dns",    "tls",
    "http-4xx",  "http-5xx", "grpc",   "errno",  "local",  "result",
    "program"};
constexpr std::uint8_t kGrpc = 8, kErrno = 9, kProgram = 12;

/// The dependency answered that the question was wrong.
constexpr std::string_view kOurFault[] = {
    "grpc:INVALID_ARGUMENT", "grpc:NOT_FOUND",         "grpc:ALREADY_EXISTS",
    "grpc:PERMISSION_DENIED", "grpc:UNAUTHENTICATED",  "grpc:FAILED_PRECONDITION",
    "grpc:OUT_OF_RANGE",     "grpc:UNIMPLEMENTED",     "grpc:ABORTED"};
/// ... or that it is too much, which is about the dependency.
constexpr std::string_view kTheirs4xx[] = {"http-408", "http-425", "http-429"};

template <std::size_t N>
bool among(std::string_view name, const std::string_view (&list)[N]) noexcept {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

std::uint64_t class_hash(std::string_view name) noexcept {
  const std::uint64_t hash = name_hash(name) >> 1;
  return hash == 0 ? 1 : hash;
}

std::string_view group_of(std::string_view name) noexcept {
  const bool http = name.size() == 8 && name.starts_with("http-") &&
                    std::all_of(name.begin() + 5, name.end(),
                                [](char c) { return c >= '0' && c <= '9'; });
  if (!http) return {};
  if (name[5] == '4') return "http-4xx";
  return name[5] == '5' ? "http-5xx" : std::string_view{};
}

ClassVerdict default_verdict(std::string_view name) noexcept {
  if (name == "grpc:CANCELLED") return ClassVerdict::Cancelled;
  if (name == "local" || among(name, kOurFault)) return ClassVerdict::Ignored;
  if (among(name, kTheirs4xx)) return ClassVerdict::Failure;
  if (name == "http-4xx" || group_of(name) == "http-4xx") return ClassVerdict::Ignored;
  return ClassVerdict::Failure;
}

std::uint8_t class_counter(std::string_view name) noexcept {
  if (name.starts_with("grpc:")) return kGrpc;
  if (name.starts_with("errno:")) return kErrno;
  const std::string_view group = group_of(name);
  const std::string_view wanted = group.empty() ? name : group;
  for (std::uint8_t i = 0; i < kProgram; ++i) {
    if (kCounters[i] == wanted) return i;
  }
  return kProgram;
}

std::string_view counter_name(std::uint8_t counter) noexcept {
  return counter < std::size(kCounters) ? kCounters[counter] : std::string_view{};
}

}  // namespace cutwater::rule
