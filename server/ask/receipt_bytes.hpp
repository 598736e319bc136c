// SPDX-License-Identifier: Apache-2.0
// A receipt as the session machine keeps it: bytes that only this daemon, in this run, reads again
// (wire/receipts.hpp). They hold what shm::give_back() needs of a decision: its charges, and which
// limit to count at. They never leave the process.
//
// `life` says which memory they belong to: after the memory was replaced by another one, a receipt
// of the old one is too late. Pure. Thread safety: functions without state.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <cutwater/decision.hpp>

#include "shm/limit/bucket.hpp"
#include "wire/receipts.hpp"

namespace cutwater::server {

struct KeptReceipt {
  std::uint32_t life = 0;
  shm::LimitRef limit;
  DecisionData data;
};

/// Empty when the decision charged nothing that could be undone.
std::string to_bytes(std::uint32_t life, shm::LimitRef limit, const DecisionData& data);
/// Adds the same to `receipts`, without a string in between.
void add_receipt(std::uint32_t life, shm::LimitRef limit, const DecisionData& data,
                 wire::Receipts& receipts);
/// nullopt: not bytes of to_bytes().
std::optional<KeptReceipt> receipt_of(std::string_view bytes);

}  // namespace cutwater::server
