// SPDX-License-Identifier: Apache-2.0
#include "rows/key_rows.hpp"

#include <algorithm>
#include <cstdio>

#include "rows/limits_of_image.hpp"
#include "rule/decision_report.hpp"
#include "rule/limit_settings.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/limit/key_name.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::rows {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// What the fingerprint of a window is in the first one: the same for all windows of a key.
std::uint64_t key_number(std::uint64_t tag, std::uint8_t window) noexcept {
  const std::uint64_t of_window = shm::fingerprint({0, 0}, window);
  return (tag >> shm::kFingerprintShift) ^ of_window;
}

/// A hash that leads to where the entry lies: its key's as far as the table is concerned.
shm::KeyHash hash_of(const shm::View& view, std::uint64_t slot, std::uint64_t tag,
                     std::uint8_t window) noexcept {
  const shm::Home home = shm::home_of(view, slot / shm::kGroupSlots, tag);
  const auto wide = static_cast<unsigned __int128>(home.q0) << 64;
  const auto low = static_cast<std::uint64_t>((wide + view.g0 - 1) / view.g0);
  return {low, key_number(tag, window) << shm::kFingerprintShift};
}

std::uint64_t nanos(std::int64_t time) noexcept {
  return time == rule::kNeverNs ? kNever : static_cast<std::uint64_t>(std::max<std::int64_t>(
                                               time, 0));
}

class Lister {
 public:
  Lister(const shm::View& view, const FoundLimit& limit) : view_(view), limit_(limit) {
    handle_.ref = {limit.index, limit.config.incarnation};
    handle_.secret = shm::make_limit_secret(view.secret, limit.name);
    show_ = static_cast<rule::ShowKeys>(limit.config.show_keys);
  }

  /// Nil: no key in debt of this limit lies there.
  wire::Value row(std::uint64_t slot) const {
    const Word16 word = load16(view_.slots + slot);
    if (word.lo == 0 || shm::is_claim(word.lo)) return {};
    const std::uint64_t current = view_.current();
    const std::uint16_t id = shm::rule_of(word.lo);
    if (id < shm::kFirstRuleId || id >= view_.rule_count) return {};
    const shm::RuleRecord& record = view_.rule(current, id);
    const std::uint8_t window = record.window;
    if (!shm::is_bucket_kind(record) || record.limit != limit_.index ||
        window >= limit_.config.windows) {
      return {};
    }
    const std::int64_t now = view_.clock.now();
    if (static_cast<rule::Units>(word.hi) <= shm::full_level(view_, current, record, now)) {
      return {};
    }
    wire::Value out;
    name(slot, word.lo, window, out);
    const bool of_override = (record.flags & shm::kRuleOfOverride) != 0 &&
                             (record.flags & shm::kRuleDropped) == 0;
    shm::BucketAsk ask{.limit = handle_.ref, .key = hash_of(view_, slot, word.lo, window)};
    ask.window = window;
    ask.rule = of_override ? id : std::uint16_t{0};
    if (!numbers(ask, now, out)) return {};
    out.set("owes", owed(record, static_cast<rule::Units>(word.hi), now));
    return out;
  }

 private:
  /// Whole tokens, rounded up, that a key has taken beyond its burst (Limit::charge); 0: none.
  std::uint64_t owed(const shm::RuleRecord& record, rule::Units tat, std::int64_t now) const {
    const rule::Piece piece = shm::read_piece_at(record, now);
    const rule::Units n = shm::clock_at(view_, view_.current(), record, piece, now);
    const rule::Units beyond = rule::effective(piece, n, tat) - n - piece.burst;
    const std::uint64_t token = std::uint64_t{1} << (shm::read_once(record.f) & 63);
    return beyond <= 0 ? 0 : (static_cast<std::uint64_t>(beyond) + token - 1) / token;
  }

  void name(std::uint64_t slot, std::uint64_t tag, std::uint8_t window, wire::Value& out) const {
    std::optional<shm::KeptKey> kept;
    if (show_ == rule::ShowKeys::Shown) {
      kept = shm::read_key_name(view_, slot, tag, handle_.secret, window);
    }
    char number[24] = "";
    if (!kept && show_ != rule::ShowKeys::Hidden) {
      std::snprintf(number, sizeof number, "#%012llx",
                    static_cast<unsigned long long>(key_number(tag, window)));
    }
    out.set("key", kept ? wire::Value::binary(kept->text) : wire::Value(number));
    out.set("named", kept.has_value());
    out.set("cut", kept && kept->cut);
    out.set("window", window);
  }

  /// By one look for what is there, and one for when a token is.
  bool numbers(shm::BucketAsk& ask, std::int64_t now, wire::Value& out) const {
    std::uint64_t hint = shm::kNoSlot;
    DecisionData data;
    ask.cost = 0;
    if (shm::look_at(view_, ask, now, hint, data) != shm::Outcome::Answered) return false;
    const rule::Report there = rule::report_of(data);
    out.set("remaining", there.remaining);
    out.set("reset_after_ns", nanos(there.reset_after_ns));
    ask.cost = 1;
    if (shm::look_at(view_, ask, now, hint, data) != shm::Outcome::Answered) return false;
    const bool allowed = data.reason == Reason::Allowed;
    out.set("retry_after_ns", allowed ? 0 : nanos(rule::report_of(data).retry_after_ns));
    return true;
  }

  const shm::View& view_;
  const FoundLimit& limit_;
  shm::LimitHandle handle_;
  rule::ShowKeys show_ = rule::ShowKeys::Hidden;
};

}  // namespace

Result<KeyPage> key_page(const shm::View& view, const KeyQuery& query) {
  const std::vector<FoundLimit> limits = read_limits(view);
  const auto found = std::find_if(limits.begin(), limits.end(),
                                  [&](const auto& l) { return l.name == query.limit; });
  if (found == limits.end()) {
    std::vector<std::string> known;
    for (const FoundLimit& limit : limits) known.push_back(limit.name);
    return unknown_limit(query.limit, known);
  }
  const Lister lister(view, *found);
  KeyPage page;
  std::size_t bytes = 0;
  const std::uint64_t begin = std::min(query.from, view.slot_count);
  const std::uint64_t end = begin + std::min(kSlotsPerPage, view.slot_count - begin);
  for (std::uint64_t slot = begin; slot < end; ++slot) {
    wire::Value row = lister.row(slot);
    if (row.is_nil()) continue;
    bytes += wire::encoded_size(row);
    // One row is always sent, so that a list ends.
    if (!page.rows.empty() && (bytes > query.max_bytes || page.rows.size() >= query.max_rows)) {
      page.next = slot;
      return page;
    }
    page.rows.push_back(std::move(row));
  }
  if (end < view.slot_count) page.next = end;
  return page;
}

}  // namespace cutwater::rows
