// SPDX-License-Identifier: Apache-2.0
// The current rule image: its sum, every rule's numbers, every limit's ids and name.
#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "rule/limit_settings.hpp"
#include "shm/image.hpp"
#include "shm/verify_detail.hpp"

namespace cutwater::shm::detail {
namespace {

// Honest quantities stay below 2^62 (spec memory 6.1), so that a sum of two of them fits 64 bits.
constexpr std::int64_t kMaxUnits = (std::int64_t{1} << 62) - 1;

bool within(std::int64_t value, std::int64_t low, std::int64_t high) noexcept {
  return value >= low && value <= high;
}

bool piece_fits(const rule::Piece& piece, bool in_steps) noexcept {
  if (piece.shift > 127) return false;
  if (piece.mult != 0 && piece.mult < std::uint64_t{1} << 63 && !in_steps) return false;
  const auto grown = (static_cast<unsigned __int128>(kHorizonNs) * piece.mult) >> piece.shift;
  return (in_steps || grown <= static_cast<unsigned __int128>(kMaxUnits)) &&
         within(piece.base_t, 0, kHorizonNs) && within(piece.base_n, -kMaxUnits, kMaxUnits) &&
         within(piece.burst, 0, kMaxUnits) && within(piece.floor, -kMaxUnits, kMaxUnits) &&
         within(piece.reach, 0, kMaxUnits);
}

std::string check_head(const Verifier& verifier) {
  const View& view = verifier.view;
  const ImageHead& head = view.image_head(verifier.c);
  if (read_once(head.length) != view.image_length) return "has another length than reserved";
  if (read_once(head.limits) > view.limit_count) return "counts more limits than reserved";
  if (read_once(head.rules) > view.rule_count) return "counts more rules than reserved";
  const int image = static_cast<int>(verifier.c & kCurrentImageBit);
  return image_is_whole(view, image) ? "" : "its checksum is wrong";
}

std::string check_rule(const Verifier& verifier, std::uint16_t id) {
  const View& view = verifier.view;
  const RuleRecord& rule = view.rule(verifier.c, id);
  const auto kind = static_cast<RuleKind>(read_once(rule.kind));
  if (kind > RuleKind::Banned) return "has a kind that does not exist";
  if (id == 0) return kind == RuleKind::Unused ? "" : "id 0 is in use";
  const bool bucket = is_bucket_kind(rule);
  if (!bucket && kind != RuleKind::Unlimited) return "";
  if (read_once(rule.limit) >= view.limit_count) return "belongs to a limit that does not exist";
  if (read_once(rule.window) >= kMaxWindows) return "belongs to a window that does not exist";
  const std::uint16_t pred = read_once(rule.pred);
  if (pred != 0 && (pred >= view.rule_count || pred == id)) return "its predecessor does not exist";
  if (pred != 0 && read_once(view.rule(verifier.c, pred).succ) != id) {
    return "its predecessor has another successor";
  }
  const std::uint16_t succ = read_once(rule.succ);
  if (succ != 0 && (verifier.known_rule(succ) == nullptr || succ == id)) {
    return "its successor does not exist";
  }
  if (bucket && !numbers_fit(view, rule)) return "has numbers that no configuration gives";
  return "";
}

std::string check_name(const View& view, std::uint64_t c, std::uint32_t index, std::string& name) {
  const NameRecord& record = view.limit_name(c, index);
  const std::size_t length = read_once(record.length);
  if (length == 0 || length > sizeof record.text) return "its name has an impossible length";
  name.resize(length);
  for (std::size_t i = 0; i < length; ++i) name[i] = read_once(record.text[i]);
  const auto printable = [](char byte) { return byte > 0x20 && byte < 0x7f; };
  const bool fine = std::all_of(name.begin(), name.end(), printable);
  return fine ? "" : "its name has characters no name has";
}

std::string check_limit(const Verifier& verifier, std::uint32_t index) {
  const LimitConfig& limit = verifier.view.limit_config(verifier.c, index);
  const unsigned windows = read_once(limit.windows);
  if (windows == 0) return "";
  if (windows > kMaxWindows) return "has more windows than there are";
  if (read_once(limit.on_full) > static_cast<std::uint8_t>(rule::OnFull::Allow)) {
    return "has an on-full that does not exist";
  }
  for (unsigned window = 0; window < windows; ++window) {
    const std::uint16_t id = read_once(limit.rule[window]);
    const RuleRecord* rule = verifier.known_rule(id);
    if (rule == nullptr) return "names rule " + std::to_string(id) + ", which does not exist";
    if (read_once(rule->limit) != index || read_once(rule->window) != window) {
      return "names rule " + std::to_string(id) + ", which belongs to another limit or window";
    }
  }
  std::string name;
  return check_name(verifier.view, verifier.c, index, name);
}

/// Two limits of one name: whoever looks the name up gets either.
void check_names_differ(Verifier& verifier) {
  std::map<std::string, std::uint32_t, std::less<>> seen;
  for (std::uint32_t index = 0; index < verifier.view.limit_count; ++index) {
    if (read_once(verifier.view.limit_config(verifier.c, index).windows) == 0) continue;
    std::string name;
    if (!check_name(verifier.view, verifier.c, index, name).empty()) continue;
    const auto [other, is_new] = seen.emplace(name, index);
    if (is_new) continue;
    verifier.expect("limit", index, [&, first = other->second]() -> std::string {
      std::string a, b;
      const bool both = check_name(verifier.view, verifier.c, index, a).empty() &&
                        check_name(verifier.view, verifier.c, first, b).empty() && a == b;
      const bool used = read_once(verifier.view.limit_config(verifier.c, first).windows) != 0;
      return both && used ? "has the name of limit " + std::to_string(first) : "";
    });
  }
}

}  // namespace

bool numbers_fit(const View& view, const RuleRecord& rule) noexcept {
  const bool in_steps = is_kind(rule, RuleKind::Calendar);
  if (in_steps && !steps_fit(rule, view)) return false;
  return read_once(rule.f) <= rule::kMaxFractionBits && piece_fits(read_after(rule), in_steps) &&
         piece_fits(read_before(rule), in_steps);
}

bool beyond_reach(const Verifier& verifier, const RuleRecord& rule, std::int64_t t,
                  std::int64_t tat) noexcept {
  const rule::Piece piece = read_piece_at(rule, t);
  const rule::Units n = clock_at(verifier.view, verifier.c, rule, piece, t);
  return tat > static_cast<__int128>(n) + piece.reach;
}

void verify_image(Verifier& verifier) {
  const View& view = verifier.view;
  verifier.expect("image", verifier.c & kCurrentImageBit, [&] { return check_head(verifier); });
  for (std::uint32_t id = 0; id < view.rule_count; ++id) {
    const auto rule_id = static_cast<std::uint16_t>(id);
    verifier.expect("rule", id, [&] { return check_rule(verifier, rule_id); });
    if (verifier.known_rule(id) != nullptr) ++verifier.report.rules;
  }
  for (std::uint32_t index = 0; index < view.limit_count; ++index) {
    verifier.expect("limit", index, [&] { return check_limit(verifier, index); });
    if (read_once(view.limit_config(verifier.c, index).windows) != 0) ++verifier.report.limits;
  }
  check_names_differ(verifier);
  verify_tables(verifier);
}

}  // namespace cutwater::shm::detail
