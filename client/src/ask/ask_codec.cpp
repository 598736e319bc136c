// SPDX-License-Identifier: Apache-2.0
#include "src/ask/ask_codec.hpp"

#include <algorithm>
#include <limits>

#include "wire/enter_message.hpp"
#include "wire/fill.hpp"
#include "wire/scan.hpp"
#include "wire/tokens.hpp"

namespace cutwater::client {
namespace {

using wire::Fill;
using wire::Scan;
using wire::Token;
using wire::Tokens;
using wire::Value;

constexpr std::int64_t kGoneHintNs = 100'000'000;

/// Bytes of an item besides its key, but for a name: array head, nil, bin head, cost; and those of
/// the message around the items, a name among them.
constexpr std::size_t kItemBytes = 10, kHeadBytes = 128;
/// At most so many bytes of an item besides its key and a name.
constexpr std::size_t kItemRoom = 2 * Fill::kMaxHead + Fill::kMaxNumber + 1;
/// Fields of a decision; behind them `would`, `charged` and `clock_ns`, as far as they are told.
constexpr std::size_t kDecisionFields = 7, kDecisionFieldsMost = 10;

void put_item(std::string& frame, std::string_view limit, std::string_view key,
              std::uint64_t cost) {
  wire::put_array_head(frame, cost == 1 ? 2 : 3);
  if (limit.empty()) {
    wire::put_nil(frame);
  } else {
    wire::put_string(frame, limit);
  }
  wire::put_binary(frame, key);
  if (cost != 1) wire::put_unsigned(frame, cost);
}

void put_items(std::string& frame, std::span<const NamedAsk> asks) {
  wire::put_array_head(frame, asks.size());
  for (const NamedAsk& ask : asks) put_item(frame, ask.limit, ask.key, ask.cost);
}

void put_name(std::string& frame, std::string_view name) {
  if (name.empty()) wire::put_nil(frame);
  else wire::put_string(frame, name);
}

std::int64_t duration(std::uint64_t ns) noexcept {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(ns, static_cast<std::uint64_t>(kNever.count())));
}

/// The unsigned elements of one array of a payload; the rest of it is let be.
class Fields {
 public:
  Fields(const Tokens& tokens, std::size_t at) : tokens_(tokens), at_(at + 1) {
    good_ = at < tokens.size() && tokens[at].kind == Value::Kind::Array;
    count_ = good_ ? tokens[at].number : 0;
  }
  std::uint64_t number(std::uint64_t otherwise, bool needed = true) {
    if (taken_ >= count_) {
      good_ = good_ && !needed;
      return otherwise;
    }
    const Token& token = tokens_[at_];
    if (token.kind != Value::Kind::Unsigned) good_ = false;
    at_ = token.next;
    ++taken_;
    return good_ ? token.number : otherwise;
  }
  bool good() const noexcept { return good_; }

 private:
  const Tokens& tokens_;
  std::size_t at_;
  std::uint64_t count_ = 0, taken_ = 0;
  bool good_;
};

void fill_error(std::uint64_t code, DecisionData& out) noexcept {
  out.base_t = kNever.count();
  switch (static_cast<wire::ItemError>(code)) {
    case wire::ItemError::KeyTooLong: out.reason = Reason::KeyTooLong; return;
    case wire::ItemError::InvalidArgument: out.reason = Reason::InvalidArgument; return;
    default: break;
  }
  // As a mapped client answers for a limit that is not there.
  out.reason = Reason::Degraded;
  out.flags = Decision::kDegraded | Decision::kHint;
  out.base_t = kGoneHintNs;
}

void begin(const DecisionTaking& taking, DecisionData& out) noexcept {
  out = DecisionData{};
  out.decided_by = DecidedBy::Socket;
  out.computed = true;
  out.t = taking.stamp_ns;
  out.owner = taking.state;
}

/// What an answer may leave out.
struct Told {
  std::uint64_t charged = wire::kChargedAsAsked;
  std::uint64_t clock_ns = 0;
};

/// A granted charge is remembered by the daemon.
void keep_receipt(const DecisionTaking& taking, AskReceipt receipt, std::uint32_t item,
                  const Told& told, DecisionData& out) noexcept {
  if (told.clock_ns != 0) out.t = duration(told.clock_ns);
  if (out.reason != Reason::Allowed || taking.look) return;
  // A shadow that would have refused charges nothing.
  const bool shadow = (out.flags & Decision::kShadow) != 0;
  const std::uint64_t usual = shadow ? 0 : taking.cost;
  const std::uint64_t charged = told.charged == wire::kChargedAsAsked ? usual : told.charged;
  if (charged == 0 || charged > kMaxCost) return;
  out.receipt = Receipt::Remembered;
  out.cost = static_cast<std::int64_t>(charged);
  out.slot = reinterpret_cast<void*>(std::uintptr_t{receipt.request});
  out.tag = item;
  out.level = receipt.session;
}

bool fill(const Tokens& tokens, std::size_t at, const DecisionTaking& taking, AskReceipt receipt,
          std::uint32_t item, DecisionData& out) noexcept {
  begin(taking, out);
  Fields fields(tokens, at);
  const std::uint64_t reason = fields.number(0);
  if (!fields.good()) return false;
  if (reason >= wire::kFirstItemError) {
    fill_error(reason, out);
    return true;
  }
  out.reason = static_cast<Reason>(reason);
  out.mult = fields.number(0);
  out.base_t = duration(fields.number(0));
  out.base_n = duration(fields.number(0));
  out.burst = duration(fields.number(0));
  out.window = static_cast<std::uint8_t>(fields.number(0));
  out.flags = static_cast<std::uint8_t>(fields.number(0));
  out.would = static_cast<Reason>(fields.number(0, false));
  Told told;
  told.charged = fields.number(wire::kChargedAsAsked, false);
  told.clock_ns = fields.number(0, false);
  if (!fields.good()) return false;
  keep_receipt(taking, receipt, item, told, out);
  return true;
}

/// As fill(), of a decision as it is usually written. False: the payload is read the other way.
bool fill_quickly(Scan& scan, const DecisionTaking& taking, AskReceipt receipt,
                  std::uint32_t item, DecisionData& out) noexcept {
  const std::size_t fields = scan.array();
  if (fields < kDecisionFields || fields > kDecisionFieldsMost) return false;
  begin(taking, out);
  const std::uint64_t reason = scan.number();
  out.reason = static_cast<Reason>(reason);
  out.mult = scan.number();
  out.base_t = duration(scan.number());
  out.base_n = duration(scan.number());
  out.burst = duration(scan.number());
  out.window = static_cast<std::uint8_t>(scan.number());
  out.flags = static_cast<std::uint8_t>(scan.number());
  if (fields > kDecisionFields) out.would = static_cast<Reason>(scan.number());
  Told told;
  if (fields > kDecisionFields + 1) told.charged = scan.number();
  if (fields > kDecisionFields + 2) told.clock_ns = scan.number();
  if (scan.failed() || reason >= wire::kFirstItemError) return false;
  keep_receipt(taking, receipt, item, told, out);
  return true;
}

bool take_quickly(std::string_view payload, const DecisionTaking& taking,
                  AskReceipt receipt) noexcept {
  Scan scan(payload);
  if (scan.array() != 1 || scan.array() != taking.out.size()) return false;
  for (std::uint32_t i = 0; i < taking.out.size(); ++i) {
    if (!fill_quickly(scan, taking, receipt, i, taking.out[i].data())) return false;
  }
  return scan.done();
}

/// Tokens of a payload that is an array of one array; where that begins, 0 when it is not.
std::size_t only_array(const wire::Decoded<Tokens>& tokens) noexcept {
  if (!tokens || tokens->empty()) return 0;
  const Tokens& all = *tokens;
  if (all[0].kind != Value::Kind::Array || all[0].number == 0 || all.size() < 2) return 0;
  return all[1].kind == Value::Kind::Array ? 1 : 0;
}

/// The fields that decisions and admissions have in common.
template <class Answer>
void fill_told(const Answer& told, DecisionData& out) noexcept {
  out.reason = static_cast<Reason>(told.reason);
  out.mult = told.remaining;
  out.base_t = duration(told.retry_after_ns);
  out.base_n = duration(told.reset_after_ns);
  out.burst = duration(told.wait_ns);
  out.window = told.window;
  out.flags = static_cast<std::uint8_t>(told.flags);
}

/// False: a limit of the set was gone, so none of them said anything.
bool verdict_is_of_rule(const DecisionData& verdict) noexcept {
  return verdict.reason != Reason::Degraded || (verdict.flags & Decision::kHint) == 0;
}

void fill_as_verdict(AskReceipt receipt, AllTaking& taking) noexcept {
  const DecisionData& verdict = taking.verdict.data();
  const bool shadow = (verdict.flags & Decision::kShadow) != 0;
  taking.count = taking.asks.size();
  for (std::uint32_t i = 0; i < taking.count; ++i) {
    DecisionData& out = taking.each[i].data();
    out = verdict;
    const std::uint64_t cost = taking.asks[i].cost;
    keep_receipt({.cost = cost}, receipt, i, {cost, 0}, out);
    // Which of them is the shadow that was not charged is not told: it may be this one.
    out.n = shadow ? kPerhapsNotCharged : 0;
  }
}

}  // namespace

std::size_t keys_of_frame(std::span<const std::string_view> keys, std::size_t max_frame) noexcept {
  const std::size_t most = std::min(keys.size(), wire::kMaxItems);
  const std::size_t room = std::min(kItemsBytes, max_frame - std::min(max_frame, kHeadBytes));
  std::size_t bytes = 0;
  for (std::size_t count = 0; count < most; ++count) {
    bytes += keys[count].size() + kItemBytes;
    if (count != 0 && (bytes > room || keys[count].size() > kMaxKeyBytes)) return count;
  }
  return most;
}

void put_acquire(std::string& frame, AcquireHead head, std::string_view limit,
                 std::span<const std::string_view> keys, std::uint64_t cost) {
  std::size_t most = kHeadBytes + limit.size();
  for (const std::string_view key : keys) most += kItemRoom + key.size();
  const std::size_t begin = frame.size();
  frame.resize(begin + most);
  Fill fill(frame.data() + begin);
  fill.array(3);
  fill.number(head.ttl_ns);
  fill.number(head.max_wait_ns);
  fill.array(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fill.array(cost == 1 ? 2 : 3);
    if (i != 0 || limit.empty()) fill.nil();
    else fill.text(limit);
    fill.binary(keys[i]);
    if (cost != 1) fill.number(cost);
  }
  frame.resize(static_cast<std::size_t>(fill.at() - frame.data()));
}

void put_charge(std::string& frame, AcquireHead head, const NamedAsk& ask) {
  wire::put_array_head(frame, 3);
  wire::put_unsigned(frame, head.ttl_ns);
  wire::put_unsigned(frame, head.max_wait_ns);
  wire::put_array_head(frame, 1);
  wire::put_array_head(frame, 4);
  wire::put_string(frame, ask.limit);
  wire::put_binary(frame, ask.key);
  wire::put_unsigned(frame, ask.cost);
  wire::put_unsigned(frame, wire::kItemAfterTheFact);
}

void put_peek(std::string& frame, std::span<const NamedAsk> asks) {
  wire::put_array_head(frame, 1);
  wire::put_array_head(frame, asks.size());
  for (const NamedAsk& ask : asks) put_item(frame, ask.limit, ask.key, ask.cost);
}

void put_enter(std::string& frame, AcquireHead head, std::span<const NamedAsk> asks) {
  wire::put_array_head(frame, 5);
  wire::put_unsigned(frame, head.ttl_ns);
  wire::put_unsigned(frame, head.max_wait_ns);
  put_items(frame, asks);
  wire::put_nil(frame);
  wire::put_nil(frame);
}

void put_admission(std::string& frame, AcquireHead head, const AdmissionAsk& ask) {
  const bool lasting = ask.call_ns > Nanos{0};
  wire::put_array_head(frame, ask.apart ? 7 : lasting ? 6 : 5);
  wire::put_unsigned(frame, head.ttl_ns);
  wire::put_unsigned(frame, head.max_wait_ns);
  put_items(frame, ask.limits);
  put_name(frame, ask.bulkhead);
  put_name(frame, ask.breaker);
  const std::int64_t lasts = std::max<std::int64_t>(ask.call_ns.count(), 0);
  if (lasting || ask.apart) wire::put_unsigned(frame, static_cast<std::uint64_t>(lasts));
  if (ask.apart) wire::put_bool(frame, true);
}

void put_outcome(std::string& frame, const wire::OutcomeReport& report) {
  wire::put_array_head(frame, 1);
  wire::put_array_head(frame, 1);
  const bool others = !report.others.empty();
  const bool waits = others || report.retry_after_ns != wire::kNever;
  const bool classed = waits || !report.outcome_class.empty();
  const bool opens = classed || report.open_for_ns != 0;
  const bool lasted = opens || report.duration_ns != wire::kNever;
  wire::put_array_head(frame, 2U + lasted + opens + classed + waits + others);
  wire::put_binary(frame, report.ticket);
  wire::put_unsigned(frame, static_cast<std::uint8_t>(report.outcome));
  if (lasted) wire::put_unsigned(frame, report.duration_ns);
  if (opens) wire::put_unsigned(frame, report.open_for_ns);
  if (classed) wire::put_string(frame, report.outcome_class);
  if (waits) wire::put_unsigned(frame, report.retry_after_ns);
  if (!others) return;
  wire::put_array_head(frame, report.others.size());
  for (const std::string& name : report.others) wire::put_string(frame, name);
}

void put_refund(std::string& frame, std::uint32_t request, std::uint32_t item) {
  wire::put_array_head(frame, 1);
  wire::put_array_head(frame, 1);
  wire::put_array_head(frame, 2);
  wire::put_unsigned(frame, request);
  wire::put_unsigned(frame, item);
}

bool take_decisions(std::string_view payload, const DecisionTaking& taking, AskReceipt receipt) {
  if (take_quickly(payload, taking, receipt)) return true;
  const auto tokens = wire::read_tokens(payload);
  const std::size_t array = only_array(tokens);
  if (array == 0 || (*tokens)[array].number != taking.out.size()) return false;
  std::size_t at = array + 1;
  for (std::uint32_t i = 0; i < taking.out.size(); ++i) {
    if (!fill(*tokens, at, taking, receipt, i, taking.out[i].data())) return false;
    at = (*tokens)[at].next;
  }
  return true;
}

bool take_admission(std::string_view payload, AskReceipt receipt, AllTaking& taking) {
  const auto answer = wire::decode<wire::EnterAnswer>(payload);
  if (!answer || taking.asks.size() > taking.each.size()) return false;
  take_told(answer->admission, receipt, taking);
  return true;
}

void take_told(const wire::Admission& told, AskReceipt receipt, AllTaking& taking) noexcept {
  const std::size_t asks = taking.asks.size();
  DecisionData& verdict = taking.verdict.data();
  begin({.stamp_ns = taking.stamp_ns}, verdict);
  taking.index = told.index;
  taking.count = 0;
  if (told.is_error()) return fill_error(told.reason, verdict);
  fill_told(told, verdict);
  if (told.clock_ns != 0) verdict.t = duration(told.clock_ns);
  if (told.each.size() != asks) {
    if (verdict_is_of_rule(verdict)) fill_as_verdict(receipt, taking);
    return;
  }
  for (std::uint32_t i = 0; i < asks; ++i) {
    const DecisionTaking one{.cost = taking.asks[i].cost, .stamp_ns = taking.stamp_ns};
    DecisionData& out = taking.each[i].data();
    begin(one, out);
    const wire::DecisionAnswer& item = told.each[i];
    fill_told(item, out);
    out.would = static_cast<Reason>(item.would);
    if ((out.flags & Decision::kShadow) != 0) verdict.would = out.would;
    keep_receipt(one, receipt, i, {item.charged, item.clock_ns}, out);
  }
  taking.count = asks;
}

bool take_refund(std::string_view payload, std::uint16_t& code, std::uint64_t& tokens_back) {
  const auto tokens = wire::read_tokens(payload);
  const std::size_t array = only_array(tokens);
  if (array == 0 || (*tokens)[array].number != 1) return false;
  Fields fields(*tokens, array + 1);
  code = static_cast<std::uint16_t>(fields.number(0));
  tokens_back = fields.number(0);
  return fields.good();
}

}  // namespace cutwater::client
